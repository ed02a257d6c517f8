import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createDashboard, namesIn } from './dashboard_requests.ts';
import { createDashboardUser } from './dashboard_users.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
});
afterAll(() => api.close());

const create = (fields: Readonly<Record<string, unknown>>): Promise<number> => createDashboard(api, fields);

const ada = () => ({
  id: api.userId,
  uuid: expect.stringMatching(/^[0-9a-f-]{36}$/),
  distinct_id: expect.any(String),
  first_name: 'Ada',
  last_name: '',
  email: 'ada@example.com',
  is_email_verified: false,
  mascot_config: {},
  role_at_organization: '',
});

describe('a dashboard', () => {
  it('has every documented field, in a list and alone', async () => {
    const created = await api.call('POST', 'dashboards/', { name: 'Every field' });
    const { id } = created.body;
    expect(created.status).toBe(201);
    expect(created.headers.location).toBe(
      `http://localhost/api/environments/${api.projectId}/dashboards/${String(id)}/`,
    );
    const fields = {
      id: expect.any(Number),
      name: 'Every field',
      description: '',
      pinned: false,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      created_by: ada(),
      is_shared: false,
      deleted: false,
      creation_mode: 'default',
      tags: [],
      restriction_level: 21,
      effective_restriction_level: 21,
      effective_privilege_level: 37,
      user_access_level: 'manager',
    };
    const list = await api.call('GET', 'dashboards');
    expect((list.body.results as { id: number }[]).find((one) => one.id === id)).toStrictEqual(fields);
    const detail = { ...fields, default_access_level: 'editor', access_controls: [] };
    expect(created.body).toStrictEqual(detail);
    const alone = await api.call('GET', `dashboards/${String(id)}/`);
    expect([alone.status, alone.body]).toStrictEqual([200, detail]);
  });

  it('is updated by field: omitted keeps, null resets', async () => {
    const id = await create({
      name: 'Sales',
      description: 'of shoes',
      pinned: true,
      tags: [' Weekly', 'weekly', 'EU '],
      restriction_level: 37,
      default_access_level: 'viewer',
    });
    const path = `dashboards/${id}`;
    const renamed = await api.call('PATCH', path, { name: 'Sales of shoes' });
    expect([renamed.status, renamed.body]).toMatchObject([
      200,
      {
        name: 'Sales of shoes',
        description: 'of shoes',
        pinned: true,
        tags: ['eu', 'weekly'],
        restriction_level: 37,
        effective_restriction_level: 37,
        default_access_level: 'viewer',
      },
    ]);
    const reset = await api.call('PATCH', path, {
      description: null,
      pinned: null,
      tags: null,
      restriction_level: null,
      default_access_level: null,
      access_controls: null,
    });
    expect(reset.body).toMatchObject({
      name: 'Sales of shoes',
      description: '',
      pinned: false,
      tags: [],
      restriction_level: 21,
      default_access_level: 'editor',
      access_controls: [],
    });
    expect((await api.call('GET', path)).body).toEqual(reset.body);
  });

  it('does not change when a response is sent back', async () => {
    const id = await create({ name: 'Sent back', tags: ['a'], restriction_level: 37 });
    const { body } = await api.call('GET', `dashboards/${id}`);
    const again = await api.call('PATCH', `dashboards/${id}`, body);
    expect([again.status, again.body]).toEqual([200, body]);
    const copy = await api.call('POST', 'dashboards', body);
    expect(copy.status).toBe(201);
    expect(copy.body.id).not.toBe(id);
  });

  it('has no creator once its user is deleted', async () => {
    const { pool } = api.database;
    const grace = await createDashboardUser(api, 'gone');
    const { body } = await grace.call('POST', 'dashboards', { name: 'An orphan' });
    await pool.query('delete from exportd.api_keys where user_id = $1', [grace.id]);
    await pool.query('delete from exportd.users where id = $1', [grace.id]);
    const orphan = await api.call('GET', `dashboards/${String(body.id)}`);
    expect(orphan.body).toMatchObject({ created_by: null, user_access_level: 'editor' });
  });

  it('is not found when deleted, until it is restored', async () => {
    const id = await create({ name: 'Ephemeral' });
    const path = `dashboards/${id}`;
    const gone = await api.call('DELETE', path);
    expect([gone.status, gone.text]).toEqual([204, '']);
    for (const [method, body] of [
      ['GET', undefined],
      ['DELETE', undefined],
      ['PATCH', { name: 'Still there?' }],
      ['PATCH', { deleted: true }],
    ] as const)
      expect((await api.call(method, path, body)).status).toBe(404);
    expect(namesIn(await api.call('GET', 'dashboards'))).not.toContain('Ephemeral');

    const restored = await api.call('PATCH', path, { deleted: false });
    expect([restored.status, restored.body]).toMatchObject([200, { name: 'Ephemeral', deleted: false }]);
    expect(namesIn(await api.call('GET', 'dashboards'))).toContain('Ephemeral');
    const deleted = await api.call('PATCH', path, { deleted: true });
    expect([deleted.status, deleted.body]).toMatchObject([200, { deleted: true }]);
    expect((await api.call('GET', path)).status).toBe(404);
  });
});

type InvalidRequest = readonly [string, Readonly<Record<string, unknown>>, string | null, RegExp];
const invalidRequests: readonly InvalidRequest[] = [
  ['a name that is blank', { name: ' ' }, 'name', /blank/],
  ['a name that is null', { name: null }, 'name', /may not be null/],
  ['a name that is too long', { name: 'x'.repeat(401) }, 'name', /400/],
  ['a description that is not a string', { description: 5 }, 'description', /string/],
  ['a pinned that is not a boolean', { pinned: 'yes' }, 'pinned', /boolean/],
  ['tags that are not an array', { tags: 'a,b' }, 'tags', /array/],
  ['a tag that is not a string', { tags: ['a', 1] }, 'tags__1', /string/],
  ['a tag that is blank', { tags: [' '] }, 'tags__0', /blank/],
  ['an unknown restriction level', { restriction_level: 22 }, 'restriction_level', /21.*37/],
  ['an unknown default access level', { default_access_level: 'owner' }, 'default_access_level', /'viewer'/],
  ['collaborators that are not an array', { access_controls: {} }, 'access_controls', /array/],
  [
    'a collaborator without an access level',
    { access_controls: [{ user: 1 }] },
    'access_controls__0__access_level',
    /one of/,
  ],
  [
    'a collaborator that is not an id',
    { access_controls: [{ user: 'ada', access_level: 'viewer' }] },
    'access_controls__0__user',
    /UUID/,
  ],
  [
    'an unknown collaborator',
    { access_controls: [{ user: 2_147_483_647, access_level: 'viewer' }] },
    'access_controls__0__user',
    /No user has this id/,
  ],
  [
    'an unknown field of a collaborator',
    { access_controls: [{ user: 1, access_level: 'viewer', colour: 'red' }] },
    'access_controls__0__colour',
    /Unknown.*'colour'/,
  ],
  ['an unknown field', { filters: {} }, 'filters', /Unknown.*'filters'/],
];

describe('a request', () => {
  it.each(invalidRequests)('is rejected for %s', async (_, fields, attr, words) => {
    const id = await create({ name: 'Unchanged' });
    const before = await api.call('GET', `dashboards/${id}`);
    for (const response of [
      await api.call('POST', 'dashboards', { name: 'Rejected', ...fields }),
      await api.call('PATCH', `dashboards/${id}`, fields),
    ]) {
      expect([response.status, response.body]).toMatchObject([400, { type: 'validation_error', attr }]);
      expect(response.body.detail).toMatch(words);
    }
    expect((await api.call('GET', `dashboards/${id}`)).body).toEqual(before.body);
    expect(namesIn(await api.call('GET', 'dashboards?limit=1000'))).not.toContain('Rejected');
  });

  it('that creates a dashboard needs a name', async () => {
    const { status, body } = await api.call('POST', 'dashboards', {});
    expect([status, body]).toMatchObject([400, { code: 'required', attr: 'name' }]);
  });

  it.each(['0', '01', '1e1', 'x', '2147483648', '99999999999'])('for the id %s is 404', async (id) => {
    const statuses = [
      await api.call('GET', `dashboards/${id}`),
      await api.call('PATCH', `dashboards/${id}`, {}),
      await api.call('DELETE', `dashboards/${id}`),
    ].map(({ status }) => status);
    expect(statuses).toEqual([404, 404, 404]);
  });
});

describe('OpenAPI', () => {
  it('describes the operations and the type of every field of a dashboard', async () => {
    const { text } = await api.call('GET', '/api/schema');
    const { paths, components } = JSON.parse(text) as {
      paths: Record<string, Record<string, { parameters: { name: string; schema: object }[] }>>;
      components: { schemas: Record<string, { required: string[]; properties: Record<string, object> }> };
    };
    const { schemas } = components;
    for (const root of ['projects', 'environments']) {
      const below = `/api/${root}/{project_id}`;
      expect(Object.keys(paths[`${below}/dashboards`] ?? {}).sort()).toEqual(['get', 'post']);
      expect(Object.keys(paths[`${below}/dashboards/{id}`] ?? {}).sort()).toEqual(['delete', 'get', 'patch']);
      expect(Object.keys(paths[`${below}/query/check_auth_for_async`] ?? {})).toEqual(['post']);
    }
    const { parameters = [] } = paths['/api/projects/{project_id}/dashboards']?.get ?? {};
    expect(parameters.find(({ name }) => name === 'limit')?.schema).toMatchObject({
      type: 'integer',
      minimum: 1,
      maximum: 1_000,
      default: 100,
    });
    expect(schemas.DashboardRestrictionLevel).toMatchObject({ type: 'integer', enum: [21, 37] });
    expect(schemas.DashboardAccessLevel).toMatchObject({ enum: ['none', 'viewer', 'editor', 'manager'] });
    for (const name of ['Dashboard', 'User'])
      expect(schemas[name]?.required.sort()).toEqual(Object.keys(schemas[name]?.properties ?? {}).sort());
  });
});
