import { createKey, createProject, createUser } from '../http/accounts.ts';
import { scopes } from '../http/api_keys.ts';
import type { Pool } from '../journal/database.ts';

/** The project whose events are exported, and a key for it. */
export interface BenchAccount {
  readonly teamId: number;
  readonly apiKey: string;
}

/** Makes the account in an empty control database. */
export async function createBenchAccount(pool: Pool): Promise<BenchAccount> {
  const user = await createUser(pool, { email: 'bench@example.com' });
  const project = await createProject(pool, { name: 'Bench' });
  const { key } = await createKey(pool, { user_id: user.id, project_id: project.id, scopes: [...scopes] });
  return { teamId: project.id, apiKey: key };
}
