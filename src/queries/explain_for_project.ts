import type { Settings } from '../config/settings.ts';
import { type ExplainedQuery, explainQuery } from '../dialect/compile/compile_query.ts';
import type { Pool } from '../journal/database.ts';
import { relationsOf } from '../source/relations.ts';
import { readQueryProject } from './project.ts';
import { postgresConnection } from './query_connection.ts';
import { connectQueriesToSource, queryTransaction } from './query_source.ts';
import { readSourceSchema } from './source_schema.ts';

/**
 * Explains a query as the query endpoint would run it for a project, with the relations that the source has now.
 * @throws DialectError, RelationNotFound, and Error if the project does not exist
 */
export async function explainForProject(
  pool: Pool,
  settings: Settings,
  teamId: number,
  query: string,
): Promise<ExplainedQuery> {
  const { project, now } = await readQueryProject(pool, teamId);
  const source = connectQueriesToSource(settings);
  try {
    const timeoutMs = settings.EXPORTD_QUERY_TIMEOUT;
    const schema = await source.read(queryTransaction(timeoutMs, teamId), undefined, ({ connection }) =>
      readSourceSchema(postgresConnection(connection), relationsOf(settings), project),
    );
    const maxRows = settings.EXPORTD_QUERY_MAX_ROWS;
    return explainQuery(
      query,
      {
        teamId,
        timezone: project.timezone,
        weekStartDay: project.week_start_day,
        now: now.toISOString(),
        schema,
      },
      { rows: { defaultLimit: maxRows, maxRows } },
    );
  } finally {
    await source.close();
  }
}
