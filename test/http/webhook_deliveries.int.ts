import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { testNotificationData } from '../../src/notifications/notification.ts';
import { startFakeServer, type FakeServer } from '../destination/fake_server.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
let receiver: FakeServer;
let responseStatus: number;
beforeAll(async () => {
  api = await openApiHarness({
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_WEBHOOK_TIMEOUT: '60s',
  });
  receiver = await startFakeServer((_request, response) => {
    response.writeHead(responseStatus).end();
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

/** Creates a webhook with a delivery of a published interval, which has failed. */
async function createFailedDelivery(more: object = {}) {
  const { body } = await api.call('POST', 'webhooks/', {
    url: `${receiver.endpoint}/hook`,
    events: ['interval.published'],
    ...more,
  });
  const webhook = String(body.id);
  const batchExport = randomUUID();
  const data = {
    ...testNotificationData(api.projectId),
    batch_export_id: batchExport,
    batch_export_name: 'Clicks',
    status: 'Completed',
    data_interval_start: '2026-11-01T10:00:00.000Z',
    data_interval_end: '2026-11-01T11:00:00.000Z',
    manifest_key: 'manifest.json',
    generation: 2,
    rows: 7,
    bytes: 70,
    files: 1,
  };
  const { rows } = await api.database.pool.query<{ id: string; notification_id: string }>(
    `with published as (
       insert into exportd.notifications (id, type, team_id, batch_export_id, data)
       values (gen_random_uuid(), 'interval.published', $1, $2, $3) returning id),
     failed as (
       insert into exportd.webhook_deliveries
         (notification_id, webhook_id, batch_export_id, status, detail, attempts, ended_at)
       select id, $4, $2, 'failed', 'The receiver responded with 500.', 1, clock_timestamp() from published
       returning id, notification_id),
     attempted as (
       insert into exportd.webhook_attempts (delivery_id, number, duration_ms, status, detail)
       select id, 1, 12, 500, 'The receiver responded with 500.' from failed)
     select * from failed`,
    [api.projectId, batchExport, JSON.stringify(data), webhook],
  );
  const [row] = rows;
  const deliveries = `webhooks/${webhook}/deliveries/`;
  return {
    webhook,
    batchExport,
    data,
    deliveries,
    delivery: row?.id ?? '',
    message: row?.notification_id ?? '',
    path: `${deliveries}${row?.id ?? ''}/`,
  };
}

describe('the deliveries of a webhook', () => {
  it('are listed, and one shows its message and attempts', async () => {
    const one = await createFailedDelivery();
    const listed = await api.call('GET', one.deliveries);
    const item = {
      id: one.delivery,
      webhook: one.webhook,
      event: 'interval.published',
      message_id: one.message,
      batch_export: one.batchExport,
      batch_export_name: 'Clicks',
      run_id: null,
      data_interval_start: '2026-11-01T10:00:00.000Z',
      data_interval_end: '2026-11-01T11:00:00.000Z',
      generation: 2,
      status: 'failed',
      detail: 'The receiver responded with 500.',
      attempts: 1,
      next_attempt_at: null,
      resend_of: null,
      created_at: expect.any(String),
      ended_at: expect.any(String),
    };
    expect([listed.status, listed.body]).toEqual([
      200,
      { count: 1, next: null, previous: null, results: [item] },
    ]);
    const shown = await api.call('GET', one.path);
    expect([shown.status, shown.body]).toEqual([
      200,
      {
        ...item,
        payload: {
          id: one.message,
          type: 'interval.published',
          timestamp: expect.any(String),
          data: one.data,
        },
        attempt_log: [
          {
            number: 1,
            at: expect.any(String),
            duration_ms: 12,
            status: 500,
            detail: 'The receiver responded with 500.',
          },
        ],
      },
    ]);
  });

  it('show the message in the format of the webhook', async () => {
    const one = await createFailedDelivery({ format: 'slack' });
    expect((await api.call('GET', one.path)).body.payload).toEqual({
      text: expect.stringContaining('Clicks: The interval 2026-11-01T10:00:00.000Z'),
      blocks: expect.any(Array),
    });
  });

  it.each([
    ['status=failed,pending', 1],
    ['status=delivered', 0],
    ['event=interval.published&event=run.failed', 1],
    ['event=run.failed', 0],
  ])('are listed by %s', async (query, count) => {
    const one = await createFailedDelivery();
    const listed = await api.call('GET', `${one.deliveries}?${query}&batch_export=${one.batchExport}`);
    expect([listed.status, listed.body.count]).toEqual([200, count]);
  });

  it.each([
    ['status=lost', 'status'],
    ['event=run.started', 'event'],
    ['batch_export=clicks', 'batch_export'],
    ['colour=blue', 'colour'],
  ])('are not listed by %s', async (query, attr) => {
    const one = await createFailedDelivery();
    const rejected = await api.call('GET', `${one.deliveries}?${query}`);
    expect([rejected.status, rejected.body.attr]).toEqual([400, attr]);
  });

  it('belong to the project and require the scopes of batch exports', async () => {
    const one = await createFailedDelivery();
    const resend = `${one.path}resend/`;
    const other = { authorization: `Bearer ${(await api.newKey(api.otherProjectId)).key}` };
    const theirs = (path: string) => `/api/projects/${api.otherProjectId}/${path}`;
    for (const [method, path] of [
      ['GET', one.deliveries],
      ['GET', one.path],
      ['POST', resend],
    ] as const)
      expect((await api.call(method, theirs(path), undefined, other)).status).toBe(404);
    const { key } = await api.newKey(api.projectId, ['batch_export:read']);
    const reader = { authorization: `Bearer ${key}` };
    expect((await api.call('GET', one.path, undefined, reader)).status).toBe(200);
    expect((await api.call('POST', resend, {}, reader)).status).toBe(403);
    expect((await api.call('GET', `${one.deliveries}${randomUUID()}/`)).status).toBe(404);
    expect((await api.call('GET', `webhooks/${randomUUID()}/deliveries/`)).status).toBe(404);
  });
});

describe('a resend', () => {
  it('sends the message again, as a new delivery', async () => {
    const one = await createFailedDelivery();
    const before = receiver.received.length;
    const resent = await api.call('POST', `${one.path}resend/`);
    expect([resent.status, resent.body]).toEqual([
      201,
      expect.objectContaining({ resend_of: one.delivery, message_id: one.message, status: 'delivered' }),
    ]);
    expect(resent.headers.location).toMatch(
      new RegExp(`/webhooks/${one.webhook}/deliveries/${String(resent.body.id)}/$`),
    );
    expect(receiver.received).toHaveLength(before + 1);
    expect(receiver.received.at(-1)?.headers['webhook-id']).toBe(one.message);
    expect((await api.call('GET', one.deliveries)).body.count).toBe(2);
  });

  it('is stored while Temporal cannot be reached, and is one delivery when repeated', async () => {
    const one = await createFailedDelivery();
    api.mode = 'unreachable';
    const resent = await api.call('POST', `${one.path}resend/`);
    expect([resent.status, resent.body.status]).toEqual([201, 'pending']);
    const repeated = await api.call('POST', `${one.path}resend/`);
    expect([repeated.status, repeated.body.id]).toEqual([200, resent.body.id]);
  });

  it('needs an enabled webhook', async () => {
    const one = await createFailedDelivery();
    await api.call('PATCH', `webhooks/${one.webhook}/`, { enabled: false });
    const rejected = await api.call('POST', `${one.path}resend/`);
    expect([rejected.status, rejected.body.code, rejected.body.detail]).toEqual([
      409,
      'conflict',
      'The webhook is disabled. Enable it, then resend.',
    ]);
  });
});
