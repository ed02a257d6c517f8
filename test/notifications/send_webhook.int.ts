import dns from 'node:dns';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import { createOperatorWebhook } from '../../src/notifications/operator_webhook.ts';
import { createWebhookSecret, sendWebhook } from '../../src/notifications/send_webhook.ts';
import { startFakeServer, type FakeServer } from '../destination/fake_server.ts';
import { dripping, drippingHeaders, endless, endlessHeaders } from '../setup/hostile_store.ts';

/** What receivers do that send more, or longer, than anybody reads. */
const hostileAnswers: Readonly<Record<string, (response: ServerResponse) => void>> = {
  '/endless': endless(200),
  '/drips': dripping(200),
  '/endless-headers': endlessHeaders,
  '/drips-headers': drippingHeaders,
};

let receiver: FakeServer;
beforeEach(async () => {
  receiver = await startFakeServer((request, response) => {
    const hostile = hostileAnswers[request.path];
    if (hostile) hostile(response);
    else if (request.path === '/floods') response.end(Buffer.alloc(10_000_000));
    else response.writeHead(200).end();
  });
});
afterEach(async () => {
  jest.restoreAllMocks();
  await receiver.close();
});

const send = (url: string, allowPrivate: boolean, timeoutMs = 30_000) =>
  sendWebhook(
    { id: 'message', url, secret: createWebhookSecret(), body: '{}' },
    { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: allowPrivate, EXPORTD_WEBHOOK_TIMEOUT: timeoutMs },
  );
const port = () => new URL(receiver.endpoint).port;

describe('a receiver in the private network', () => {
  it.each(['127.0.0.1', 'localhost', '[::1]', '169.254.169.254', '[::ffff:10.0.0.1]'])(
    'is not allowed as %s',
    async (host) => {
      expect(await send(`http://${host}:${port()}/`, false)).toEqual({
        delivered: false,
        status: null,
        detail: expect.stringContaining('private or loopback address'),
      });
      expect(receiver.received).toHaveLength(0);
    },
  );

  it('is not allowed at connect time when a public name resolves to it', async () => {
    jest.spyOn(dns, 'lookup').mockImplementation(((_name: string, options: unknown, callback: unknown) => {
      const respond = callback as (error: null, found: unknown, family?: number) => void;
      if ((options as { all?: boolean }).all === true) respond(null, [{ address: '127.0.0.1', family: 4 }]);
      else respond(null, '127.0.0.1', 4);
    }) as typeof dns.lookup);
    const url = `http://hooks.example.com:${port()}/`;
    expect(await send(url, false)).toMatchObject({
      delivered: false,
      detail: expect.stringContaining('private or loopback address'),
    });
    expect(receiver.received).toHaveLength(0);
    expect(await send(url, true)).toMatchObject({ delivered: true, status: 200 });
    expect(receiver.received).toHaveLength(1);
  });
});

describe('a receiver with a huge response', () => {
  it('counts as delivered, and the response is discarded', async () => {
    expect(await send(`${receiver.endpoint}/floods`, true)).toMatchObject({ delivered: true, status: 200 });
  });
});

describe('a receiver whose response never ends', () => {
  it.each([
    ['/endless', true],
    ['/drips', true],
    ['/endless-headers', false],
    ['/drips-headers', false],
  ])('is answered by the status alone, and its connection is closed (%s)', async (path, delivered) => {
    const closed = new Promise((resolve) => receiver.connections.once('closed', resolve));
    const timeoutMs = 1_000;
    expect(await send(`${receiver.endpoint}${path}`, true, timeoutMs)).toMatchObject({ delivered });
    await closed;
  });
});

describe("the operator's webhook", () => {
  const fault = {
    incident_id: '7b1d4a52-3c0e-4f7a-9d58-61f2c3a4b5c6',
    type: 'UndefinedTable',
    message: 'The source lacks a relation.',
    opened_at: '2026-11-01T11:00:00.000Z',
    last_seen_by: 'worker-1',
    waiting_runs: 3,
  };
  /** The bodies of the message about a fault, and of that about its end. */
  async function bodiesOf(format: string): Promise<unknown[]> {
    const webhook = createOperatorWebhook(
      readSettings({
        DATABASE_URL: 'unused',
        EXPORTD_OPERATOR_WEBHOOK_URL: `${receiver.endpoint}/hook?routing_key=R0123`,
        EXPORTD_OPERATOR_WEBHOOK_SECRET: createWebhookSecret(),
        EXPORTD_OPERATOR_WEBHOOK_FORMAT: format,
      }),
    );
    await webhook?.send('begins', fault);
    await webhook?.send('ends', { ...fault, resolved_at: '2026-11-01T12:00:00.000Z' });
    return receiver.received.map(({ body }) => JSON.parse(body) as unknown);
  }

  it('triggers and resolves an alert of PagerDuty by the id of the incident', async () => {
    const event = { routing_key: 'R0123', dedup_key: fault.incident_id };
    expect(await bodiesOf('pagerduty')).toMatchObject([
      { ...event, event_action: 'trigger', payload: { summary: 'exportd: The source lacks a relation.' } },
      { ...event, event_action: 'resolve' },
    ]);
  });

  it('names the incident in both messages of Slack', async () => {
    const details = expect.stringContaining(`incident ${fault.incident_id}`);
    expect(await bodiesOf('slack')).toMatchObject(
      ['exportd: 3 runs wait for its operator', 'exportd: this is fixed'].map((text) => ({
        text,
        blocks: [{}, { text: { text: details } }],
      })),
    );
  });
});
