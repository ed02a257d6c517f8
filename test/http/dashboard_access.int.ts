import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createKey, createProject, createUser } from '../../src/http/accounts.ts';
import type { AccessLevel } from '../../src/http/dashboards/access_levels.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createDashboardUser, type DashboardUser } from './dashboard_users.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
let creator: DashboardUser;
let grace: DashboardUser;
beforeAll(async () => {
  api = await openApiHarness();
  creator = await createDashboardUser(api, 'creator');
  grace = await createDashboardUser(api, 'grace');
});
afterAll(() => api.close());

const create = async (fields: Readonly<Record<string, unknown>>): Promise<string> => {
  const { status, body } = await creator.call('POST', 'dashboards', { name: 'Subject', ...fields });
  expect(status).toBe(201);
  return `dashboards/${String(body.id)}`;
};
const forGrace = (access_level: string) => ({
  access_controls: [{ user: grace.uuid, access_level }],
});
const isListed = async (user: DashboardUser, path: string): Promise<boolean> => {
  const { body } = await user.call('GET', 'dashboards?limit=1000');
  return (body.results as { id: number }[]).some(({ id }) => path === `dashboards/${id}`);
};

/** The fields of a dashboard, and the resulting access of a user who did not create it. */
const levels: readonly [string, Readonly<Record<string, unknown>>, boolean, AccessLevel, number][] = [
  // title, fields, whether Grace is a collaborator, her access level, her privilege level
  ['by default', {}, false, 'editor', 37],
  ['by a default of none', { default_access_level: 'none' }, false, 'none', 21],
  ['by a default of viewer', { default_access_level: 'viewer' }, false, 'viewer', 21],
  ['by a default of manager', { default_access_level: 'manager' }, false, 'manager', 37],
  ['by default on a restricted dashboard', { restriction_level: 37 }, false, 'viewer', 21],
  [
    'by a default of manager on a restricted dashboard',
    { restriction_level: 37, default_access_level: 'manager' },
    false,
    'viewer',
    21,
  ],
  [
    'by a default of none on a restricted dashboard',
    { restriction_level: 37, default_access_level: 'none' },
    false,
    'none',
    21,
  ],
  ['as a collaborator at none', {}, true, 'none', 21],
  ['as a collaborator at viewer', { default_access_level: 'manager' }, true, 'viewer', 21],
  ['as a collaborator at editor', { default_access_level: 'none' }, true, 'editor', 37],
  ['as a collaborator at manager', { default_access_level: 'viewer' }, true, 'manager', 37],
  ['as an editor of a restricted dashboard', { restriction_level: 37 }, true, 'editor', 37],
  ['as a manager of a restricted dashboard', { restriction_level: 37 }, true, 'manager', 37],
];

const changed = { status: 200 };
const notFound = { status: 404, body: { detail: 'Not found.' } };
const denied = (held: AccessLevel, needed: AccessLevel, attr: string | null) => ({
  status: 403,
  body: { attr, detail: expect.stringMatching(`'${held}'.*requires '${needed}'`) },
});

/** The responses by access level: to an edit, and to a change of a field that requires a manager. */
const expectedResponses: Readonly<
  Record<AccessLevel, { edited: object; managed: (field: string) => object }>
> = {
  none: { edited: notFound, managed: () => notFound },
  viewer: {
    edited: denied('viewer', 'editor', null),
    managed: () => denied('viewer', 'editor', null),
  },
  editor: { edited: changed, managed: (field) => denied('editor', 'manager', field) },
  manager: { edited: changed, managed: () => changed },
};

describe.each(levels)('a user with access %s', (_, fields, isCollaborator, level, privilege) => {
  const createDashboard = () => create({ ...fields, ...(isCollaborator ? forGrace(level) : {}) });
  const canView = level !== 'none';
  const canEdit = level === 'editor' || level === 'manager';
  const canManage = level === 'manager';
  const rejectedStatus = canView ? 403 : 404;

  it('sees the dashboard and their own access as permitted', async () => {
    const path = await createDashboard();
    expect(await isListed(grace, path)).toBe(canView);
    const { status, body } = await grace.call('GET', path);
    expect(status).toBe(canView ? 200 : 404);
    expect(canView ? [body.user_access_level, body.effective_privilege_level] : [level, privilege]).toEqual([
      level,
      privilege,
    ]);
    const { body: theirs } = await creator.call('GET', path);
    expect([theirs.user_access_level, theirs.effective_privilege_level]).toEqual(['manager', 37]);
  });

  it('edits as permitted', async () => {
    const path = await createDashboard();
    const renamed = await grace.call('PATCH', path, { name: 'Renamed', pinned: true });
    expect(renamed).toMatchObject(expectedResponses[level].edited);
    const { body } = await creator.call('GET', path);
    expect([body.name, body.pinned]).toEqual(canEdit ? ['Renamed', true] : ['Subject', false]);
  });

  it.each([
    ['restriction_level', (now: unknown) => (now === 37 ? 21 : 37)],
    ['default_access_level', (now: unknown) => (now === 'viewer' ? 'editor' : 'viewer')],
    ['access_controls', () => []],
  ] as const)('changes %s only as a manager', async (field, another) => {
    const path = await createDashboard();
    const { body: before } = await creator.call('GET', path);
    const wanted =
      field === 'access_controls' && !isCollaborator
        ? [{ user: grace.uuid, access_level: 'viewer' }]
        : another(before[field]);
    const response = await grace.call('PATCH', path, { name: 'With more', [field]: wanted });
    expect(response).toMatchObject(expectedResponses[level].managed(field));
    const { body: after } = await creator.call('GET', path);
    // All or nothing: fields that an editor may change did not change either.
    expect(canManage ? { ...after, name: 'Subject' } : after).toMatchObject(
      canManage ? { [field]: wanted } : before,
    );
  });

  it('deletes and restores as permitted', async () => {
    const path = await createDashboard();
    expect((await grace.call('DELETE', path)).status).toBe(canEdit ? 204 : rejectedStatus);
    expect((await creator.call('GET', path)).status).toBe(canEdit ? 404 : 200);
    if (!canEdit) await creator.call('DELETE', path);
    expect((await grace.call('PATCH', path, { deleted: false })).status).toBe(canEdit ? 200 : rejectedStatus);
    expect((await creator.call('GET', path)).status).toBe(canEdit ? 200 : 404);
  });
});

describe('the access settings of a dashboard', () => {
  it('can be sent back unchanged by an editor', async () => {
    const path = await create({ ...forGrace('editor'), restriction_level: 37 });
    const { body } = await grace.call('GET', path);
    expect(body.access_controls).toEqual([{ user: grace.uuid, access_level: 'editor' }]);
    const { status } = await grace.call('PATCH', path, { ...body, description: 'Mine' });
    expect(status).toBe(200);
  });

  it('lists users by id or UUID, once each, and the creator only as a manager', async () => {
    const path = await create({});
    const patch = (...access_controls: { user: unknown; access_level: string }[]) =>
      creator.call('PATCH', path, { access_controls });
    const ofGrace = [{ user: grace.uuid, access_level: 'viewer' }];
    expect((await patch({ user: grace.id, access_level: 'viewer' })).body.access_controls).toEqual(ofGrace);
    const upperCase = await patch(
      { user: grace.uuid.toUpperCase(), access_level: 'viewer' },
      { user: creator.id, access_level: 'manager' },
    );
    expect(upperCase.body.access_controls).toEqual(ofGrace);
    const twice = await patch(
      { user: grace.id, access_level: 'viewer' },
      { user: grace.uuid, access_level: 'editor' },
    );
    expect([twice.status, twice.body.attr]).toEqual([400, 'access_controls__1__user']);
    const demoted = await patch({ user: creator.uuid, access_level: 'viewer' });
    expect([demoted.status, demoted.body.attr]).toEqual([400, 'access_controls__0__user']);
  });

  it('can remove the access of the manager who changes them', async () => {
    const path = await create({ ...forGrace('manager'), default_access_level: 'none' });
    const left = await grace.call('PATCH', path, { access_controls: [] });
    expect([left.status, left.body.user_access_level]).toEqual([200, 'none']);
    expect((await grace.call('GET', path)).status).toBe(404);
  });
});

describe('a change that waits for a concurrent change', () => {
  it('is checked against the result of that change', async () => {
    const path = await create(forGrace('editor'));
    const id = Number(path.split('/')[1]);
    const { pool } = api.database;
    const connection = await pool.connect();
    await connection.query('begin');
    await connection.query('select from exportd.dashboards where id = $1 for update', [id]);
    await connection.query(
      `update exportd.dashboard_access_controls set access_level = 'viewer' where dashboard_id = $1`,
      [id],
    );
    const renamed = grace.call('PATCH', path, { name: 'Too late' });
    await waitFor(async () => {
      const { rows } = await pool.query(
        `select from pg_stat_activity where datname = current_database() and backend_type = 'client backend'
           and wait_event_type = 'Lock'`,
      );
      return rows.length > 0;
    }, 'the update waits for the lock');
    await connection.query('commit');
    connection.release();
    expect((await renamed).status).toBe(403);
  });
});

describe('a project with a stricter restriction level', () => {
  it('overrides the level of its dashboards', async () => {
    const { pool } = api.database;
    const project = await createProject(pool, { name: 'Strict', dashboard_restriction_level: 37 });
    const owner = await createDashboardUser(api, 'owner', { projectId: project.id });
    const projectMember = await createDashboardUser(api, 'member', { projectId: project.id });
    const below = `/api/projects/${project.id}/dashboards`;
    const { body } = await owner.call('POST', below, { name: 'Open?', restriction_level: 21 });
    expect(body).toMatchObject({ restriction_level: 21, effective_restriction_level: 37 });
    const path = `${below}/${String(body.id)}`;
    const seen = await projectMember.call('GET', path);
    expect(seen.body).toMatchObject({ user_access_level: 'viewer', effective_privilege_level: 21 });
    const rejected = await projectMember.call('PATCH', path, { name: 'x' });
    expect([rejected.status, rejected.body.detail]).toEqual([
      403,
      expect.stringMatching(/restriction level 37/),
    ]);
    await owner.call('PATCH', path, {
      access_controls: [{ user: projectMember.id, access_level: 'editor' }],
    });
    expect((await projectMember.call('PATCH', path, { name: 'Invited' })).status).toBe(200);
  });
});

describe('the scopes of a key', () => {
  it('allow reading or writing dashboards, neither implying the other', async () => {
    const path = await create({});
    const reader = await createDashboardUser(api, 'reader', { scopes: ['dashboard:read'] });
    const writer = await createDashboardUser(api, 'writer', { scopes: ['dashboard:write'] });
    for (const [method, where, body, mayRead] of [
      ['GET', 'dashboards', undefined, true],
      ['GET', path, undefined, true],
      ['POST', 'dashboards', { name: 'New' }, false],
      ['PATCH', path, { name: 'Renamed' }, false],
      ['DELETE', path, undefined, false],
    ] as const) {
      const rejected = await (mayRead ? writer : reader).call(method, where, body);
      const scope = mayRead ? 'dashboard:read' : 'dashboard:write';
      expect([rejected.status, rejected.body]).toMatchObject([
        403,
        { type: 'permission', detail: expect.stringContaining(`'${scope}'`) },
      ]);
      expect((await (mayRead ? reader : writer).call(method, where, body)).status).toBeLessThan(300);
    }
    const withoutKey = await api.call('GET', 'dashboards', undefined, { authorization: '' });
    expect([withoutKey.status, withoutKey.body.type]).toEqual([401, 'authentication_error']);
  });

  it('are checked for queries by check_auth_for_async, which responds without a body', async () => {
    const { pool } = api.database;
    const user = await createUser(pool, { email: 'query@example.com' });
    const keyFor = async (scopes: string[], project_id = api.projectId) =>
      `Bearer ${(await createKey(pool, { user_id: user.id, project_ids: [project_id], scopes })).key}`;
    const may = await keyFor(['query:read']);
    const mayNot = await keyFor(['batch_export:read', 'dashboard:read']);
    const elsewhere = await keyFor(['query:read'], api.otherProjectId);
    for (const root of ['projects', 'environments'])
      for (const ending of ['', '/']) {
        const url = `/api/${root}/${api.projectId}/query/check_auth_for_async${ending}`;
        const request = (authorization: string) =>
          api.call('POST', url, undefined, { authorization, 'content-type': 'application/json' });
        const allowed = await request(may);
        expect([allowed.status, allowed.text]).toEqual([200, '']);
        const denied = await request(mayNot);
        expect([denied.status, denied.body.detail]).toEqual([403, expect.stringContaining("'query:read'")]);
        expect([(await request('')).status, (await request(elsewhere)).status]).toEqual([401, 404]);
        expect((await api.call('GET', url)).status).toBe(405);
      }
  });
});
