import { randomBytes } from 'node:crypto';
import { readSettings } from '../config/settings.ts';
import { queryRoleOf } from '../queries/query_role/query_role.ts';
import { setUpQueryRole } from '../queries/query_role/set_up_query_role.ts';
import { withPool } from './demo/accounts.ts';
import type { StackEnvironment } from './stack_file.ts';

/** PostgreSQL cuts longer names. */
const maxNameLength = 63;

/** The role that a stack's queries run under. */
export interface StackQueryRole {
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
  const role = queryRoleOf(settings);
  if (!role) return none;
  const update = async (): Promise<void> => {
    await withPool(databaseUrl, (pool) => setUpQueryRole(pool, settings, role, { closeCatalog: true }));
  };
  await update();
  return { environment, update };
}
