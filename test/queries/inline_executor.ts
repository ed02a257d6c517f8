import { createNameCache } from '../../src/queries/name_notice.ts';
import {
  checkQuery,
  computeOutput,
  parseForm,
  type QueryExecutor,
  type QueryKinds,
} from '../../src/queries/query_executor.ts';

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
