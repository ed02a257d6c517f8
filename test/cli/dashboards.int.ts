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
  it('creates dashboards that the API returns, and lists those of one project or all', async () => {
    const project = String(api.projectId);
    const created = await jsonOutputOf(
      ...[
        'dashboard',
        'create',
        '--project',
        project,
        '--name',
        'Sales',
        '--description',
        'of shoes',
        '--pinned',
      ],
      ...['--tags', 'eu, Weekly', '--restriction-level', '37', '--default-access-level', 'viewer'],
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
      access_controls: [],
      created_by: { id: api.userId, email: 'ada@example.com' },
    });
    const { id } = created as { id: number };
    const current = await api.call('GET', `dashboards/${id}`);
    expect([current.status, current.body]).toMatchObject([
      200,
      { name: 'Sales', user_access_level: 'manager' },
    ]);

    const other = await jsonOutputOf(
      'dashboard',
      'create',
      '--project',
      String(api.otherProjectId),
      '--name',
      'B',
    );
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
      ...['project', 'create', '--name', 'Strict', '--dashboard-restriction-level', '37'],
    )) as { id: number };
    const { key } = await api.newKey(project.id);
    const { body } = await api.call(
      'POST',
      `/api/projects/${project.id}/dashboards`,
      { name: 'Kept' },
      { authorization: `Bearer ${key}` },
    );
    expect(body).toMatchObject({ restriction_level: 21, effective_restriction_level: 37 });
  });

  it('prints errors', async () => {
    const failures = await Promise.all([
      run('dashboard', 'create', '--project', '4711', '--name', 'x'),
      run('dashboard', 'create', '--project', '1', '--name', ' '),
    ]);
    expect(failures.map(({ code, stdout }) => [code, stdout])).toEqual([
      [1, ''],
      [1, ''],
    ]);
    expect(failures[0].stderr).toMatch(/project 4711 does not exist/i);
    expect(failures[1].stderr).toMatch(/--name: This field may not be blank/);
  });
});
