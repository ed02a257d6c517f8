import {
  createKey,
  createProject,
  createUser,
  listKeys,
  listProjects,
  listUsers,
  scopes,
} from '../../http/accounts.ts';
import { createPool, type Pool } from '../../journal/database.ts';
import type { DataFolder } from '../data_folder.ts';
import { saveDemoState, readDemoState } from './demo_file.ts';

/** The project of a stack and its API key. */
export interface DemoAccounts {
  readonly projectId: number;
  readonly apiKey: string;
}

async function firstUser(pool: Pool) {
  const [first] = await listUsers(pool);
  return first ?? createUser(pool, { email: 'demo@example.com', first_name: 'Demo', last_name: 'User' });
}

/** Runs `work` with a connection to the database. */
export async function withPool<Result>(
  databaseUrl: string,
  work: (pool: Pool) => Promise<Result>,
): Promise<Result> {
  const pool = createPool(databaseUrl, { max: 1 });
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}

/** The user, project and key: those of the last start if they are still valid, otherwise new ones. */
export const ensureAccounts = (
  databaseUrl: string,
  folder: DataFolder,
  projectName: string,
  prepareProject?: (pool: Pool, userId: number, projectId: number) => Promise<void>,
): Promise<DemoAccounts> =>
  withPool(databaseUrl, async (pool) => {
    const saved = readDemoState(folder);
    const user = await firstUser(pool);
    const project =
      (await listProjects(pool)).find(({ id, name }) =>
        saved.project_id === undefined ? name === projectName : id === saved.project_id,
      ) ?? (await createProject(pool, { name: projectName, timezone: 'UTC', week_start_day: 'sunday' }));
    await prepareProject?.(pool, user.id, project.id);
    const keys = await listKeys(pool);
    const isValid = keys.some(
      (key) => key.id === saved.key_id && key.project_id === project.id && key.revoked_at === null,
    );
    if (isValid && saved.api_key !== undefined) return { projectId: project.id, apiKey: saved.api_key };
    const created = await createKey(pool, { user_id: user.id, project_id: project.id, scopes: [...scopes] });
    saveDemoState(folder, { project_id: project.id, key_id: created.id, api_key: created.key });
    return { projectId: project.id, apiKey: created.key };
  });
