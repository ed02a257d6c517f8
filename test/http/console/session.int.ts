import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { version } from '../../../src/telemetry/version.ts';
import { type ApiHarness, type ApiResponse, openApiHarness } from '../api_harness.ts';
import { revokeKey } from '../../../src/http/accounts/api_keys.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
});
afterAll(() => api.close());

/** What the console's own requests send. */
const ofConsole = { authorization: '', 'x-exportd-console': '1', origin: 'http://localhost' };

const signIn = (key: string, headers: Record<string, string> = ofConsole) =>
  api.call('POST', '/console/session', { key }, headers);

const cookieOf = ({ headers }: ApiResponse): string => {
  const cookie = headers['set-cookie'];
  return typeof cookie === 'string' ? cookie : '';
};

/** The header that a browser sends back. */
const sentCookie = (response: ApiResponse): string => cookieOf(response).split(';', 1)[0] ?? '';

/** The status of a read with a cookie. */
const statusWith = async (cookie: string): Promise<number> =>
  (await api.call('GET', 'batch_exports/', undefined, { authorization: '', cookie })).status;

describe('signing in', () => {
  it('makes a session in a cookie that scripts and other sites cannot use, and says what it may do', async () => {
    const { key } = await api.newKey(api.projectId, ['batch_export:read']);
    const response = await signIn(key);
    expect(response.status).toBe(200);
    expect(cookieOf(response)).toMatch(
      /^exportd_session=[\w-]{43}; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    expect(cookieOf(response)).not.toContain(key);
    expect(response.body).toEqual({
      session: {
        user: { id: api.userId, first_name: 'Ada', last_name: '', email: 'ada@example.com' },
        actor: { id: api.userId, email: 'ada@example.com' },
        project: expect.objectContaining({ id: api.projectId, name: 'Shop' }),
        projects: [expect.objectContaining({ id: api.projectId, name: 'Shop' })],
        scopes: ['batch_export:read'],
        key: { id: expect.any(String), name: '', prefix: key.slice(0, 8) },
        version,
        temporal_ui: `http://temporal.test:8233/namespaces/default/workflows?query=${encodeURIComponent(`ExportdProject="${api.projectId}"`)}`,
      },
    });
    const cookie = sentCookie(response);
    const again = await api.call('GET', '/console/session', undefined, { authorization: '', cookie });
    expect(again.body).toEqual(response.body);
    expect(again.headers['cache-control']).toBe('no-store');
  });

  it('rejects an unknown key and one that was revoked, in the field of the form', async () => {
    const revoked = await api.newKey(api.projectId);
    await revokeKey(api.database.pool, revoked.id);
    for (const key of ['exk_unknown', revoked.key]) {
      const response = await signIn(key);
      expect([response.status, response.body.code, response.body.attr]).toEqual([
        401,
        'authentication_failed',
        'key',
      ]);
      expect(cookieOf(response)).toBe('');
    }
  });

  it('without a user is not an error, since the console asks at every start', async () => {
    const { status, body } = await api.call('GET', '/console/session', undefined, { authorization: '' });
    expect([status, body]).toEqual([200, { session: null }]);
  });

  it('ends by signing out, also for those who copied the cookie', async () => {
    const cookie = sentCookie(await signIn(api.key));
    expect(await statusWith(cookie)).toBe(200);
    const signedOut = await api.call('DELETE', '/console/session', undefined, { ...ofConsole, cookie });
    expect(signedOut.status).toBe(204);
    expect(cookieOf(signedOut)).toMatch(/^exportd_session=; .*Expires=Thu, 01 Jan 1970/);
    expect(await statusWith(cookie)).toBe(401);
    const after = await api.call('GET', '/console/session', undefined, { authorization: '', cookie });
    expect(after.body).toEqual({ session: null });
    expect(cookieOf(after)).toMatch(/^exportd_session=; /);
  });

  it.each([
    ['revoked', 'revoked_at'],
    ['expired', 'expires_at'],
  ])('ends at once when the key is %s', async (_, column) => {
    const { id, key } = await api.newKey(api.projectId);
    const cookie = sentCookie(await signIn(key));
    await api.database.pool.query(`update exportd.api_keys set ${column} = now() where id = $1`, [id]);
    expect(await statusWith(cookie)).toBe(401);
  });

  it.each([
    ['its lifetime is over', 'expires_at = now()'],
    ['it was not used for too long', "last_seen_at = now() - interval '1 year'"],
  ])('ends when %s', async (_, change) => {
    const cookie = sentCookie(await signIn(api.key));
    await api.database.pool.query(`update exportd.console_sessions set ${change}`);
    expect(await statusWith(cookie)).toBe(401);
  });

  it('ends everywhere on request, and for this user alone', async () => {
    const { pool } = api.database;
    const other = await api.newKey(api.projectId);
    await pool.query(
      `with other as (insert into exportd.users (email, distinct_id) values ('grace@example.com', 'grace') returning id)
       update exportd.api_keys set user_id = other.id from other where api_keys.id = $1`,
      [other.id],
    );
    const [here, there] = [sentCookie(await signIn(api.key)), sentCookie(await signIn(api.key))];
    const ofOther = sentCookie(await signIn(other.key));
    const headers = { ...ofConsole, cookie: here };
    const response = await api.call('DELETE', '/console/sessions', undefined, headers);
    expect([response.status, response.body]).toEqual([200, { ended: expect.any(Number) }]);
    expect([await statusWith(here), await statusWith(there)]).toEqual([401, 401]);
    expect(await statusWith(ofOther)).toBe(200);
  });

  it('is stored as a hash, with the browser and the address', async () => {
    const headers = { ...ofConsole, 'user-agent': `Browser/1 ${'x'.repeat(1_000)}` };
    const cookie = sentCookie(await signIn(api.key, headers));
    const { rows } = await api.database.pool.query<{ row: string; user_agent: string; address: string }>(
      `select row::text as row, user_agent, address from exportd.console_sessions row
       order by created_at desc limit 1`,
    );
    expect(rows[0]?.row).not.toContain(cookie.split('=')[1]);
    expect(rows[0]).toMatchObject({ address: '127.0.0.1', user_agent: expect.stringMatching(/^Browser/) });
    expect(rows[0]?.user_agent).toHaveLength(200);
  });

  it('is no API key in a cookie', async () => {
    expect(await statusWith(`exportd_session=${api.key}`)).toBe(401);
  });

  it('sets a cookie for https alone where exportd is reached by https', async () => {
    const secure = await openApiHarness({ EXPORTD_BASE_URL: 'https://exportd.example.com' });
    try {
      const response = await secure.call('POST', '/console/session', { key: secure.key }, ofConsole);
      expect(cookieOf(response)).toMatch(/^__Host-exportd_session=[\w-]{43}; Max-Age=\d+; Path=\/; /);
      expect(cookieOf(response)).toContain('; Secure');
      expect(cookieOf(response)).not.toContain('Domain');
      const cookie = sentCookie(response);
      const read = (sent: string) =>
        secure.call('GET', 'batch_exports/', undefined, { authorization: '', cookie: sent });
      expect((await read(cookie)).status).toBe(200);
      // Another port of the host, without https, can set a cookie of this name.
      expect((await read(cookie.replace('__Host-', ''))).status).toBe(401);
    } finally {
      await secure.close();
    }
  });
});

describe('below the path of a proxy', () => {
  it('the cookie has that path, also over https', async () => {
    const secure = await openApiHarness({ EXPORTD_BASE_URL: 'https://example.com/tools/exportd/' });
    try {
      const response = await secure.call('POST', '/console/session', { key: secure.key }, ofConsole);
      expect(cookieOf(response)).toMatch(
        /^__Secure-exportd_session=[\w-]{43}; Max-Age=\d+; Path=\/tools\/exportd; HttpOnly; Secure; /,
      );
      const cookie = sentCookie(response);
      for (const path of ['', '/tools/exportd'])
        expect(
          (await secure.call('GET', `${path}/console/session`, undefined, { authorization: '', cookie }))
            .body,
        ).toMatchObject({ session: { project: { id: secure.projectId } } });
    } finally {
      await secure.close();
    }
  });
});

describe('the cookie', () => {
  let cookie: string;
  beforeAll(async () => {
    cookie = sentCookie(await signIn(api.key));
  });

  it('authenticates reads of the API, with the scopes of the key', async () => {
    expect((await api.call('GET', 'batch_exports/', undefined, { authorization: '', cookie })).status).toBe(
      200,
    );
    const { key } = await api.newKey(api.projectId, ['query:read']);
    const narrow = sentCookie(await signIn(key));
    const rejected = await api.call('GET', 'batch_exports/', undefined, {
      authorization: '',
      cookie: narrow,
    });
    expect(rejected.status).toBe(403);
  });

  const anotherSite = 'https://evil.example.com';
  it.each<[string, Record<string, string>, number]>([
    ['the console', { 'x-exportd-console': '1', origin: 'http://localhost' }, 200],
    [
      'the console, in a browser that says so',
      { 'x-exportd-console': '1', 'sec-fetch-site': 'same-origin' },
      200,
    ],
    [
      'the console behind a proxy',
      { 'x-exportd-console': '1', 'sec-fetch-site': 'same-origin', origin: 'https://exportd.example.com' },
      200,
    ],
    ['a form of this host', { origin: 'http://localhost' }, 403],
    ['another site', { 'x-exportd-console': '1', origin: anotherSite }, 403],
    [
      'another site, in a browser that says so',
      { 'x-exportd-console': '1', 'sec-fetch-site': 'cross-site', origin: 'http://localhost' },
      403,
    ],
    ['another host of the same site', { 'x-exportd-console': '1', 'sec-fetch-site': 'same-site' }, 403],
    ['another port', { 'x-exportd-console': '1', origin: 'http://localhost:8080' }, 403],
    ['a page without an origin', { 'x-exportd-console': '1', origin: 'null' }, 403],
    ['a request without an origin', { 'x-exportd-console': '1' }, 403],
  ])('lets %s change something or not', async (_, headers, expected) => {
    const id = await api.createExport();
    const response = await api.call('POST', `batch_exports/${id}/pause`, undefined, {
      authorization: '',
      cookie,
      ...headers,
    });
    expect([response.status, response.body.code]).toEqual([
      expected,
      expected === 403 ? 'csrf_failed' : undefined,
    ]);
  });

  it.each([
    ['signing in, as another user', 'POST', { key: 'exk_other' }],
    ['signing out', 'DELETE', undefined],
  ] as const)('does not let another site cause %s', async (_, method, body) => {
    const response = await api.call(method, '/console/session', body, {
      authorization: '',
      cookie,
      origin: anotherSite,
    });
    expect([response.status, response.body.code]).toEqual([403, 'csrf_failed']);
  });

  it('changes nothing for keys in the header', async () => {
    const id = await api.createExport();
    expect((await api.call('POST', `batch_exports/${id}/pause`, undefined, { cookie })).status).toBe(200);
  });
});

describe('without the console', () => {
  it('nothing of it is served, and its cookie is no authentication', async () => {
    const without = await openApiHarness({ EXPORTD_CONSOLE: 'false' });
    try {
      const cookie = `exportd_session=${without.key}`;
      const read = (path: string) => without.call('GET', path, undefined, { authorization: '', cookie });
      const paths = [
        '/',
        '/query',
        '/console/session',
        '/console/assets/main-OLDHASH0.js',
        `/api/projects/${without.projectId}/console/overview`,
      ];
      expect(await Promise.all(paths.map(async (path) => (await read(path)).status))).toEqual([
        404, 404, 404, 404, 404,
      ]);
      expect((await without.call('GET', 'console/overview')).status).toBe(404);
      expect((await read('batch_exports/')).status).toBe(401);
      expect((await without.call('GET', 'batch_exports/')).status).toBe(200);
    } finally {
      await without.close();
    }
  });
});
