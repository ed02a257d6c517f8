import { compileQuery } from '../dialect/compile/compile_query.ts';
import { withFieldPath } from './parse_fragments.ts';
import type { CheckTask } from './query_executor.ts';

/** Compiles a text of the dialect. @throws QueryError `dialect_error` */
export function checkQuery({ query, project, now, schema }: CheckTask): void {
  const { team_id, timezone, week_start_day } = project;
  const ofProject = {
    teamId: team_id,
    timezone,
    weekStartDay: week_start_day,
    now: now.toISOString(),
    schema,
  };
  withFieldPath(null, () => compileQuery(query, ofProject));
}
