import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Scope, scopes } from '../../src/http/scopes.ts';
import { type ApiHarness, type ApiResponse, openApiHarness } from './api_harness.ts';
import { createKey } from '../../src/http/accounts/api_keys.ts';
import { createProject } from '../../src/http/accounts/projects.ts';
import { createUser } from '../../src/http/accounts/users.ts';

let api: ApiHarness;
let baseUrl: string;
beforeAll(async () => {
  api = await openApiHarness({
    EXPORTD_TRUSTED_PROXIES: '127.0.0.0/8',
    EXPORTD_USER_HEADER: 'X-Forwarded-Email',
  });
  baseUrl = await api.listen();
});
afterAll(() => api.close());

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

/** A user with a key of these scopes. */
async function newUser(
  name: string,
  of: readonly Scope[] = scopes,
): Promise<{ readonly id: number; readonly key: string; readonly keyId: string; readonly email: string }> {
  const { pool } = api.database;
  const email = `${name}@example.com`;
  const { id } = await createUser(pool, { email });
  const key = await createKey(pool, { user_id: id, project_ids: [api.projectId], scopes: of });
  return { id, email, key: key.key, keyId: key.id };
}

const statusWith = async (key: string): Promise<number> =>
  (await api.call('GET', 'batch_exports/', undefined, bearer(key))).status;

const disable = (id: number | string, by = api.key): Promise<ApiResponse> =>
  api.call('POST', `/api/users/${id}/disable/`, undefined, bearer(by));
const enable = (id: number | string): Promise<ApiResponse> => api.call('POST', `/api/users/${id}/enable/`);

const userOf = async (id: number): Promise<unknown> => {
  const { body } = await api.call('GET', '/api/users/?limit=1000');
  return (body.results as { id: number }[]).find((one) => one.id === id);
};

const newestEvent = async (query = ''): Promise<unknown> =>
  ((await api.call('GET', `audit/?limit=1${query}`)).body.results as unknown[])[0];

describe('disabling a user', () => {
  it('is in the audit trail of every project in which keys end, without the key that did it', async () => {
    const { pool } = api.database;
    const { id: projectId } = await createProject(pool, {
      name: 'Elsewhere',
      timezone: 'UTC',
      week_start_day: 'sunday',
    });
    const { id } = await newUser('everywhere');
    await createKey(pool, { user_id: id, project_ids: [projectId], scopes: ['batch_export:read'] });
    const before = await newestEvent();
    await disable(id);
    const { key } = await createKey(pool, {
      user_id: api.userId,
      project_ids: [projectId],
      scopes: ['audit:read'],
    });
    const { body } = await api.call('GET', `/api/projects/${projectId}/audit/`, undefined, bearer(key));
    expect(body.results).toMatchObject([
      {
        action: 'user.disable',
        object: `users/${id}`,
        user: { id: api.userId },
        key: null,
        address: null,
        changes: [{ field: 'disabled', before: false, after: true }],
      },
    ]);
    // Once in that of the caller.
    expect((await api.call('GET', 'audit/?limit=2')).body.results).toMatchObject([
      { action: 'user.disable', object: `users/${id}` },
      before,
    ]);
  });

  it('ends keys and sessions at once, which enabling does not bring back', async () => {
    const { id, key, keyId, email } = await newUser('leaver', ['batch_export:read']);
    const signIn = () =>
      fetch(`${baseUrl}/console/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-exportd-console': '1', origin: baseUrl },
        body: JSON.stringify({ key }),
      });
    const [cookie = ''] = ((await signIn()).headers.get('set-cookie') ?? '').split(';');
    const withCookie = async () =>
      (await api.call('GET', 'batch_exports/', undefined, { authorization: '', cookie })).status;
    expect([await statusWith(key), await withCookie()]).toEqual([200, 200]);

    const disabled = await disable(id);
    expect([disabled.status, disabled.body]).toEqual([
      200,
      expect.objectContaining({
        id,
        email,
        active_keys: 0,
        revoked_keys: 1,
        disabled_at: expect.any(String),
      }),
    ]);
    expect([await statusWith(key), await withCookie(), (await signIn()).status]).toEqual([401, 401, 401]);
    expect(await userOf(id)).toMatchObject({ active_keys: 0, disabled_at: disabled.body.disabled_at });
    expect((await api.call('GET', `keys/${keyId}/`)).body.status).toBe('revoked');
    expect(await newestEvent()).toMatchObject({
      action: 'user.disable',
      object: `users/${id}`,
      changes: [
        { field: 'disabled', before: false, after: true },
        { field: 'active_keys', before: 1, after: 0 },
      ],
    });

    const again = await disable(id);
    expect(again.body).toEqual({ ...disabled.body, revoked_keys: 0 });
    const create = () =>
      api.call('POST', 'keys/', { name: 'New', scopes: ['batch_export:read'], user_id: id });
    const refused = await create();
    expect([refused.status, refused.body.attr, refused.body.detail]).toEqual([
      400,
      'user_id',
      'The user is disabled. Enable the user first.',
    ]);
    expect((await enable(id)).body).toMatchObject({ id, disabled_at: null, active_keys: 0 });
    expect(await newestEvent()).toMatchObject({
      action: 'user.enable',
      changes: [{ field: 'disabled', before: true, after: false }],
    });
    expect([await statusWith(key), (await api.call('POST', `keys/${keyId}/rotate/`)).status]).toEqual([
      401, 403,
    ]);
    const created = await create();
    expect(await statusWith(String(created.body.key))).toBe(200);
  });

  it('leaves the keys that the user created for others, and says how many', async () => {
    const leaver = await newUser('author');
    const other = await newUser('reader', ['query:read']);
    const made = await api.call(
      'POST',
      'keys/',
      { name: 'Of the reader', preset: 'viewer', user_id: other.id },
      bearer(leaver.key),
    );
    expect((await disable(leaver.id)).body).toMatchObject({ active_keys_of_others: 1 });
    expect(await statusWith(String(made.body.key))).toBe(200);
    const { body } = await api.call('GET', 'keys/?limit=1000');
    expect(body.results).toContainEqual(
      expect.objectContaining({ id: made.body.id, created_by: { id: leaver.id, email: leaver.email } }),
    );
  });

  it('lets no key through that is created or rotated meanwhile', async () => {
    for (let round = 0; round < 5; round += 1) {
      const user = await newUser(`racer${round}`);
      const attempts = await Promise.all([
        api.call('POST', 'keys/', { name: 'Own', preset: 'owner' }, bearer(user.key)),
        disable(user.id),
        api.call('POST', `keys/${user.keyId}/rotate/`, {}, bearer(user.key)),
        api.call('POST', 'keys/', { name: 'For', preset: 'viewer', user_id: user.id }),
      ]);
      expect(attempts[1].status).toBe(200);
      const keys = attempts.flatMap(({ body }) => (typeof body.key === 'string' ? [body.key] : []));
      expect(await Promise.all([user.key, ...keys].map(statusWith))).toEqual(
        [user.key, ...keys].map(() => 401),
      );
      expect(await userOf(user.id)).toMatchObject({ active_keys: 0 });
    }
  });

  it('refuses requests in which a proxy names the user', async () => {
    const { id, email } = await newUser('behind-a-proxy', ['query:read']);
    const named = async (method: 'GET' | 'POST', path: string, body?: object) =>
      (await api.call(method, path, body, { 'x-forwarded-email': email.toUpperCase() })).status;
    expect(await named('GET', 'batch_exports/')).toBe(200);
    await disable(id);
    expect([
      await named('GET', 'batch_exports/'),
      await named('POST', 'keys/', { name: 'Mine', preset: 'owner' }),
    ]).toEqual([403, 403]);
    await enable(id);
    expect(await named('GET', 'batch_exports/')).toBe(200);
  });

  it('is not possible for the last user who can administer the installation, also when two disable each other', async () => {
    const { pool } = api.database;
    const one = await newUser('one');
    const two = await newUser('two');
    const ownKeys = `user_id = ${api.userId} and revoked_at is null`;
    await pool.query(`update exportd.api_keys set expires_at = now() where ${ownKeys}`);
    try {
      await pool.query(
        `update exportd.api_keys set expires_at = now() where user_id not in ($1, $2, $3) and revoked_at is null`,
        [one.id, two.id, api.userId],
      );
      const both = await Promise.all([disable(one.id, two.key), disable(two.id, one.key)]);
      const statuses = both.map(({ status }) => status).toSorted((a, b) => a - b);
      expect(statuses[0]).toBe(200);
      // The second was refused as the last one, or its key had ended.
      expect([401, 409]).toContain(statuses[1]);
      const left = both[0].status === 200 ? two : one;
      const last = await disable(left.id, left.key);
      expect([last.status, last.body.code, last.body.detail]).toEqual([
        409,
        'conflict',
        expect.stringContaining(`${left.email} is the only user`),
      ]);
      expect(await statusWith(left.key)).toBe(200);
    } finally {
      await pool.query(`update exportd.api_keys set expires_at = null where ${ownKeys}`);
    }
  });

  it('needs installation:admin, and a user who exists', async () => {
    const { id } = await newUser('bystander', ['query:read']);
    const { key } = await newUser(
      'key-admin',
      scopes.filter((scope) => scope !== 'installation:admin'),
    );
    expect((await disable(id, key)).status).toBe(403);
    expect(await userOf(id)).toMatchObject({ disabled_at: null });
    for (const unknown of ['4711', '0', '-1', '1.5', '0x1', '99999999999', 'ada', '1%20or%201=1'])
      expect([unknown, (await disable(unknown)).status, (await enable(unknown)).status]).toEqual([
        unknown,
        404,
        404,
      ]);
    const body = { user: id };
    expect((await api.call('POST', `/api/users/${id}/disable/`, body)).status).toBe(400);
  });
});

describe('renaming a project', () => {
  const rename = (id: number | string, body: object, by = api.key) =>
    api.call('PATCH', `/api/projects/${id}/`, body, bearer(by));
  const names = async (by = api.key) =>
    ((await api.call('GET', '/api/projects/', undefined, bearer(by))).body.results as { name: string }[]).map(
      ({ name }) => name,
    );

  it('shows the name wherever the project is named, and is in its audit trail', async () => {
    const renamed = await rename(api.projectId, { name: 'Webshop' });
    expect([renamed.status, renamed.body]).toEqual([
      200,
      expect.objectContaining({ id: api.projectId, name: 'Webshop', timezone: 'UTC' }),
    ]);
    expect(await names()).toEqual(['Webshop']);
    expect(await newestEvent()).toMatchObject({
      action: 'project.rename',
      object: `projects/${api.projectId}`,
      changes: [{ field: 'name', before: 'Shop', after: 'Webshop', secret: false }],
    });
    await rename(api.projectId, { name: 'Webshop' });
    expect(await newestEvent()).toMatchObject({ action: 'project.rename', changes: [] });
  });

  it('is in the trail of that project, whichever is the first of the key', async () => {
    const { id, key } = await api.newKey(api.projectId);
    await api.database.pool.query('update exportd.api_keys set project_ids = $2 where id = $1', [
      id,
      [api.projectId, api.otherProjectId],
    ]);
    await rename(api.otherProjectId, { name: 'Another' }, key);
    const url = `/api/projects/${api.otherProjectId}/audit/?action=project.rename`;
    const { body } = await api.call('GET', url, undefined, bearer(key));
    expect(body.results).toEqual([expect.objectContaining({ object: `projects/${api.otherProjectId}` })]);
  });

  it('needs a key of the project with installation:admin, and a name', async () => {
    expect((await rename(api.otherProjectId, { name: 'Mine' })).status).toBe(404);
    for (const unknown of ['4711', '0', '1e0', 'shop', '99999999999'])
      expect([unknown, (await rename(unknown, { name: 'Mine' })).status]).toEqual([unknown, 404]);
    const { key } = await api.newKey(api.projectId, ['key:admin', 'batch_export:write']);
    expect((await rename(api.projectId, { name: 'Mine' }, key)).status).toBe(403);
    for (const body of [
      {},
      { name: ' ' },
      { name: 7 },
      { name: 'x'.repeat(201) },
      { name: 'a\nb' },
      { name: 'Good', timezone: 'UTC' },
    ])
      expect([body, (await rename(api.projectId, body)).status]).toEqual([body, 400]);
    expect(await names()).toEqual(['Webshop']);
  });
});
