import { listUsers } from '../http/accounts.ts';
import type { Pool } from '../journal/database.ts';
import { CliError } from './cli_error.ts';

/** The id of the given user, or of the first one. @throws CliError when there is no user. */
export async function resolveUser(pool: Pool, userId: number | undefined): Promise<number> {
  const user = userId ?? (await listUsers(pool))[0]?.id;
  if (user === undefined) throw new CliError('There is no user yet: create one with "exportd user create".');
  return user;
}
