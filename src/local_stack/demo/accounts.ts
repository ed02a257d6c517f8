import {
  createKey,
  createProject,
  createUser,
  listKeys,
  listProjects,
  listUsers,
} from '../../http/accounts.ts';
import { scopes } from '../../http/api_keys.ts';
import { createPool, type Pool } from '../../journal/database.ts';
import type { DataFolder } from '../data_folder.ts';
import { ensureDemoDashboards } from './dashboards.ts';
import { keepDemoState, readDemoState } from './demo_file.ts';

/** Who uses the demo's project, and by which key. */
export interface DemoAccounts {
  readonly projectId: number;
  readonly apiKey: string;
}

const projectName = 'Demo';

async function firstUser(pool: Pool) {
  const [first] = await listUsers(pool);
  return first ?? createUser(pool, { email: 'demo@example.com', first_name: 'Demo', last_name: 'User' });
}

/** Works on the demo's database. */
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

/** Makes a user where there is none, so that keys can be made without naming one. */
export const ensureUser = (databaseUrl: string): Promise<unknown> => withPool(databaseUrl, firstUser);

/** The demo's user, project and key: those of the last start as far as they still hold, else new ones. */
export const ensureDemoAccounts = (databaseUrl: string, folder: DataFolder): Promise<DemoAccounts> =>
  withPool(databaseUrl, async (pool) => {
    const kept = readDemoState(folder);
    const user = await firstUser(pool);
    const project =
      (await listProjects(pool)).find(({ id, name }) =>
        kept.project_id === undefined ? name === projectName : id === kept.project_id,
      ) ?? (await createProject(pool, { name: projectName, timezone: 'UTC', week_start_day: 'sunday' }));
    await ensureDemoDashboards(pool, user.id, project.id);
    const keys = await listKeys(pool);
    const holds = keys.some(
      (key) => key.id === kept.key_id && key.project_id === project.id && key.revoked_at === null,
    );
    if (holds && kept.api_key !== undefined) return { projectId: project.id, apiKey: kept.api_key };
    const made = await createKey(pool, { user_id: user.id, project_id: project.id, scopes: [...scopes] });
    keepDemoState(folder, { project_id: project.id, key_id: made.id, api_key: made.key });
    return { projectId: project.id, apiKey: made.key };
  });
