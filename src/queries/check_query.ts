import { compileQuery } from '../dialect/compile/compile_query.ts';
import { placeholdersOf, usedVariables } from './dialect_query/placeholders.ts';
import { withFieldPath } from './parse_fragments.ts';
import type { CheckTask } from './query_executor.ts';

/**
 * Compiles a text of the dialect, with `{filters}` that select everything and variables without a value.
 * @throws QueryError `dialect_error`
 */
export function checkQuery({ query, project, now, schema }: CheckTask): void {
  const { team_id, timezone, week_start_day } = project;
  const ofProject = {
    teamId: team_id,
    timezone,
    weekStartDay: week_start_day,
    now: now.toISOString(),
    schema,
  };
  const asked = { kind: 'DialectQuery', query } as const;
  const variables = Object.fromEntries(usedVariables(asked).map(({ code_name }) => [code_name, null]));
  const placeholders = placeholdersOf(asked, { project, now, variables });
  withFieldPath(null, () => compileQuery(query, ofProject, { placeholders }));
}
