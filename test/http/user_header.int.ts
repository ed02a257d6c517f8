import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { minutesAgo } from '../decisions/commander.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';

const header = 'x-forwarded-email';

let api: ApiHarness;
beforeAll(async () => {
  // Requests of the harness come from the loopback address.
  api = await openApiHarness({
    EXPORTD_TRUSTED_PROXIES: '127.0.0.0/8',
    EXPORTD_USER_HEADER: 'X-Forwarded-Email',
  });
});
afterAll(() => api.close());

const ada = () => ({ id: api.userId, email: 'ada@example.com' });

/** The newest event of the trail. */
async function newestEvent(harness = api): Promise<Record<string, unknown>> {
  const [event] = (await harness.call('GET', 'audit/?limit=1')).body.results as Record<string, unknown>[];
  return event ?? {};
}

const createKey = (headers: Readonly<Record<string, string>>, harness = api, by = harness.key) =>
  harness.call(
    'POST',
    'keys/',
    { name: 'CI', scopes: ['batch_export:read'] },
    { authorization: `Bearer ${by}`, ...headers },
  );

const usersNamed = async (email: string, harness = api): Promise<number> => {
  const { rows } = await harness.database.pool.query('select id from exportd.users where lower(email) = $1', [
    email,
  ]);
  return rows.length;
};

describe('the user whom a trusted proxy names', () => {
  it('is who did it in the trail and in created_by, while the owner of the key stays', async () => {
    const { status, body } = await createKey({ [header]: 'grace@example.com' });
    expect([status, body.user]).toEqual([201, ada()]);
    const grace = { id: expect.any(Number), email: 'grace@example.com' };
    expect(body.created_by).toEqual(grace);
    expect(await newestEvent()).toMatchObject({
      action: 'key.create',
      user: grace,
      key: { prefix: api.key.slice(0, 8) },
    });
    const again = await createKey({ [header]: 'Grace@Example.com' });
    expect(again.body.created_by).toEqual(body.created_by);
    expect(await usersNamed('grace@example.com')).toBe(1);
    const rotated = await api.call(
      'POST',
      `keys/${String(body.id)}/rotate/`,
      {},
      { [header]: 'linus@example.com' },
    );
    expect(rotated.body).toMatchObject({ user: ada(), created_by: { email: 'linus@example.com' } });
  });

  it('is created once by requests at the same time', async () => {
    const responses = await Promise.all(
      Array.from({ length: 10 }, () => createKey({ [header]: 'joan@example.com' })),
    );
    expect(new Set(responses.map(({ body }) => (body.created_by as { id: number }).id)).size).toBe(1);
  });

  it('is who changed an export', async () => {
    const id = await api.createExport();
    await api.call('PATCH', `batch_exports/${id}/`, { name: 'Renamed' }, { [header]: 'grace@example.com' });
    expect(await newestEvent()).toMatchObject({
      action: 'batch_export.update',
      user: { email: 'grace@example.com' },
      changes: [{ field: 'name', after: 'Renamed' }],
    });
    const range = { start_at: minutesAgo(3), end_at: minutesAgo(2) };
    await api.call('POST', `batch_exports/${id}/backfills/`, range, { [header]: 'grace@example.com' });
    expect(await newestEvent()).toMatchObject({
      action: 'backfill.create',
      user: { email: 'grace@example.com' },
    });
  });

  it('gets no right by it: neither without a key, nor those of that user', async () => {
    const nobody = await createKey({ authorization: '', [header]: 'ada@example.com' });
    expect(nobody.status).toBe(401);
    const unknown = await createKey({ [header]: 'never@example.com' }, api, 'exk_unknown');
    expect([unknown.status, await usersNamed('never@example.com')]).toEqual([401, 0]);
    const { pool } = api.database;
    const other = await api.newKey(api.projectId);
    await pool.query(
      `with other as (insert into exportd.users (email, distinct_id) values ('mallory@example.com', 'm') returning id)
       update exportd.api_keys set user_id = other.id from other where api_keys.id = $1`,
      [other.id],
    );
    const keyOfAda = (await createKey({})).body;
    const rotated = await api.call(
      'POST',
      `keys/${String(keyOfAda.id)}/rotate/`,
      {},
      { authorization: `Bearer ${other.key}`, [header]: 'ada@example.com' },
    );
    expect(rotated.status).toBe(403);
  });

  it('is shown in the console, whose session keeps the rights of its key', async () => {
    const ofConsole = { authorization: '', 'x-exportd-console': '1', origin: 'http://localhost' };
    const signedIn = await api.call(
      'POST',
      '/console/session',
      { key: api.key },
      { ...ofConsole, [header]: 'grace@example.com' },
    );
    const grace = { id: expect.any(Number), email: 'grace@example.com' };
    expect(signedIn.body.session).toMatchObject({ user: ada(), actor: grace });
    const [event] = (await api.call('GET', 'audit/?action=session.sign_in&limit=1')).body
      .results as unknown[];
    expect(event).toMatchObject({ user: grace });
    const [cookie = ''] = String(signedIn.headers['set-cookie']).split(';');
    const read = (headers: Readonly<Record<string, string>>) =>
      api.call('GET', '/console/session', undefined, { authorization: '', cookie, ...headers });
    expect((await read({})).body.session).toMatchObject({ actor: ada() });
    expect((await read({ [header]: 'linus@example.com' })).body.session).toMatchObject({
      actor: { email: 'linus@example.com' },
    });
  });

  it.each([
    ['no address', 'grace'],
    ['two addresses, of a client and of a proxy that adds its own', 'ada@example.com, grace@example.com'],
    ['too long', `${'g'.repeat(250)}@example.com`],
  ])('is refused when the header is %s', async (_, value) => {
    const { status, body } = await createKey({ [header]: value });
    expect([status, body.code]).toEqual([400, 'invalid_input']);
    expect(body.detail).toContain('EXPORTD_USER_HEADER');
    expect(JSON.stringify(body)).not.toContain(value);
  });

  it.each([{}, { [header]: '' }])('is the owner of the key with the headers %j', async (headers) => {
    expect((await createKey(headers)).body.created_by).toEqual(ada());
  });
});

describe('the header of anyone else', () => {
  it.each([
    [
      'another network is trusted',
      { EXPORTD_TRUSTED_PROXIES: '10.0.0.0/8,fd00::/8', EXPORTD_USER_HEADER: header },
    ],
    ['no header is set', { EXPORTD_TRUSTED_PROXIES: '127.0.0.1' }],
  ])('is ignored where %s, also with X-Forwarded-For', async (_, settings) => {
    const direct = await openApiHarness(settings);
    try {
      for (const more of [
        {},
        { 'x-forwarded-for': '10.0.0.1' },
        { 'x-forwarded-for': '10.0.0.1, 10.0.0.2' },
      ]) {
        const { status, body } = await createKey({ [header]: 'mallory@example.com', ...more }, direct);
        expect([status, (body.created_by as { email: string }).email]).toEqual([201, 'ada@example.com']);
        expect(await newestEvent(direct)).toMatchObject({ user: { email: 'ada@example.com' } });
      }
      expect(await usersNamed('mallory@example.com', direct)).toBe(0);
      expect((await createKey({ [header]: 'not an address' }, direct)).status).toBe(201);
    } finally {
      await direct.close();
    }
  });
});
