import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startFakeServer, type FakeServer } from '../destination/fake_server.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';
import { storedText } from '../journal/stored_text.ts';

let api: ApiHarness;
let receiver: FakeServer;
let responseStatus: number;
beforeAll(async () => {
  api = await openApiHarness({
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_WEBHOOK_TIMEOUT: '60s',
  });
  receiver = await startFakeServer((request, response) => {
    if (request.path !== '/hangs') response.writeHead(responseStatus, { location: '/elsewhere' }).end();
  });
});
beforeEach(() => {
  api.mode = 'decide';
  responseStatus = 204;
});
afterAll(async () => {
  await receiver.close();
  await api.close();
});

/** Every event but `interval.published`. */
const incidents = [
  'run.failed',
  'run.retries_exhausted',
  'run.held',
  'run.key_taken',
  'interval.expired',
  'batch_export.paused',
  'batch_export.recovered',
  'backfill.paused',
  'source.unavailable',
  'source.recovered',
  'destination.unavailable',
  'destination.recovered',
  'export.behind',
  'export.caught_up',
  'export.differs',
  'export.agrees',
  'export.holes',
  'export.holes_filled',
];
const create = async (more: object = {}) => {
  const created = await api.call('POST', 'webhooks/', { url: `${receiver.endpoint}/hook?a=1`, ...more });
  expect([created.status, created.text]).toEqual([201, expect.stringContaining('"secret"')]);
  return { ...created, id: String(created.body.id), secret: String(created.body.secret) };
};
/** All that is stored of webhooks and deliveries. */
const stored = () => storedText(api.database.pool, 'webhooks', 'notifications', 'webhook_deliveries');

describe('a webhook', () => {
  it('is notified of the incidents of the project by default, and returns its secret once', async () => {
    const created = await create();
    const { secret, ...shown } = created.body;
    expect(shown).toEqual({
      id: expect.any(String),
      url: `${receiver.endpoint}/hook?a=1`,
      events: incidents,
      format: 'json',
      batch_export: null,
      enabled: true,
      created_at: expect.any(String),
      last_delivery: null,
    });
    expect(Buffer.from(String(secret).replace('whsec_', ''), 'base64')).toHaveLength(32);
    expect(created.headers.location).toMatch(new RegExp(`/webhooks/${created.id}/$`));
    const got = await api.call('GET', `webhooks/${created.id}/`);
    expect([got.status, got.body]).toEqual([200, shown]);
    const listed = await api.call('GET', 'webhooks/?limit=1');
    expect(listed.body).toMatchObject({ results: [shown] });
    const secretText = String(secret).slice(6);
    for (const text of [listed.text, got.text, await stored()]) expect(text).not.toContain(secretText);
  });

  it('shows keys that cannot write the origin of its URL alone, and the database not even its path', async () => {
    const { origin } = new URL(receiver.endpoint);
    const url = `${receiver.endpoint}/services/T000/B000/SECRETTOKEN`;
    const { id, body, secret } = await create({ url });
    expect(body.url).toBe(url);
    const reader = {
      authorization: `Bearer ${(await api.newKey(api.projectId, ['batch_export:read'])).key}`,
    };
    const [got, listed] = [
      await api.call('GET', `webhooks/${id}/`, undefined, reader),
      await api.call('GET', 'webhooks/', undefined, reader),
    ];
    expect(got.body.url).toBe(`${origin}/…`);
    for (const text of [got.text, listed.text, await stored()]) expect(text).not.toContain('SECRETTOKEN');
    expect((await api.call('GET', `webhooks/${id}/`)).body.url).toBe(url);

    // What a reader has seen can be sent back.
    const { last_delivery: _, ...shown } = got.body;
    expect((await api.call('PATCH', `webhooks/${id}/`, shown)).body.url).toBe(url);
    const foreign = await api.call('PATCH', `webhooks/${id}/`, { url: 'https://hooks.example.com/…' });
    expect([foreign.status, foreign.body.attr]).toEqual([400, 'url']);
    const tested = await api.call('POST', `webhooks/${id}/test/`, {});
    expect(tested.body).toMatchObject({ delivered: true });
    expect(receiver.received.at(-1)?.path).toBe('/services/T000/B000/SECRETTOKEN');
    expect(secret).toMatch(/^whsec_/);
    await api.call('DELETE', `webhooks/${id}/`);
  });

  it('is updated by field, and does not change when a response is sent back', async () => {
    const batchExport = await api.createExport();
    const secret = `whsec_${randomBytes(24).toString('base64')}`;
    const created = await create({ secret, batch_export: batchExport, events: ['run.failed'] });
    expect(created.secret).toBe(secret);
    const path = `webhooks/${created.id}/`;
    const before = await api.call('GET', path);
    expect(before.body).toMatchObject({ batch_export: batchExport, events: ['run.failed'] });
    expect((await api.call('PATCH', path, before.body)).body).toEqual(before.body);
    const changed = await api.call('PATCH', path, { enabled: false, batch_export: null, events: null });
    expect(changed.body).toEqual({ ...before.body, enabled: false, batch_export: null, events: incidents });
    const rotated = await api.call('PATCH', path, {
      secret: `whsec_${randomBytes(64).toString('base64')}`,
    });
    expect([rotated.status, rotated.body]).toEqual([200, changed.body]);
    expect([(await api.call('DELETE', path)).status, (await api.call('DELETE', path)).status]).toEqual([
      204, 404,
    ]);
    expect((await api.call('GET', path)).status).toBe(404);
  });

  it.each([
    [{ url: 'ftp://example.com' }, 'url'],
    [{ url: 'https://user:word@example.com/' }, 'url'],
    [{ url: 'nonsense' }, 'url'],
    [{ url: 'https://example.com/hook?a=1#part' }, 'url'],
    [{ url: `https://example.com/${'a'.repeat(2_000)}` }, 'url'],
    [{ url: undefined }, 'url'],
    [{ events: [] }, 'events'],
    [{ events: ['run.started'] }, 'events__0'],
    [{ format: 'xml' }, 'format'],
    [{ batch_export: randomUUID() }, 'batch_export'],
    [{ secret: 'whsec_c2hvcnQ=' }, 'secret'],
    [{ secret: randomBytes(32).toString('base64') }, 'secret'],
    [{ colour: 'blue' }, 'colour'],
  ])('is rejected with %j', async (fields, attr) => {
    const rejected = await api.call('POST', 'webhooks/', { url: 'https://example.com/', ...fields });
    expect([rejected.status, rejected.body.attr]).toEqual([400, attr]);
  });

  it('belongs to one project and requires the scopes of batch exports', async () => {
    const { id } = await create();
    const other = { authorization: `Bearer ${(await api.newKey(api.otherProjectId)).key}` };
    const theirs = `/api/environments/${api.otherProjectId}/webhooks/${id}/`;
    for (const method of ['GET', 'PATCH', 'DELETE'] as const)
      expect((await api.call(method, theirs, method === 'PATCH' ? {} : undefined, other)).status).toBe(404);
    expect((await api.call('POST', `${theirs}test/`, {}, other)).status).toBe(404);
    const export_ = await api.createExport();
    const foreign = await api.call(
      'POST',
      `/api/environments/${api.otherProjectId}/webhooks/`,
      { url: 'https://example.com/', batch_export: export_ },
      other,
    );
    expect([foreign.status, foreign.body.attr]).toEqual([400, 'batch_export']);
    const { key } = await api.newKey(api.projectId, ['batch_export:read']);
    const reader = { authorization: `Bearer ${key}` };
    expect((await api.call('GET', `webhooks/${id}/`, undefined, reader)).status).toBe(200);
    for (const path of ['webhooks/', `webhooks/${id}/test/`])
      expect((await api.call('POST', path, { url: 'https://example.com/' }, reader)).status).toBe(403);
  });

  it('is limited to 100 in a project', async () => {
    const { key } = await api.newKey(api.otherProjectId);
    await api.database.pool.query(
      `insert into exportd.webhooks (id, team_id, origin, sealed_url, events, secret)
       select gen_random_uuid(), $1, 'https://example.com', '', '{}', '' from generate_series(1, 100)`,
      [api.otherProjectId],
    );
    const path = `/api/projects/${api.otherProjectId}/webhooks/`;
    const rejected = await api.call(
      'POST',
      path,
      { url: 'https://example.com/' },
      { authorization: `Bearer ${key}` },
    );
    expect([rejected.status, rejected.body.detail]).toEqual([400, 'A project has at most 100 webhooks.']);
  });

  it('is deleted with the export that it is limited to', async () => {
    const id = await api.createExport();
    const [own, all] = [await create({ batch_export: id }), await create()];
    expect((await api.call('DELETE', `batch_exports/${id}/`)).status).toBe(204);
    expect((await api.call('GET', `webhooks/${own.id}/`)).status).toBe(404);
    expect((await api.call('GET', `webhooks/${all.id}/`)).status).toBe(200);
  });

  it('has its schema in the OpenAPI document', async () => {
    const document = await api.call('GET', '/api/schema');
    expect(document.text).toContain('/api/projects/{project_id}/webhooks/{id}/test');
    expect(document.text).toContain('CreatedWebhook');
  });
});

describe('the test of a webhook', () => {
  it('sends a signed message once and updates last_delivery', async () => {
    const created = await create({ enabled: false });
    const before = receiver.received.length;
    const tested = await api.call('POST', `webhooks/${created.id}/test/`);
    expect([tested.status, tested.body]).toEqual([
      200,
      { delivered: true, status: 204, detail: 'The receiver responded with 204.' },
    ]);
    expect(receiver.received).toHaveLength(before + 1);
    const sent = receiver.received.at(-1);
    if (!sent) throw new Error('Nothing was received.');
    const { headers, body, path, method } = sent;
    expect([method, path, headers['content-type']]).toEqual(['POST', '/hook?a=1', 'application/json']);
    const id = String(headers['webhook-id']);
    const seconds = String(headers['webhook-timestamp']);
    const key = Buffer.from(created.secret.slice('whsec_'.length), 'base64');
    const expected = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
    expect(headers['webhook-signature']).toBe(`v1,${expected}`);
    expect(Math.abs(Date.now() / 1_000 - Number(seconds))).toBeLessThan(60);
    expect(JSON.parse(body)).toMatchObject({
      id,
      type: 'test',
      timestamp: expect.any(String),
      data: { project_id: api.projectId, batch_export_id: null },
    });
    const shown = await api.call('GET', `webhooks/${created.id}/`);
    expect(shown.body.last_delivery).toEqual({
      at: expect.any(String),
      status: 204,
      detail: 'The receiver responded with 204.',
    });
    expect(await stored()).not.toContain('"test"');
  });

  it("has the webhook's format", async () => {
    const { id } = await create({ format: 'slack' });
    expect((await api.call('POST', `webhooks/${id}/test/`)).body.delivered).toBe(true);
    expect(JSON.parse(receiver.received.at(-1)?.body ?? '')).toMatchObject({ text: 'Test.' });
    const changed = await api.call('PATCH', `webhooks/${id}/`, { format: null });
    expect(changed.body.format).toBe('json');
  });

  it('needs the key of PagerDuty with its URL, resolves in a test, and shows no key', async () => {
    const none = await api.call('POST', 'webhooks/', { url: receiver.endpoint, format: 'pagerduty' });
    expect([none.status, none.body.attr]).toEqual([400, 'url']);
    const plain = await create({});
    const alone = await api.call('PATCH', `webhooks/${plain.id}/`, { format: 'pagerduty' });
    expect([alone.status, alone.body.attr]).toEqual([400, 'url']);
    const { id } = await create({
      url: `${receiver.endpoint}/v2/enqueue?routing_key=R0123`,
      format: 'pagerduty',
    });
    expect((await api.call('PATCH', `webhooks/${id}/`, { enabled: true, format: 'pagerduty' })).status).toBe(
      200,
    );
    expect((await api.call('POST', `webhooks/${id}/test/`)).body.delivered).toBe(true);
    expect(JSON.parse(receiver.received.at(-1)?.body ?? '')).toMatchObject({
      routing_key: 'R0123',
      event_action: 'resolve',
    });
  });

  it.each([
    ['status 500', 500, '/hook', 500, 'The receiver responded with 500.'],
    ['status 410 (gone)', 410, '/hook', 410, 'The receiver responded with 410.'],
    ['a redirect, which is not followed', 302, '/hook', 302, 'redirects are not followed'],
  ])('is not delivered after %s, and does not disable the webhook', async (_, code, path, status, words) => {
    responseStatus = code;
    const { id } = await create({ url: `${receiver.endpoint}${path}` });
    const before = receiver.received.length;
    const tested = await api.call('POST', `webhooks/${id}/test/`);
    expect(tested.body).toEqual({ delivered: false, status, detail: expect.stringContaining(words) });
    expect(receiver.received).toHaveLength(before + 1);
    expect((await api.call('GET', `webhooks/${id}/`)).body.enabled).toBe(true);
  });

  it('is not delivered after a timeout, and does not disable the webhook', async () => {
    const shortTimeout = await openApiHarness({
      EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
      EXPORTD_WEBHOOK_TIMEOUT: '4s',
    });
    try {
      const created = await shortTimeout.call('POST', 'webhooks/', { url: `${receiver.endpoint}/hangs` });
      const path = `webhooks/${String(created.body.id)}/`;
      const before = receiver.received.length;
      const { body } = await shortTimeout.call('POST', `${path}test/`);
      const detail = expect.stringContaining('did not respond within 4 s');
      expect(body).toEqual({ delivered: false, status: null, detail });
      expect(receiver.received).toHaveLength(before + 1);
      expect((await shortTimeout.call('GET', path)).body.enabled).toBe(true);
    } finally {
      await shortTimeout.close();
    }
  });

  it('is not delivered when the connection is refused', async () => {
    const { id } = await create({ url: 'http://127.0.0.1:1/' });
    const { body } = await api.call('POST', `webhooks/${id}/test/`);
    expect(body).toEqual({ delivered: false, status: null, detail: expect.stringContaining('ECONNREFUSED') });
  });

  it.each([
    ['unreachable', 'temporal_unreachable'],
    ['silent', 'not_tested'],
  ] as const)('is 503 while Temporal is %s, and leaves nothing stored', async (mode, code) => {
    const { id } = await create();
    api.mode = mode;
    const tested = await api.call('POST', `webhooks/${id}/test/`);
    expect([tested.status, tested.body.code, tested.headers['retry-after']]).toEqual([503, code, '5']);
    expect(await stored()).not.toContain('"test"');
  });
});
