import { createKey, createProject, createUser } from '../http/accounts.ts';
import { scopes } from '../http/api_keys.ts';
import type { Pool } from '../journal/database.ts';

/** A project and its API key. */
export interface BenchAccount {
  readonly teamId: number;
  readonly apiKey: string;
}

/** Creates a user, a project and a key in a scratch database. */
export async function createBenchAccount(pool: Pool, name = 'Bench'): Promise<BenchAccount> {
  const user = await createUser(pool, { email: `${name.toLowerCase()}@example.com` });
  const project = await createProject(pool, { name });
  const { key } = await createKey(pool, { user_id: user.id, project_id: project.id, scopes: [...scopes] });
  return { teamId: project.id, apiKey: key };
}
