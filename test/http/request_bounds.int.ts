import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportBody, openApiHarness, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_MAX_EXPORTS_PER_PROJECT: '3' });
});
afterAll(() => api.close());

describe('a name', () => {
  it.each([
    ['a line break', 'one\ntwo'],
    ['a carriage return', 'one\rtwo'],
    ['a tab', 'one\ttwo'],
    ['a line separator', 'one\u2028two'],
    ['a bidirectional override', 'safe\u202eexe'],
    ['a bidirectional isolate', 'safe\u2066exe'],
    ['a mark of direction', 'safe\u200fexe'],
    ['a control character', 'bell\u0007'],
    ['a byte order mark', '\ufeffname'],
  ])('with %s is rejected', async (_, name) => {
    for (const [path, body] of [
      ['batch_exports/', exportBody({ name })],
      ['keys/', { name, scopes: ['query:read'] }],
    ] as const) {
      const response = await api.call('POST', path, body);
      expect([response.status, response.body.attr, response.body.detail]).toEqual([
        400,
        'name',
        expect.stringMatching(/control characters/),
      ]);
    }
  });

  it.each(['Größe: café ☕', 'サーバー 1', '👩‍👩‍👧 family', 'עברית'])('may be %s', async (name) => {
    expect((await api.call('POST', 'keys/', { name, scopes: ['query:read'] })).status).toBe(201);
  });
});

describe('the exports of a project', () => {
  it('are limited, and a deleted one makes place', async () => {
    const ids = [await api.createExport(), await api.createExport(), await api.createExport()];
    for (const path of ['batch_exports/', 'batch_exports/check/']) {
      const { status, body } = await api.call('POST', path, exportBody());
      expect([status, body]).toEqual([
        409,
        {
          type: 'conflict',
          code: 'too_many_batch_exports',
          detail: expect.stringMatching(/3 batch exports.*EXPORTD_MAX_EXPORTS_PER_PROJECT/),
          attr: null,
        },
      ]);
    }
    expect((await api.call('DELETE', `batch_exports/${ids[0]}`)).status).toBe(204);
    expect((await api.call('POST', 'batch_exports/', exportBody())).status).toBe(201);
  });
});

describe('responses', () => {
  it('are not stored by caches, nor read as another type', async () => {
    for (const path of ['batch_exports/', 'batch_exports/nothing', '/api/schema', '/api/nothing']) {
      const { headers } = await api.call('GET', path);
      expect([path, headers['cache-control'], headers['x-content-type-options']]).toEqual([
        path,
        'no-store',
        'nosniff',
      ]);
      expect(headers['strict-transport-security']).toBeUndefined();
    }
  });

  it('ask browsers for https where exportd is reached by https', async () => {
    const secure = await openApiHarness({ EXPORTD_BASE_URL: 'https://exportd.example.com' });
    try {
      const { headers } = await secure.call('GET', 'batch_exports/');
      expect(headers['strict-transport-security']).toMatch(/^max-age=\d+$/);
    } finally {
      await secure.close();
    }
  });

  it('link to the server, whatever host the request names', async () => {
    const url = await api.listen();
    const { host } = new URL(url);
    const next = async (headers: Record<string, string>) => {
      const { text } = await api.call('GET', 'keys/?limit=1', undefined, headers);
      return new URL((JSON.parse(text) as { next: string }).next).host;
    };
    expect(await next({ host: 'localhost:8000' })).toBe('localhost:8000');
    expect(await next({ host: '127.0.0.1:8000' })).toBe('127.0.0.1:8000');
    for (const foreign of ['evil.example', 'localhost.evil.example', '192.0.2.1:8000'])
      expect(await next({ host: foreign })).not.toContain(foreign.split(':', 1)[0]);
    expect(await next({ host: '127.0.0.1', 'x-forwarded-host': 'evil.example' })).toBe('127.0.0.1');
    expect(host).toMatch(/^127\.0\.0\.1:/);
  });
});

describe('an Idempotency-Key', () => {
  it('expires', async () => {
    const [id] = ((await api.call('GET', 'batch_exports/')).body.results as { id: string }[]).map(
      (found) => found.id,
    );
    const send = (path: string) =>
      api.call('POST', `batch_exports/${id}/${path}`, {}, { 'idempotency-key': 'once' });
    expect((await send('pause')).status).toBe(200);
    expect((await send('unpause')).status).toBe(409);
    await api.database.pool.query(
      `update exportd.commands set created_at = created_at - interval '8 days' where idempotency_key = 'once'`,
    );
    expect((await send('unpause')).status).toBe(200);
    expect((await send('unpause')).status).toBe(200);
    expect((await send('pause')).status).toBe(409);
  });
});

describe('the stored fingerprint of a command', () => {
  it('is no hash of its secrets that a dump of the database can be searched with', async () => {
    const { rows } = await api.database.pool.query<{ fingerprint: string; idempotency_key: string | null }>(
      'select fingerprint, idempotency_key from exportd.commands',
    );
    for (const { fingerprint } of rows) expect(fingerprint).not.toMatch(/^[0-9a-f]{64}$/);
  });
});
