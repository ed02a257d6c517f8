import { createNameCache } from '../../src/queries/name_notice.ts';
import type { QueryExecutor } from '../../src/queries/query_executor.ts';
import { checkQuery } from '../../src/queries/dialect_query/check_query.ts';
import { computeOutput } from '../../src/queries/compute_output.ts';
import { parseForm, type QueryKinds } from '../../src/queries/parse_query.ts';

/** Computes queries in the calling thread, where nothing else waits. */
export const createInlineExecutor = (kinds: QueryKinds, names = createNameCache()): QueryExecutor => ({
  parse: async (task) => Promise.resolve(parseForm(kinds, task)),
  check: async (task) => {
    await Promise.resolve();
    checkQuery(task);
  },
  run: (task, environment) => computeOutput(kinds, task, environment, names),
  close: () => Promise.resolve(),
});
