import { randomBytes } from 'node:crypto';
import { readSettings, type Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import { defineProperty } from '../queries/property_definitions.ts';
import { queryRoleOf } from '../queries/query_role/query_role.ts';
import { setUpQueryRole } from '../queries/query_role/set_up_query_role.ts';
import { addWarehouseTable, listWarehouseTables } from '../queries/warehouse_tables.ts';
import type { StackEnvironment } from './data_folder.ts';
import { withPool } from './demo/demo_file.ts';

/** PostgreSQL cuts longer names. */
const maxNameLength = 63;

/** The role that a stack's queries run under. */
interface StackQueryRole {
  /** Settings of the server and the worker; empty if queries run under the role of the source. */
  readonly environment: StackEnvironment;
  /** Lets the role read the relations that exist now. */
  update(): Promise<void>;
}

/**
 * Creates a role for queries in a database of the stack's own PostgreSQL, with a new password at each start. In a
 * database of the user, only `exportd query setup` does so.
 */
export async function prepareQueryRole(databaseUrl: string, encryptionKeys: string): Promise<StackQueryRole> {
  const none: StackQueryRole = { environment: {}, update: () => Promise.resolve() };
  const databasesOfUser = ['DATABASE_URL', 'SOURCE_DATABASE_URL', 'EXPORTD_QUERY_DATABASE_URL'];
  if (databasesOfUser.some((name) => process.env[name])) return none;
  const url = new URL(databaseUrl);
  // A name for each database of a server, because roles belong to all of them.
  url.username = `${url.pathname.slice(1)}_query`.slice(-maxNameLength);
  url.password = randomBytes(18).toString('base64url');
  const environment = { EXPORTD_QUERY_DATABASE_URL: url.href };
  const { EXPORTD_ENCRYPTION_KEYS: keysOfUser } = process.env;
  const settings = readSettings({
    ...process.env,
    ...environment,
    DATABASE_URL: databaseUrl,
    EXPORTD_ENCRYPTION_KEYS: keysOfUser === undefined || keysOfUser === '' ? encryptionKeys : keysOfUser,
  });
  if (!queryRoleOf(settings)) return none;
  const update = (): Promise<void> => updateQueryRole(databaseUrl, settings);
  await update();
  return { environment, update };
}

/** Lets the role of queries, if the settings have one, read the relations that exist now. */
export async function updateQueryRole(databaseUrl: string, settings: Settings): Promise<void> {
  const role = queryRoleOf(settings);
  if (role)
    await withPool(databaseUrl, (pool) => setUpQueryRole(pool, settings, role, { closeCatalog: true }));
}

/** Lets queries of a project read a table as `name`, unless they do. */
export async function ensureWarehouseTable(
  pool: Pool,
  table: Parameters<typeof addWarehouseTable>[1],
): Promise<void> {
  const registered = await listWarehouseTables(pool, table.team_id);
  if (!registered.some(({ name }) => name === table.name)) await addWarehouseTable(pool, table);
}

/** Says that properties of a project are numbers. */
export async function defineNumbers(
  pool: Pool,
  team_id: number,
  { event, person }: { readonly event: string; readonly person: string },
): Promise<void> {
  await defineProperty(pool, { team_id, scope: 'event', name: event, type: 'numeric' });
  await defineProperty(pool, { team_id, scope: 'person', name: person, type: 'numeric' });
}
