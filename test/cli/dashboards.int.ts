import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openFacade, type Facade } from '../http/facade.ts';
import { exportd } from './command_line.ts';

let facade: Facade;
beforeAll(async () => {
  facade = await openFacade();
});
afterAll(() => facade.close());

const run = (...args: string[]) => exportd({ DATABASE_URL: facade.database.url }, ...args);
const answerOf = async (...args: string[]): Promise<unknown> => {
  const { code, stdout, stderr } = await run(...args, '--json');
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout);
};

describe('exportd dashboard', () => {
  it('makes dashboards that the service shows, and lists those of one project or of all', async () => {
    const project = String(facade.projectId);
    const made = await answerOf(
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
    expect(made).toMatchObject({
      id: expect.any(Number),
      project_id: facade.projectId,
      name: 'Sales',
      description: 'of shoes',
      pinned: true,
      tags: ['eu', 'weekly'],
      restriction_level: 37,
      default_access_level: 'viewer',
      access_controls: [],
      created_by: { id: facade.userId, email: 'ada@example.com' },
    });
    const { id } = made as { id: number };
    const shown = await facade.call('GET', `dashboards/${id}`);
    expect([shown.status, shown.body]).toMatchObject([200, { name: 'Sales', user_access_level: 'manager' }]);

    const other = await answerOf(
      'dashboard',
      'create',
      '--project',
      String(facade.otherProjectId),
      '--name',
      'B',
    );
    const [one, all, lines] = await Promise.all([
      answerOf('dashboard', 'list', '--project', project),
      answerOf('dashboard', 'list'),
      run('dashboard', 'list', '--project', project),
    ]);
    expect([one, all]).toEqual([[made], [made, other]]);
    expect(lines.stdout).toMatch(
      new RegExp(`^${id} +${project} +Sales +true +eu,weekly +37 +ada@example.com$`, 'm'),
    );
  });

  it('makes projects whose dashboards only collaborators may edit', async () => {
    const project = (await answerOf(
      ...['project', 'create', '--name', 'Strict', '--dashboard-restriction-level', '37'],
    )) as { id: number };
    const { key } = await facade.newKey(project.id);
    const { body } = await facade.call(
      'POST',
      `/api/projects/${project.id}/dashboards`,
      { name: 'Kept' },
      { authorization: `Bearer ${key}` },
    );
    expect(body).toMatchObject({ restriction_level: 21, effective_restriction_level: 37 });
  });

  it('says in words what is wrong', async () => {
    const refused = await Promise.all([
      run('dashboard', 'create', '--project', '4711', '--name', 'x'),
      run('dashboard', 'create', '--project', '1', '--name', ' '),
    ]);
    expect(refused.map(({ code, stdout }) => [code, stdout])).toEqual([
      [1, ''],
      [1, ''],
    ]);
    expect(refused[0].stderr).toMatch(/no project 4711/);
    expect(refused[1].stderr).toMatch(/--name: This field may not be blank/);
  });
});
