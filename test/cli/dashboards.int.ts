import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';
import { exportd } from './command_line.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
});
afterAll(() => api.close());

const run = (...args: string[]) => exportd({ DATABASE_URL: api.database.url }, ...args);
const jsonOutputOf = async (...args: string[]): Promise<unknown> => {
  const { code, stdout, stderr } = await run(...args, '--json');
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout);
};

describe('exportd dashboard', () => {
  it('creates dashboards that the API lists, and lists those of one project or all', async () => {
    const project = String(api.projectId);
    const user = (await jsonOutputOf('user', 'create', '--email', 'grace@example.com')) as { id: number };
    const created = await jsonOutputOf(
      'dashboard',
      'create',
      '--project',
      project,
      '--name',
      'Sales',
      '--description',
      'of shoes',
      '--pinned',
      '--tags',
      'eu, Weekly, eu',
      '--restriction-level',
      '37',
      '--default-access-level',
      'viewer',
      '--collaborator',
      `${user.id}=editor`,
    );
    expect(created).toMatchObject({
      id: expect.any(Number),
      project_id: api.projectId,
      name: 'Sales',
      description: 'of shoes',
      pinned: true,
      tags: ['eu', 'weekly'],
      restriction_level: 37,
      default_access_level: 'viewer',
      collaborators: [{ user_id: user.id, access_level: 'editor' }],
      created_by: { id: api.userId, email: 'ada@example.com' },
    });
    const { id } = created as { id: number };
    expect((await api.call('GET', 'dashboards/')).body).toMatchObject({
      results: [{ id, name: 'Sales', user_access_level: 'manager' }],
    });

    const otherProject = String(api.otherProjectId);
    const other = await jsonOutputOf('dashboard', 'create', '--project', otherProject, '--name', 'B');
    const [one, all, lines] = await Promise.all([
      jsonOutputOf('dashboard', 'list', '--project', project),
      jsonOutputOf('dashboard', 'list'),
      run('dashboard', 'list', '--project', project),
    ]);
    expect([one, all]).toEqual([
      { count: 1, results: [created] },
      { count: 2, results: [created, other] },
    ]);
    expect(lines.stdout).toMatch(
      new RegExp(`^${id} +${project} +Sales +true +eu,weekly +37 +ada@example.com$`, 'm'),
    );
  });

  it('creates projects whose dashboards only collaborators can edit', async () => {
    const project = (await jsonOutputOf(
      'project',
      'create',
      '--name',
      'Strict',
      '--dashboard-restriction-level',
      '37',
    )) as { id: number };
    await jsonOutputOf('dashboard', 'create', '--project', String(project.id), '--name', 'Kept');
    const { key } = await api.newKey(project.id);
    const path = `/api/projects/${project.id}/dashboards`;
    const { body } = await api.call('GET', path, undefined, { authorization: `Bearer ${key}` });
    expect(body.results).toMatchObject([{ restriction_level: 21, effective_restriction_level: 37 }]);
  });

  it.each([
    [['--project', '4711', '--name', 'x'], /project 4711 does not exist/],
    [['--project', '1', '--name', ' '], /may not be blank/],
    [['--project', '1', '--name', 'x', '--collaborator', '4711=editor'], /User 4711 does not exist/],
    [['--project', '1', '--name', 'x', '--collaborator', 'ada'], /<user id>=<level>/],
  ])('says what is wrong with %j', async (args, message) => {
    const { code, stdout, stderr } = await run('dashboard', 'create', ...args);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(message)]);
    expect((await api.call('GET', 'dashboards/?limit=1000')).body.count).toBe(1);
  });
});
