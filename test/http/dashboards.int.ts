import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { scopes } from '../../src/http/scopes.ts';
import type { AccessLevel } from '../../src/http/dashboards/access_levels.ts';
import { createDashboard, type NewDashboard } from '../../src/http/dashboards/dashboards.ts';
import type { DashboardResponse } from '../../src/http/dashboards/schema.ts';
import { type ApiHarness, type ApiResponse, openApiHarness } from './api_harness.ts';
import { createKey } from '../../src/http/accounts/api_keys.ts';
import { createProject } from '../../src/http/accounts/projects.ts';
import { createUser } from '../../src/http/accounts/users.ts';

let api: ApiHarness;
/** The user of the key with which a request is sent, and who created no dashboard. */
let grace: { readonly id: number; readonly authorization: string };
beforeAll(async () => {
  api = await openApiHarness();
  const { pool } = api.database;
  const { id } = await createUser(pool, { email: 'grace@example.com' });
  const project_ids = [api.projectId, api.otherProjectId];
  grace = {
    id,
    authorization: `Bearer ${(await createKey(pool, { user_id: id, project_ids, scopes })).key}`,
  };
});
afterAll(() => api.close());

const create = (given: NewDashboard, project_id = api.projectId): Promise<number> =>
  createDashboard(api.database.pool, { project_id, user_id: api.userId }, given);
const listOf = ({ body }: ApiResponse): DashboardResponse[] => body.results as DashboardResponse[];
const namesIn = (response: ApiResponse): string[] => listOf(response).map(({ name }) => name);
const listedFor = async (authorization: string, id: number): Promise<DashboardResponse | undefined> =>
  listOf(await api.call('GET', 'dashboards?limit=1000', undefined, { authorization })).find(
    (one) => one.id === id,
  );
const ofCreator = (): string => `Bearer ${api.key}`;

describe('a dashboard', () => {
  it('has every documented field', async () => {
    const id = await create({ name: 'Every field' });
    expect(await listedFor(ofCreator(), id)).toStrictEqual({
      id,
      name: 'Every field',
      description: '',
      pinned: false,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      created_by: {
        id: api.userId,
        uuid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        distinct_id: expect.any(String),
        first_name: 'Ada',
        last_name: '',
        email: 'ada@example.com',
        is_email_verified: false,
        mascot_config: {},
        role_at_organization: '',
      },
      is_shared: false,
      deleted: false,
      creation_mode: 'default',
      tags: [],
      restriction_level: 21,
      effective_restriction_level: 21,
      effective_privilege_level: 37,
      user_access_level: 'manager',
    });
  });

  it('has no creator once its user is deleted', async () => {
    const { pool } = api.database;
    const { id: user_id } = await createUser(pool, { email: 'gone@example.com' });
    const id = await createDashboard(pool, { project_id: api.projectId, user_id }, { name: 'An orphan' });
    await pool.query('delete from exportd.users where id = $1', [user_id]);
    expect(await listedFor(ofCreator(), id)).toMatchObject({
      created_by: null,
      user_access_level: 'editor',
    });
  });
});

describe('a user of a dashboard', () => {
  it.each<[string, Omit<NewDashboard, 'name'>, AccessLevel | null, AccessLevel]>([
    // title, fields, the level as a collaborator, the resulting level
    ['by default', {}, null, 'editor'],
    ['by a default of none', { default_access_level: 'none' }, null, 'none'],
    ['by a default of viewer', { default_access_level: 'viewer' }, null, 'viewer'],
    ['by a default of manager', { default_access_level: 'manager' }, null, 'manager'],
    ['by default where it is restricted', { restriction_level: 37 }, null, 'viewer'],
    [
      'by a default of manager where it is restricted',
      { restriction_level: 37, default_access_level: 'manager' },
      null,
      'viewer',
    ],
    [
      'by a default of none where it is restricted',
      { restriction_level: 37, default_access_level: 'none' },
      null,
      'none',
    ],
    ['as a collaborator at none', {}, 'none', 'none'],
    ['as a collaborator at viewer', { default_access_level: 'manager' }, 'viewer', 'viewer'],
    ['as a collaborator at editor', { default_access_level: 'none' }, 'editor', 'editor'],
    ['as a collaborator at manager', { default_access_level: 'viewer' }, 'manager', 'manager'],
    ['as an editor where it is restricted', { restriction_level: 37 }, 'editor', 'editor'],
    ['as a manager where it is restricted', { restriction_level: 37 }, 'manager', 'manager'],
  ])('has access %s', async (name, fields, given, level) => {
    const collaborators = given === null ? [] : [{ user_id: grace.id, access_level: given }];
    const id = await create({ name, ...fields, collaborators });
    const seen = await listedFor(grace.authorization, id);
    const privilege = level === 'viewer' ? 21 : 37;
    expect([seen?.user_access_level, seen?.effective_privilege_level]).toEqual(
      level === 'none' ? [undefined, undefined] : [level, privilege],
    );
    expect(await listedFor(ofCreator(), id)).toMatchObject({
      user_access_level: 'manager',
      effective_privilege_level: 37,
    });
  });

  it('has at most the access of a stricter project', async () => {
    const { pool } = api.database;
    const project = await createProject(pool, { name: 'Strict', dashboard_restriction_level: 37 });
    await create({ name: 'Open?', restriction_level: 21 }, project.id);
    const { key } = await createKey(pool, { user_id: grace.id, project_ids: [project.id], scopes });
    const path = `/api/environments/${project.id}/dashboards`;
    const listed = await api.call('GET', path, undefined, { authorization: `Bearer ${key}` });
    expect(listOf(listed)).toMatchObject([
      {
        restriction_level: 21,
        effective_restriction_level: 37,
        user_access_level: 'viewer',
        effective_privilege_level: 21,
      },
    ]);
  });
});

describe('the list of dashboards', () => {
  const root = () => `http://localhost/api/environments/${api.otherProjectId}/dashboards/`;
  const at = (query: string) =>
    api.call('GET', `/api/environments/${api.otherProjectId}/dashboards/${query}`, undefined, {
      authorization: grace.authorization,
    });

  beforeAll(async () => {
    for (const [name, pinned] of [
      ['beta', false],
      ['Zeta', true],
      ['Alpha', false],
      ['alpha', false],
      ['Eta', true],
    ] as const)
      await create({ name, pinned }, api.otherProjectId);
    // Not counted either.
    await create({ name: 'Hidden', default_access_level: 'none' }, api.otherProjectId);
    await create({ name: 'Only in the shop' });
  });

  it('has pinned dashboards first, then by name ignoring case, then by id, and none of other projects', async () => {
    const response = await at('');
    expect([response.status, response.body]).toMatchObject([200, { count: 5, next: null, previous: null }]);
    expect(Object.keys(response.body)).toEqual(['count', 'next', 'previous', 'results']);
    expect(namesIn(response)).toEqual(['Eta', 'Zeta', 'Alpha', 'alpha', 'beta']);
  });

  it.each([
    ['?limit=2', ['Eta', 'Zeta'], '?limit=2&offset=2', null],
    ['?limit=2&offset=2', ['Alpha', 'alpha'], '?limit=2&offset=4', '?limit=2'],
    ['?limit=2&offset=4', ['beta'], null, '?limit=2&offset=2'],
    ['?limit=2&offset=1', ['Zeta', 'Alpha'], '?limit=2&offset=3', '?limit=2'],
    ['?limit=5', ['Eta', 'Zeta', 'Alpha', 'alpha', 'beta'], null, null],
    ['?offset=4', ['beta'], null, '?limit=100'],
    ['?limit=3&offset=9', [], null, '?limit=3&offset=6'],
  ])('is paged with exact links: %s', async (query, names, next, previous) => {
    const response = await at(query);
    const link = (part: string | null) => (part === null ? null : root() + part);
    expect(response.body).toMatchObject({ count: 5, next: link(next), previous: link(previous) });
    expect(namesIn(response)).toEqual(names);
  });

  it.each([
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=ten', 'limit'],
    ['limit=1.5', 'limit'],
    ['offset=-1', 'offset'],
    ['offset=x', 'offset'],
  ])('rejects %s', async (query, attr) => {
    const { status, body } = await at(`?${query}`);
    expect([status, body]).toMatchObject([400, { type: 'validation_error', attr }]);
  });

  it('accepts a limit of 1000, and is the same below both roots with and without a trailing slash', async () => {
    const responses = [];
    for (const project of ['environments', 'projects'])
      for (const suffix of ['', '/'])
        responses.push(
          await api.call(
            'GET',
            `/api/${project}/${api.otherProjectId}/dashboards${suffix}?limit=1000`,
            undefined,
            { authorization: grace.authorization },
          ),
        );
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
  });

  it('needs the scope dashboard:read, and is the only operation', async () => {
    const { key } = await api.newKey(api.projectId, ['batch_export:read']);
    const rejected = await api.call('GET', 'dashboards', undefined, { authorization: `Bearer ${key}` });
    expect([rejected.status, rejected.body]).toMatchObject([
      403,
      { type: 'permission', detail: expect.stringContaining("'dashboard:read'") },
    ]);
    const withoutKey = await api.call('GET', 'dashboards', undefined, { authorization: '' });
    expect([withoutKey.status, withoutKey.body.type]).toEqual([401, 'authentication_error']);
    expect((await api.call('POST', 'dashboards', { name: 'New' })).status).toBe(405);
  });
});

describe('OpenAPI', () => {
  it('describes the list and the type of every field of a dashboard', async () => {
    const { text } = await api.call('GET', '/api/schema');
    const { paths, components } = JSON.parse(text) as {
      paths: Record<string, Record<string, { parameters: { name: string; schema: object }[] }>>;
      components: { schemas: Record<string, { required: string[]; properties: Record<string, object> }> };
    };
    const { schemas } = components;
    for (const project of ['projects', 'environments'])
      expect(Object.keys(paths[`/api/${project}/{project_id}/dashboards`] ?? {})).toEqual(['get']);
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
