import { checkQuery } from './check_query.ts';
import { computeOutput } from './compute_output.ts';
import { draftByRules } from './draft_sql/draft_by_rules.ts';
import { parseForm } from './parse_form.ts';
import type { QueryExecutor } from './query_executor.ts';
import type { QueryKinds } from './registry.ts';

/** Computes queries in the calling thread, where nothing else waits: in threads of queries, benchmarks and tests. */
export const createInlineExecutor = (kinds: QueryKinds): QueryExecutor => ({
  parse: async (task) => Promise.resolve(parseForm(kinds, task)),
  check: async (task) => {
    await Promise.resolve();
    checkQuery(task);
  },
  draft: async ({ input }) => Promise.resolve(draftByRules(input)),
  run: (task, environment) => computeOutput(kinds, task, environment),
  close: () => Promise.resolve(),
});
