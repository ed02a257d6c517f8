import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ensureDemoDashboards } from '../../src/local_stack/demo/demo.ts';
import { listDashboards } from '../../src/http/dashboards/dashboards.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { createProject } from '../../src/http/accounts/projects.ts';
import { createUser } from '../../src/http/accounts/users.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

it('creates the dashboards of the demo once', async () => {
  const { pool } = database;
  const user = await createUser(pool, { email: 'demo@example.com' });
  const project = await createProject(pool, { name: 'Demo' });
  const start = async () => {
    await ensureDemoDashboards(pool, user.id, project.id);
    const viewer = { project_id: project.id, user_id: user.id };
    const { results } = await listDashboards(pool, viewer, { limit: 10, offset: 0 });
    return results.map(({ name, restriction_level }) => [name, restriction_level]);
  };
  const created = [
    ['Product overview', 21],
    ['Weekly report', 37],
  ];
  expect([await start(), await start()]).toEqual([created, created]);
});
