import { createPool, type Pool } from '../../src/journal/database.ts';
import { readSettings } from '../../src/config/settings.ts';
import { queryRoleOf } from '../../src/queries/query_role/query_role.ts';
import { setUpQueryRole } from '../../src/queries/query_role/set_up_query_role.ts';

/** Settings with which the queries of a test run under the role of queries, as in an installation. */
export function queryRoleSettings(databaseUrl: string) {
  const url = new URL(databaseUrl);
  url.username = 'exportd_query';
  url.password = 'of the query role';
  return {
    EXPORTD_QUERY_DATABASE_URL: url.href,
    EXPORTD_ENCRYPTION_KEYS: `tests:${Buffer.alloc(32, 'exportd tests').toString('base64')}`,
  };
}

/** Creates the role, or lets it read the relations that exist now. @param more settings, such as names of relations */
export async function prepareQueryRole(
  databaseUrl: string,
  more: Readonly<Record<string, string>> = {},
): Promise<void> {
  const settings = readSettings({ DATABASE_URL: databaseUrl, ...queryRoleSettings(databaseUrl), ...more });
  const role = queryRoleOf(settings);
  if (!role) throw new Error('The settings of the test name no role of queries.');
  const pool = createPool(databaseUrl, { max: 1 });
  try {
    await setUpQueryRole(pool, settings, role, { closeCatalog: true });
  } finally {
    await pool.end();
  }
}

/** A pool of one connection with the role of queries. */
export const openQueryRolePool = (databaseUrl: string): Pool =>
  createPool(queryRoleSettings(databaseUrl).EXPORTD_QUERY_DATABASE_URL, { max: 1 });
