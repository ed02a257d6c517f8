import { listUsers } from '../http/accounts.ts';
import type { Pool } from '../journal/database.ts';
import { CliError } from './cli_error.ts';

/** The id of the user in whose name a command works: the given one, else the first. @throws CliError without users. */
export async function chosenUser(pool: Pool, given: number | undefined): Promise<number> {
  const user = given ?? (await listUsers(pool))[0]?.id;
  if (user === undefined) throw new CliError('There is no user yet: make one with "exportd user create".');
  return user;
}
