import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '../setup/wait_for.ts';
import { presets } from '../../src/http/scopes.ts';
import { inTransaction } from '../../src/journal/database.ts';
import { type ApiHarness, openApiHarness } from './api_harness.ts';
import { revokeKey } from '../../src/http/accounts/api_keys.ts';

let api: ApiHarness;
let baseUrl: string;
beforeAll(async () => {
  api = await openApiHarness();
  baseUrl = await api.listen();
});
afterAll(() => api.close());

interface CreatedKey {
  readonly id: string;
  readonly key: string;
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

/** Creates a key through the API, with the key of the harness unless `by` is another one. */
async function createKey(more: Readonly<Record<string, unknown>> = {}, by = api.key): Promise<CreatedKey> {
  const body = { name: 'Nightly job', scopes: ['batch_export:read'], ...more };
  const response = await api.call('POST', 'keys/', body, bearer(by));
  if (response.status !== 201) throw new Error(`Status ${response.status}: ${response.text}`);
  return response.body as unknown as CreatedKey;
}

/** The status of a read with a key. */
const statusWith = async (key: string, path = 'batch_exports/'): Promise<number> =>
  (await api.call('GET', path, undefined, bearer(key))).status;

const retrieve = async (id: string) => (await api.call('GET', `keys/${id}/`)).body;

/** A key of another user with all scopes of the project. */
async function keyOfOtherUser(email: string): Promise<CreatedKey> {
  const { pool } = api.database;
  const created = await api.newKey(api.projectId);
  await pool.query(
    `with other as (insert into exportd.users (email, distinct_id) values ($1, $1) returning id)
     update exportd.api_keys set user_id = other.id from other where api_keys.id = $2`,
    [email, created.id],
  );
  return created;
}

describe('a key', () => {
  it('is returned once, has a name, an owner and a prefix, and works with its scopes alone', async () => {
    const response = await api.call('POST', 'keys/', { name: 'Nightly job', scopes: ['batch_export:read'] });
    expect(response.status).toBe(201);
    const { key, ...described } = response.body as unknown as CreatedKey & Record<string, unknown>;
    expect(key).toMatch(/^exk_[\w-]{43}$/);
    expect(response.headers.location).toMatch(new RegExp(`/keys/${described.id}/$`));
    expect(described).toEqual({
      id: described.id,
      name: 'Nightly job',
      prefix: key.slice(0, 8),
      user: { id: api.userId, email: 'ada@example.com' },
      created_by: { id: api.userId, email: 'ada@example.com' },
      projects: [api.projectId],
      scopes: ['batch_export:read'],
      preset: null,
      status: 'active',
      created_at: expect.any(String),
      expires_at: null,
      last_used_at: null,
      revoked_at: null,
      rotated_from: null,
      created_with: expect.any(String),
      active_descendants: 0,
    });
    const listed = await api.call('GET', 'keys/');
    expect(listed.body.results).toContainEqual(described);
    expect(await retrieve(described.id)).toEqual(described);
    expect(listed.text).not.toContain(key);
    expect(listed.text).not.toContain('hash');
    expect(await statusWith(key)).toBe(200);
    expect(await statusWith(key, 'dashboards/')).toBe(403);
  });

  it('is listed by its status', async () => {
    const ended = await createKey({ name: 'Ended' });
    await api.call('DELETE', `keys/${ended.id}/`);
    const active = await createKey({ name: 'Working' });
    const listed = async (query: string) => {
      const { body } = await api.call('GET', `keys/${query}`);
      const ids = (body.results as { id: string }[]).map(({ id }) => id);
      return [active.id, ended.id].map((id) => ids.includes(id));
    };
    expect(await listed('')).toEqual([true, true]);
    expect(await listed('?status=active')).toEqual([true, false]);
    expect(await listed('?status=revoked,expired')).toEqual([false, true]);
    const counted = (await api.call('GET', 'keys/?status=revoked&limit=1')).body;
    expect((counted.results as { id: string }[]).map(({ id }) => id)).toEqual([ended.id]);
    const unknown = await api.call('GET', 'keys/?status=lost');
    expect([unknown.status, unknown.body.attr]).toEqual([400, 'status']);
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['no name', { name: ' ' }, 'name'],
    ['no scope', { scopes: [] }, 'scopes'],
    ['neither scopes nor a preset', { scopes: undefined }, 'scopes'],
    ['both scopes and a preset', { preset: 'viewer' }, 'preset'],
    ['an unknown preset', { scopes: undefined, preset: 'admin' }, 'preset'],
    ['a preset that is a property of every object', { scopes: undefined, preset: 'toString' }, 'preset'],
    ['a scope that is a property of every object', { scopes: ['constructor'] }, 'scopes__0'],
    ['an unknown scope', { scopes: ['batch_export:read', 'everything'] }, 'scopes__1'],
    ['a project that the creating key does not cover', { projects: [2] }, 'projects'],
    ['a project that does not exist', { projects: [4711] }, 'projects'],
    ['no project', { projects: [] }, 'projects'],
    ['an expiry in the past', { expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    ['a field that only responses have', { key: 'exk_mine' }, 'key'],
  ])('with %s is rejected', async (_, more, attr) => {
    const body = { name: 'Key', scopes: ['batch_export:read'], ...more };
    const response = await api.call('POST', 'keys/', body);
    expect([response.status, response.body.attr]).toEqual([400, attr]);
  });

  it('cannot create one with scopes that it lacks', async () => {
    const admin = await createKey({ scopes: ['key:admin', 'query:read'] });
    const body = { name: 'More', scopes: ['query:read', 'batch_export:write'] };
    const response = await api.call('POST', 'keys/', body, bearer(admin.key));
    expect([response.status, response.body.attr]).toEqual([400, 'scopes']);
    expect(response.body.detail).toContain('batch_export:write');
  });

  it.each([
    ['viewer', [200, 403, 403, 403]],
    ['editor', [200, 400, 403, 403]],
    ['owner', [200, 400, 200, 200]],
  ] as const)('of the preset %s does what the preset says', async (preset, expected) => {
    const { id, key } = await createKey({ scopes: undefined, preset });
    expect(await retrieve(id)).toMatchObject({ preset, scopes: presets[preset].scopes });
    const statuses = [
      await statusWith(key, 'batch_exports/'),
      (await api.call('POST', 'batch_exports/', {}, bearer(key))).status,
      await statusWith(key, 'keys/'),
      await statusWith(key, '/api/users/'),
    ];
    expect(statuses).toEqual(expected);
  });

  it('keeps its scopes when a preset grows, and then has none', async () => {
    const { id } = await createKey({ scopes: undefined, preset: 'viewer' });
    await api.database.pool.query('update exportd.api_keys set scopes = $2 where id = $1', [
      id,
      ['batch_export:read', 'query:read'],
    ]);
    expect(await retrieve(id)).toMatchObject({ preset: null, scopes: ['batch_export:read', 'query:read'] });
  });

  it.each(['editor', 'owner'])('cannot create one of the preset %s without its scopes', async (preset) => {
    const admin = await createKey({ scopes: ['key:admin', ...presets.viewer.scopes] });
    const create = (more: object) => api.call('POST', 'keys/', { name: 'More', ...more }, bearer(admin.key));
    const refused = await create({ preset });
    expect([refused.status, refused.body.attr]).toEqual([400, 'preset']);
    expect((await create({ preset: 'viewer' })).status).toBe(201);
  });

  it('stops at its expiry', async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const { id, key } = await createKey({ expires_at });
    expect(await statusWith(key)).toBe(200);
    await api.database.pool.query('update exportd.api_keys set expires_at = now() where id = $1', [id]);
    expect(await statusWith(key)).toBe(401);
    expect(await retrieve(id)).toMatchObject({ status: 'expired' });
  });

  it('has the longest lifetime that the operator allows', async () => {
    const capped = await openApiHarness({ EXPORTD_KEY_MAX_LIFETIME: '30d' });
    try {
      const create = (expires_at?: string) =>
        capped.call('POST', 'keys/', { name: 'Key', scopes: ['query:read'], expires_at });
      const { body } = await create();
      const lifetime = Date.parse(String(body.expires_at)) - Date.parse(String(body.created_at));
      expect(Math.round(lifetime / 1_000)).toBe(30 * 86_400);
      const late = await create(new Date(Date.now() + 31 * 86_400_000).toISOString());
      expect([late.status, late.body.attr]).toEqual([400, 'expires_at']);
      expect(late.body.detail).toContain('EXPORTD_KEY_MAX_LIFETIME');
    } finally {
      await capped.close();
    }
  });

  it('shows the minute of its last use, written once a minute', async () => {
    const { pool } = api.database;
    const { id, key } = await createKey();
    await pool.query(
      `create table public.key_writes (at timestamptz);
       create function public.count_key_write() returns trigger language plpgsql as
         $$ begin insert into public.key_writes values (clock_timestamp()); return null; end $$;
       create trigger count_key_writes after update on exportd.api_keys for each row
         when (new.id = '${id}') execute function public.count_key_write();`,
    );
    const minute = () => Math.floor(Date.now() / 60_000);
    const before = minute();
    await Promise.all(Array.from({ length: 20 }, () => statusWith(key)));
    const used = await waitFor(async () => (await retrieve(id)).last_used_at, 'the last use is stored');
    await statusWith(key);
    const minutes = minute() - before + 1;
    expect(Date.parse(String(used)) % 60_000).toBe(0);
    const { rows } = await pool.query('select at from public.key_writes');
    expect(rows.length).toBeLessThanOrEqual(minutes);
    await pool.query('drop trigger count_key_writes on exportd.api_keys');
  });
});

describe('rotating a key', () => {
  it('creates its successor, and both work until the overlap ends', async () => {
    const old = await createKey({ name: 'CI', scopes: ['batch_export:read', 'query:read'] });
    const response = await api.call('POST', `keys/${old.id}/rotate/`, { overlap_seconds: 3_600 });
    expect(response.status).toBe(201);
    const { id, key } = response.body as unknown as CreatedKey;
    expect(response.body).toMatchObject({
      name: 'CI',
      scopes: ['batch_export:read', 'query:read'],
      projects: [api.projectId],
      rotated_from: old.id,
      expires_at: null,
    });
    expect(id).not.toBe(old.id);
    expect(await Promise.all([statusWith(old.key), statusWith(key)])).toEqual([200, 200]);
    const { expires_at } = await retrieve(old.id);
    expect(Math.abs(Date.parse(String(expires_at)) - Date.now() - 3_600_000)).toBeLessThan(600_000);
  });

  it('without an overlap ends the old one at once', async () => {
    const old = await createKey();
    const { body } = await api.call('POST', `keys/${old.id}/rotate/`, { overlap_seconds: 0 });
    expect(await statusWith(old.key)).toBe(401);
    expect(await statusWith(String(body.key))).toBe(200);
    const again = await api.call('POST', `keys/${old.id}/rotate/`);
    expect([again.status, again.body.code]).toEqual([409, 'conflict']);
  });

  it('never lengthens the life of the old one', async () => {
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const old = await createKey({ expires_at });
    await api.call('POST', `keys/${old.id}/rotate/`, { overlap_seconds: 86_400 });
    expect((await retrieve(old.id)).expires_at).toBe(expires_at);
  });

  it('is for its owner, and for keys with all of its scopes', async () => {
    const other = await keyOfOtherUser('grace@example.com');
    const foreign = await api.call('POST', `keys/${other.id}/rotate/`);
    expect([foreign.status, foreign.body.code]).toEqual([403, 'permission_denied']);
    const strong = await createKey({ scopes: ['batch_export:write'] });
    const admin = await createKey({ scopes: ['key:admin'] });
    const escalated = await api.call('POST', `keys/${strong.id}/rotate/`, {}, bearer(admin.key));
    expect([escalated.status, escalated.body.code]).toEqual([403, 'permission_denied']);
  });
});

describe('a key that was created with another one', () => {
  const soon = () => new Date(Date.now() + 3_600_000).toISOString();
  const admin = { scopes: ['key:admin', 'batch_export:read'] };
  const expiryOf = async (id: string) => (await retrieve(id)).expires_at;

  it('expires no later', async () => {
    const expires_at = soon();
    const parent = await createKey({ ...admin, expires_at });
    for (const more of [{}, { expires_at: null }]) {
      const { id } = await createKey(more, parent.key);
      expect(await expiryOf(id)).toBe(expires_at);
      expect(await retrieve(id)).toMatchObject({ created_with: parent.id });
    }
    const earlier = new Date(Date.parse(expires_at) - 1_000).toISOString();
    expect(await expiryOf((await createKey({ expires_at: earlier }, parent.key)).id)).toBe(earlier);
    const later = { name: 'Key', scopes: ['batch_export:read'], expires_at: '2099-01-01T00:00:00Z' };
    const refused = await api.call('POST', 'keys/', later, bearer(parent.key));
    expect([refused.status, refused.body.attr]).toEqual([400, 'expires_at']);
    expect(refused.body.detail).toContain(expires_at);
  });

  it('is no successor that outlives it, but of itself', async () => {
    const parent = await createKey({ ...admin, expires_at: soon() });
    const lasting = await createKey();
    const rotate = (id: string) => api.call('POST', `keys/${id}/rotate/`, {}, bearer(parent.key));
    const refused = await rotate(lasting.id);
    expect([refused.status, refused.body.code]).toEqual([403, 'permission_denied']);
    const own = await rotate(parent.id);
    expect([own.status, own.body.created_with, own.body.rotated_from]).toEqual([201, parent.id, parent.id]);
    expect(Date.parse(String(own.body.expires_at)) - Date.now()).toBeLessThan(2 * 3_600_000);
  });

  it('is revoked with it in one order, so that two who do so at once never deadlock', async () => {
    const parent = await createKey(admin);
    // Two of which the older one, which a table has first, is the later one by id.
    const made = [(await createKey({}, parent.key)).id];
    let [first, second] = ['', ''];
    while (first <= second) {
      made.push((await createKey({}, parent.key)).id);
      [first = '', second = ''] = made.slice(-2);
    }
    const { pool } = api.database;
    const blocked = async () =>
      (
        await pool.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
             and query like '%recursive descendant%'`,
        )
      ).rowCount !== 0;
    const lock = 'select from exportd.api_keys where id = $1 for update';
    let revoked: Promise<number> | undefined;
    await inTransaction(pool, async (connection) => {
      await connection.query(lock, [second]);
      revoked = revokeKey(pool, parent.id, undefined, 'descendants');
      await waitFor(blocked, 'the revocation waits');
      await connection.query(lock, [first]);
    });
    expect(await revoked).toBe(made.length + 1);
  });

  it('stays when that is revoked, which says so and can end it', async () => {
    const parent = await createKey(admin);
    const child = await createKey(admin, parent.key);
    const grandchild = await createKey({}, child.key);
    const sibling = await createKey();
    expect(await retrieve(parent.id)).toMatchObject({ active_descendants: 2 });
    await api.call('DELETE', `keys/${parent.id}/`);
    expect(await statusWith(grandchild.key)).toBe(200);
    expect(await retrieve(parent.id)).toMatchObject({ status: 'revoked', active_descendants: 2 });
    expect((await api.call('DELETE', `keys/${parent.id}/?descendants=true`)).status).toBe(204);
    expect(await Promise.all([child, grandchild, sibling].map(({ key }) => statusWith(key)))).toEqual([
      401, 401, 200,
    ]);
    expect(await retrieve(parent.id)).toMatchObject({ active_descendants: 0 });
    const unclear = await api.call('DELETE', `keys/${sibling.id}/?descendants=yes`);
    expect([unclear.status, unclear.body.attr]).toEqual([400, 'descendants']);
  });
});

describe('revoking a key', () => {
  it('ends it and its sessions at once', async () => {
    const { id, key } = await createKey();
    const signedIn = await fetch(`${baseUrl}/console/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-exportd-console': '1', origin: baseUrl },
      body: JSON.stringify({ key }),
    });
    const [cookie = ''] = (signedIn.headers.get('set-cookie') ?? '').split(';');
    expect((await api.call('DELETE', `keys/${id}/`)).status).toBe(204);
    expect(await statusWith(key)).toBe(401);
    expect((await api.call('GET', 'batch_exports/', undefined, { authorization: '', cookie })).status).toBe(
      401,
    );
    expect(await retrieve(id)).toMatchObject({ status: 'revoked', revoked_at: expect.any(String) });
    expect((await api.call('DELETE', `keys/${id}/`)).status).toBe(204);
  });

  it('of other users is for admins of the project', async () => {
    const other = await keyOfOtherUser('joan@example.com');
    expect((await api.call('DELETE', `keys/${other.id}/`)).status).toBe(204);
    expect(await statusWith(other.key)).toBe(401);
  });
});

describe('a key of several projects', () => {
  let both: CreatedKey;
  beforeAll(async () => {
    const wide = await api.newKey(api.projectId);
    await api.database.pool.query('update exportd.api_keys set project_ids = $2 where id = $1', [
      wide.id,
      [api.projectId, api.otherProjectId],
    ]);
    both = await createKey({ projects: [api.projectId, api.otherProjectId] }, wide.key);
  });

  const inOther = (path: string) => `/api/projects/${api.otherProjectId}/${path}`;

  it('reads each of them and no other, and lists them', async () => {
    expect(await statusWith(both.key)).toBe(200);
    expect(await statusWith(both.key, inOther('batch_exports/'))).toBe(200);
    expect(await statusWith(both.key, '/api/projects/4711/batch_exports/')).toBe(404);
    const { body } = await api.call('GET', '/api/projects/', undefined, bearer(both.key));
    expect((body.results as { id: number }[]).map(({ id }) => id)).toEqual([
      api.projectId,
      api.otherProjectId,
    ]);
  });

  it('keeps what it creates in the project of the path', async () => {
    const export_ = await api.createExport();
    expect(await statusWith(both.key, `batch_exports/${export_}/`)).toBe(200);
    expect(await statusWith(both.key, inOther(`batch_exports/${export_}/`))).toBe(404);
  });

  it('shows an admin of one project only that one, and loses only that one when revoked there', async () => {
    const seen = (await retrieve(both.id)) as { projects: number[] };
    expect(seen.projects).toEqual([api.projectId]);
    expect((await api.call('POST', `keys/${both.id}/rotate/`)).status).toBe(403);
    expect((await api.call('DELETE', `keys/${both.id}/`)).status).toBe(204);
    expect(await statusWith(both.key)).toBe(404);
    expect(await statusWith(both.key, inOther('batch_exports/'))).toBe(200);
  });
});

describe('a query', () => {
  it('is read and cancelled by keys of the user who sent it alone', async () => {
    const client_query_id = 'report-of-ada';
    const query = { kind: 'DialectQuery', query: 'select 1' };
    expect((await api.call('POST', 'query/', { query, client_query_id })).status).toBe(200);
    const other = await keyOfOtherUser('linus@example.com');
    const second = await createKey({ scopes: ['query:read'] });
    expect(await statusWith(second.key, `query/${client_query_id}/`)).toBe(200);
    expect(await statusWith(other.key, `query/${client_query_id}/`)).toBe(404);
    const cancelled = await api.call('DELETE', `query/${client_query_id}/`, undefined, bearer(other.key));
    expect(cancelled.status).toBe(404);
    const forced = { query, client_query_id, refresh: 'force_blocking' };
    const taken = await api.call('POST', 'query/', forced, bearer(other.key));
    expect([taken.status, taken.body.attr]).toEqual([409, 'client_query_id']);
  });
});

describe('a key with installation:admin', () => {
  const installer = ['installation:admin', 'key:admin', 'audit:read', 'batch_export:read'];
  let admin: CreatedKey;
  beforeAll(async () => {
    admin = await api.newKey(api.projectId, installer);
  });

  const post = (path: string, body: object) => api.call('POST', path, body, bearer(admin.key));
  const audited = async (action: string) =>
    (await api.call('GET', `audit/?action=${action}`, undefined, bearer(admin.key))).body.results as Record<
      string,
      unknown
    >[];

  it('is not made with a key that lacks the scope: the first is made with the database', async () => {
    const keyAdmin = await createKey({ scopes: ['key:admin', 'query:read'] });
    const body = { name: 'More', scopes: ['query:read', 'installation:admin'] };
    const refused = await api.call('POST', 'keys/', body, bearer(keyAdmin.key));
    expect([refused.status, refused.body.attr]).toEqual([400, 'scopes']);
    expect(refused.body.detail).toContain('installation:admin');
  });

  it('creates a user, and a key that the user owns', async () => {
    const given = { email: 'Mary@Example.com', first_name: 'Mary', role_at_organization: 'Analyst' };
    const created = await post('/api/users/', given);
    expect([created.status, created.body]).toEqual([201, expect.objectContaining(given)]);
    const { id } = created.body as { id: number };
    const listed = await api.call('GET', '/api/users/?limit=1000', undefined, bearer(admin.key));
    expect(listed.body).toMatchObject({ next: null, previous: null });
    expect(listed.body.results).toContainEqual(created.body);
    expect(listed.body.count).toBe((listed.body.results as unknown[]).length);
    const key = await post('keys/', { name: 'Mary', scopes: ['batch_export:read'], user_id: id });
    expect([key.status, key.body]).toEqual([
      201,
      expect.objectContaining({
        user: { id, email: 'Mary@Example.com' },
        created_by: { id: api.userId, email: 'ada@example.com' },
        projects: [api.projectId],
      }),
    ]);
    expect(await statusWith(String(key.body.key))).toBe(200);
    expect((await audited('user.create'))[0]).toMatchObject({
      object: `users/${id}`,
      outcome: 'done',
      key: { id: admin.id },
    });
  });

  it('creates a project, and gets access to it', async () => {
    const given = { name: 'Tokyo', timezone: 'Asia/Tokyo', week_start_day: 'monday' };
    const created = await post('/api/projects/', { ...given, id: 4_000 });
    expect([created.status, created.body]).toEqual([
      201,
      { id: 4_000, ...given, external_id: expect.stringMatching(/^exportd-/) },
    ]);
    const inTokyo = '/api/projects/4000/batch_exports/';
    expect(await statusWith(admin.key, inTokyo)).toBe(200);
    expect(await statusWith(api.key, inTokyo)).toBe(404);
    const next = await post('/api/projects/', { name: 'Next' });
    expect([next.status, next.body]).toEqual([
      201,
      expect.objectContaining({ id: 4_001, timezone: 'UTC', week_start_day: 'sunday' }),
    ]);
    expect(await statusWith(admin.key)).toBe(200);
    expect((await audited('project.create')).map(({ object }) => object)).toEqual([
      'projects/4001',
      'projects/4000',
    ]);
  });

  it('finds an id also after the highest one', async () => {
    const last = 2_147_483_647;
    expect((await post('/api/projects/', { name: 'Last', id: last })).status).toBe(201);
    const next = await post('/api/projects/', { name: 'Not after it' });
    expect([next.status, Number(next.body.id) < last]).toEqual([201, true]);
  });

  it.each<[string, string, object, string]>([
    ['a malformed address', '/api/users/', { email: 'mary' }, 'email'],
    ['no address', '/api/users/', {}, 'email'],
    ['a taken address, in other letters', '/api/users/', { email: 'ADA@example.com' }, 'email'],
    ['a name of two lines', '/api/users/', { email: 'a@example.com', first_name: 'A\nB' }, 'first_name'],
    ['an unknown time zone', '/api/projects/', { name: 'Mars', timezone: 'Mars/Base' }, 'timezone'],
    ['a taken id', '/api/projects/', { name: 'Shop', id: 1 }, 'id'],
    ['an id that PostgreSQL cannot store', '/api/projects/', { name: 'Shop', id: 2_147_483_648 }, 'id'],
    ['another first day', '/api/projects/', { name: 'Shop', week_start_day: 'friday' }, 'week_start_day'],
    ['no name', '/api/projects/', { name: ' ' }, 'name'],
    ['an unknown owner', 'keys/', { name: 'K', scopes: ['key:admin'], user_id: 4_711 }, 'user_id'],
  ])('is told the field of %s', async (_, path, body, attr) => {
    const { status, body: answer } = await post(path, body);
    expect([status, answer.attr]).toEqual([400, attr]);
    // A value of the body may be a secret.
    expect(String(answer.detail)).not.toMatch(/mary|ada@|mars\/base|4711/i);
  });

  it('is needed for the key of another user', async () => {
    const other = await createKey({ scopes: ['key:admin', 'query:read'] });
    const give = (user_id: number) =>
      api.call('POST', 'keys/', { name: 'Key', scopes: ['query:read'], user_id }, bearer(other.key));
    const refused = await give(api.userId + 1);
    expect([refused.status, refused.body.code, refused.body.attr]).toEqual([
      403,
      'permission_denied',
      'user_id',
    ]);
    expect((await give(api.userId)).status).toBe(201);
  });
});
