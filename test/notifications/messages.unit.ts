import { describe, expect, it } from '@jest/globals';
import { noManifest, type Notification, testNotificationData } from '../../src/notifications/notification.ts';
import { messageBody } from '../../src/notifications/message_body.ts';
import { plainSlackMessage, type SlackMessage } from '../../src/notifications/slack_message.ts';
import { createWebhookSecret, isWebhookSecret, signedHeaders } from '../../src/notifications/send_webhook.ts';

const batchExportId = '0193a1c0-5b7e-4d0a-9c55-3f1f8d2b6a10';
const notification = (
  type: Notification['type'],
  data: Partial<Notification['data']> = {},
): Notification => ({
  id: 'a9c8b7d6-e5f4-5a3b-8c2d-1e0f9a8b7c6d',
  type,
  created_at: '2026-11-01T11:00:04.502Z',
  data: {
    ...testNotificationData(1),
    batch_export_id: batchExportId,
    batch_export_name: 'Clicks',
    data_interval_start: '2026-11-01T10:00:00.000Z',
    data_interval_end: '2026-11-01T11:00:00.000Z',
    ...noManifest,
    ...data,
  },
});
const settings = { EXPORTD_BASE_URL: 'https://exportd.example/', EXPORTD_CONSOLE: true };
const slack = (one: Notification, more: Partial<typeof settings> = {}) =>
  JSON.parse(messageBody('slack', one, { ...settings, ...more }, null)) as SlackMessage;
/** Every text in the blocks of a message. */
const textsOf = ({ blocks }: SlackMessage): string[] =>
  blocks
    .flatMap((block) => (block.type === 'section' ? [block.text] : block.elements))
    .map(({ text }) => text);

describe('a message for Slack', () => {
  it('says what happened, links the export and shows the error', () => {
    const message = slack(notification('run.failed', { latest_error: 'NoSuchBucket: it is gone.' }));
    expect(message.text).toBe(
      'Clicks: The run of 2026-11-01T10:00:00.000Z to 2026-11-01T11:00:00.000Z failed.',
    );
    expect(textsOf(message)).toEqual([
      `*<https://exportd.example/exports/${batchExportId}|Clicks>*\n` +
        'The run of 2026-11-01T10:00:00.000Z to 2026-11-01T11:00:00.000Z failed.',
      '```NoSuchBucket: it is gone.```',
      'run.failed · project 1',
    ]);
  });

  it('names the manifest of a published interval', () => {
    const published = notification('interval.published', {
      manifest_key: 'clicks/_manifests/1.json',
      generation: 2,
      rows: 4_933,
      bytes: 100,
      files: 1,
    });
    expect(textsOf(slack(published))).toEqual([
      expect.stringContaining('was published as generation 2 with 4,933 rows.'),
      'Manifest: `clicks/_manifests/1.json`',
      'interval.published · project 1',
    ]);
  });

  it.each([
    ['without a console', { EXPORTD_CONSOLE: false }],
    ['without a public URL', { EXPORTD_BASE_URL: undefined }],
  ])('has no link %s', (_, more) => {
    const message = JSON.parse(
      messageBody('slack', notification('run.held'), { ...settings, ...more }, null),
    ) as SlackMessage;
    expect(textsOf(message)[0]).toMatch(/^\*Clicks\*\n/);
  });

  it('contains no mention and no link from a name or an error', () => {
    const hostile = '<!channel> & <https://evil.example|click> ``` ';
    const message = slack(
      notification('run.failed', { batch_export_name: hostile, latest_error: hostile.repeat(500) }),
    );
    const texts = [message.text, ...textsOf(message)];
    expect(texts.join()).not.toMatch(/<!|<https:\/\/evil/);
    expect(texts.join()).toContain('&lt;!channel&gt; &amp;');
    const [, code = ''] = textsOf(message);
    expect(code.match(/```/g)).toHaveLength(2);
    // The limit of Slack for the text of a block.
    for (const text of texts) expect(text.length).toBeLessThan(3_000);
  });

  it('of a test is not about an export', () => {
    const test: Notification = {
      ...notification('run.failed'),
      type: 'test',
      data: testNotificationData(1),
    };
    expect(slack(test)).toMatchObject({ text: 'Test.' });
  });

  it("of an operator's fault has a title and details", () => {
    const message = plainSlackMessage('exportd: 3 runs wait', 'UndefinedTable: events');
    expect(message.text).toBe('exportd: 3 runs wait');
    expect(textsOf(message)).toEqual(['*exportd: 3 runs wait*', '```UndefinedTable: events```']);
  });
});

describe('a message about an outage', () => {
  const incident = {
    id: '7b1d4a52-3c0e-4f7a-9d58-61f2c3a4b5c6',
    cause: 'destination_unavailable',
    subject: 'the bucket clicks at s3.example.com',
    exports: 7,
    intervals: 1_204,
    opened_at: '2026-11-01T11:00:00.000Z',
    closed_at: null,
    closed_by: null,
  } as const;
  const condition = {
    severity: 'error',
    cause: 'destination_unavailable',
    summary: 'The bucket does not respond: Refused. 4 intervals wait.',
    since: null,
    owner: 'tenant',
  } as const;
  const opened = notification('destination.unavailable', { incident, condition, latest_error: 'Refused.' });
  const closed = notification('destination.recovered', {
    incident: { ...incident, closed_at: '2026-11-01T12:00:00.000Z', closed_by: 'recovery' },
  });

  it('says it once in Slack, with the numbers and a link to all exports', () => {
    expect(textsOf(slack(opened))).toEqual([
      '*<https://exportd.example/|The bucket clicks at s3.example.com does not respond: 7 exports, 1,204 intervals wait.>*',
      '```Refused.```',
      'destination.unavailable · project 1 · incident 7b1d4a52-3c0e-4f7a-9d58-61f2c3a4b5c6',
    ]);
    expect(slack(closed).text).toBe(
      'The bucket clicks at s3.example.com responds again: 7 exports, 1,204 intervals waited.',
    );
  });

  it('has its id as the deduplication key of PagerDuty, which it triggers and resolves', () => {
    const event = (one: Notification, address: string | null) =>
      JSON.parse(messageBody('pagerduty', one, settings, address)) as object;
    const address = 'https://events.pagerduty.com/v2/enqueue?routing_key=R0123';
    expect(event(opened, address)).toEqual({
      routing_key: 'R0123',
      event_action: 'trigger',
      dedup_key: incident.id,
      client: 'exportd',
      client_url: 'https://exportd.example/',
      payload: {
        summary: slack(opened).text,
        source: incident.subject,
        severity: 'error',
        timestamp: opened.created_at,
        custom_details: opened.data,
      },
    });
    expect(event(closed, address)).toMatchObject({ event_action: 'resolve', dedup_key: incident.id });
    // A test must wake no one, and the log of deliveries has no key.
    const test: Notification = { ...opened, type: 'test', data: testNotificationData(1) };
    expect(event(test, address)).toMatchObject({ event_action: 'resolve', dedup_key: opened.id });
    expect(event(opened, null)).toMatchObject({ routing_key: '…' });
  });
});

describe('a plain message', () => {
  it('has the fields of the event, with null for those that it does not have', () => {
    const { id, type, created_at, data } = notification('run.failed', { latest_error: 'Error' });
    expect(JSON.parse(messageBody('json', { id, type, created_at, data }, settings, null))).toEqual({
      id,
      type,
      timestamp: created_at,
      data: {
        project_id: 1,
        batch_export_id: batchExportId,
        batch_export_name: 'Clicks',
        backfill_id: null,
        run_id: null,
        status: null,
        latest_error: 'Error',
        data_interval_start: '2026-11-01T10:00:00.000Z',
        data_interval_end: '2026-11-01T11:00:00.000Z',
        backfill: null,
        incident: null,
        condition: null,
        manifest_key: null,
        generation: null,
        rows: null,
        bytes: null,
        files: null,
      },
    });
  });
});

describe('a signature', () => {
  it('matches the example of Standard Webhooks', () => {
    // From the test vectors of the Standard Webhooks reference libraries.
    expect(
      signedHeaders(
        'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
        'msg_p5jXN8AQM9LWM0D4loKWxJek',
        new Date(1_614_265_330_000),
        '{"test": 2432232314}',
      ),
    ).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
  });
});

describe('a webhook secret', () => {
  it('is valid and unique', () => {
    const [one, other] = [createWebhookSecret(), createWebhookSecret()];
    expect([isWebhookSecret(one), isWebhookSecret(other), one === other]).toEqual([true, true, false]);
  });

  it.each(['', 'whsec_', 'whsec_c2hvcnQ=', `whsec_${'a'.repeat(200)}`, `whsec_${'!'.repeat(40)}`])(
    'is invalid as %j',
    (text) => {
      expect(isWebhookSecret(text)).toBe(false);
    },
  );
});
