import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DatabaseError } from 'pg';
import { readSettings } from '../../src/config/settings.ts';
import { createPolicies } from '../../src/decisions/policies.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import type { Overview } from '../../src/http/console/pages/schema.ts';
import { notifyConditionChanges } from '../../src/notifications/condition_changes.ts';
import type {
  Notification,
  NotificationData,
  NotifiedIncident,
} from '../../src/notifications/notification.ts';
import { messageBody } from '../../src/notifications/message_body.ts';
import type { PagerDutyEvent } from '../../src/notifications/pagerduty_event.ts';
import type { SlackMessage } from '../../src/notifications/slack_message.ts';
import { configRules } from '../../src/temporal/capabilities.ts';
import { exportd } from '../cli/command_line.ts';
import { s3Settings } from '../destination/bucket_requests.ts';
import { type ApiHarness, openApiHarness } from '../http/api_harness.ts';
import { createLaggingExport } from '../http/lagging_export.ts';
import { fromSetUp } from '../setup/environment.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { collectLog } from '../telemetry/collect_log.ts';
import { createCircuitStore } from '../../src/failures/circuit_store.ts';
import { createFaultAlarm } from '../../src/failures/fault_alarm.ts';

let api: ApiHarness;
let baseUrl: string;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true' });
  baseUrl = await api.listen();
  await api.call('POST', 'webhooks/', { url: 'https://receiver.example/hook' });
});
afterAll(() => api.close());

/** An export of each minute with these ended intervals to export; it has no other. */
const createExport = (name: string, from: number, to: number): Promise<string> =>
  createLaggingExport(api, minuteAgo(from), { name, end_at: minuteAgo(to).toISOString() });

/** What stands for the bucket of an export where it does not respond. */
async function circuitOf(id: string): Promise<string> {
  const { rows } = await api.database.pool.query<{ circuit: string }>(
    'select circuit from exportd.destination_configs where batch_export_id = $1',
    [id],
  );
  return rows[0]?.circuit ?? '';
}

interface StoredMessage {
  readonly id: string;
  readonly type: Notification['type'];
  readonly created_at: string;
  readonly data: NotificationData & { readonly incident: NotifiedIncident };
}

/** What the webhook of the project gets, oldest first, after conditions were compared once more. */
async function messages(): Promise<StoredMessage[]> {
  await notifyConditionChanges(api.database.pool);
  const { rows } = await api.database.pool.query<StoredMessage>(
    `select notification.id, type, notification.created_at, data from exportd.notifications notification
     join exportd.webhook_deliveries delivery on delivery.notification_id = notification.id
     order by notification.created_at`,
  );
  return rows;
}

/** The same without those that were there before. */
async function messagesAfter(work: () => Promise<unknown>): Promise<StoredMessage[]> {
  const before = new Set((await messages()).map(({ id }) => id));
  await work();
  return (await messages()).filter(({ id }) => !before.has(id));
}

const settings = { EXPORTD_BASE_URL: 'https://exportd.example', EXPORTD_CONSOLE: true };
const address = 'https://events.pagerduty.com/v2/enqueue?routing_key=R0123';
const pagerDuty = (one: StoredMessage | undefined): PagerDutyEvent =>
  JSON.parse(messageBody('pagerduty', one as Notification, settings, address)) as PagerDutyEvent;
const slackText = (one: StoredMessage | undefined): string =>
  (JSON.parse(messageBody('slack', one as Notification, settings, address)) as SlackMessage).text;

/** Deletes the exports of a test, so that they concern no other. */
async function remove(ids: readonly string[]): Promise<void> {
  for (const id of ids) await api.call('DELETE', `batch_exports/${id}`);
}

describe('an outage', () => {
  it('of a bucket that several exports share is one incident, with one message at its begin and one at its end', async () => {
    const { pool } = api.database;
    const ids = [
      await createExport('Clicks', 3, 1),
      await createExport('Orders', 2, 1),
      await createExport('Idle', 1, 1),
    ];
    const [circuit = '', ...others] = new Set(await Promise.all(ids.map(circuitOf)));
    expect(others).toEqual([]);
    const log = collectLog();
    const circuits = createCircuitStore(pool, s3Settings(), log.logger);
    const opened = await messagesAfter(() => circuits.open(circuit, 'The S3 server refused the connection.'));
    const subject = expect.stringMatching(/^the bucket \S+( at \S+)?$/);
    const incident = { exports: 2, intervals: 3, subject, cause: 'destination_unavailable', closed_at: null };
    expect(opened).toMatchObject([{ type: 'destination.unavailable', data: { incident } }]);
    const id = opened[0]?.data.incident.id ?? '';
    for (const one of ids.slice(0, 2))
      expect((await api.call('GET', `batch_exports/${one}/`)).body.condition).toMatchObject({
        cause: 'destination_unavailable',
        incident: { id },
      });
    // Every list names it once.
    const line =
      /The bucket .* does not respond since .*: The S3 server refused the connection\. 2 exports, 3 intervals wait\./;
    const { text } = await api.call('GET', 'console/overview/');
    expect((JSON.parse(text) as Overview).incidents).toEqual([{ id, summary: expect.stringMatching(line) }]);
    const status = await exportd({ EXPORTD_BASE_URL: baseUrl, EXPORTD_API_KEY: api.key }, 'status');
    expect(status.stdout.split('\n').filter((found) => line.test(found))).toHaveLength(1);
    expect([status.code, status.stdout]).toEqual([2, expect.not.stringContaining(ids[0] ?? '')]);
    const environment = {
      DATABASE_URL: api.database.url,
      TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
    };
    const checksOf = async () => {
      const { stdout } = await exportd(environment, 'doctor', '--json');
      return (JSON.parse(stdout) as { check: string }[]).find(({ check }) => check === 'conditions');
    };
    expect(await checksOf()).toEqual({
      check: 'conditions',
      ok: false,
      detail: expect.stringMatching(
        new RegExp(
          `3 intervals wait \\(incident ${id}\\)\\. 2 of 3 exports need attention, see "exportd status"`,
        ),
      ),
    });
    // One that joins the outage is no news.
    ids.push(await createExport('Joins', 2, 1));
    expect(await messagesAfter(() => circuits.open(circuit, 'Still.'))).toEqual([]);

    const closed = await messagesAfter(() => circuits.close(circuit));
    expect(closed).toMatchObject([
      {
        type: 'destination.recovered',
        data: {
          incident: { id, exports: 3, intervals: 4, closed_at: expect.any(String), closed_by: 'recovery' },
        },
      },
    ]);
    expect([...opened, ...closed].map(pagerDuty)).toMatchObject([
      { routing_key: 'R0123', event_action: 'trigger', dedup_key: id },
      { routing_key: 'R0123', event_action: 'resolve', dedup_key: id },
    ]);
    const [begin, end] = [...opened, ...closed].map(slackText);
    expect(begin).toMatch(/^The bucket \S+.* does not respond: 2 exports, 3 intervals wait\.$/);
    expect(end).toMatch(/^The bucket \S+.* responds again: 3 exports, 4 intervals waited\.$/);
    expect(log.lines).toMatchObject([
      { incident_id: id, exports: 3, msg: expect.stringContaining('does not respond') },
      { incident_id: id, exports: 4, msg: 'The bucket responds again.' },
    ]);
    expect(await checksOf()).toMatchObject({ ok: true, detail: '4 exports, none needs attention' });
    // Nothing rings after it.
    expect(await messagesAfter(() => Promise.resolve())).toEqual([]);
    await remove(ids);
  });

  it('of the login of the source is one incident too, whatever meets it', async () => {
    const ids = [await createExport('Locked out', 3, 1), await createExport('Locked out too', 3, 1)];
    const log = collectLog();
    const check = async (ping: () => Promise<void>): Promise<void> => {
      const plain = readSettings({ DATABASE_URL: 'unused' });
      const alarm = createFaultAlarm(api.database.pool, plain, log.logger, undefined, { ping });
      alarm.start();
      await alarm.stop();
    };
    const rejected = Object.assign(new DatabaseError('rejected', 0, 'error'), { code: '28P01' });
    const opened = await messagesAfter(() => check(() => Promise.reject(rejected)));
    const closed = await messagesAfter(() => check(() => Promise.resolve()));
    const incident = { subject: 'the source', exports: 2, intervals: 4 };
    expect([...opened, ...closed]).toMatchObject([
      {
        type: 'source.unavailable',
        data: {
          incident: { ...incident, closed_at: null },
          latest_error: expect.stringContaining('The source cannot be read: The database rejected the login'),
        },
      },
      { type: 'source.recovered', data: { incident } },
    ]);
    expect(new Set([...opened, ...closed].map(({ data }) => data.incident.id))).toEqual(
      new Set(log.lines.map(({ incident_id }) => incident_id)),
    );
    expect(slackText(opened[0])).toBe('Exportd cannot read the source: 2 exports, 4 intervals wait.');
    await remove(ids);
  });

  it('that no export waits for any more is over, and is not said to respond', async () => {
    const { pool } = api.database;
    const id = await createExport('Given up', 3, 1);
    const circuit = await circuitOf(id);
    const circuits = createCircuitStore(pool, s3Settings(), collectLog().logger);
    const opened = await messagesAfter(() => circuits.open(circuit, 'Refused.'));
    const closed = await messagesAfter(() => api.call('POST', `batch_exports/${id}/pause`));
    expect(closed).toMatchObject([
      {
        type: 'destination.recovered',
        data: { incident: { id: opened[0]?.data.incident.id, closed_by: 'disuse' } },
      },
    ]);
    expect(slackText(closed[0])).toMatch(
      /^No export waits for the bucket \S+.* any more: 1 export, 2 intervals waited\.$/,
    );
    await circuits.close(circuit);
    await remove([id]);
  });

  it('is over when the last of its exports is deleted', async () => {
    const { pool } = api.database;
    const ids = [await createExport('Leaves', 3, 1), await createExport('Leaves last', 2, 1)];
    const circuit = await circuitOf(ids[0] ?? '');
    const circuits = createCircuitStore(pool, s3Settings(), collectLog().logger);
    const opened = await messagesAfter(() => circuits.open(circuit, 'Refused.'));
    expect(await messagesAfter(() => remove(ids.slice(0, 1)))).toEqual([]);
    expect(await messagesAfter(() => remove(ids.slice(1)))).toMatchObject([
      {
        type: 'destination.recovered',
        data: { incident: { id: opened[0]?.data.incident.id, closed_by: 'disuse' } },
      },
    ]);
    await circuits.close(circuit);
  });

  it('hides that its exports are late, and for a while that they catch up', async () => {
    const { pool } = api.database;
    const late = await createExport('Late', 30, 28);
    const circuit = await circuitOf(late);
    const circuits = createCircuitStore(pool, s3Settings(), collectLog().logger);
    const typesAfter = async (work: () => Promise<unknown>) =>
      (await messagesAfter(work)).map(({ type }) => type);
    await circuits.open(circuit, 'Refused.');
    expect((await messages()).at(-1)?.type).toBe('destination.unavailable');
    expect(await typesAfter(() => circuits.close(circuit))).toEqual(['destination.recovered']);
    expect(await typesAfter(() => Promise.resolve())).toEqual([]);
    // It lasts, so that a person has to know.
    const age = () =>
      pool.query(`update exportd.notified_conditions set seen_at = seen_at - interval '15 minutes'`);
    expect(await typesAfter(age)).toEqual(['export.behind']);
    await remove([late]);
  });
});

describe('the trouble of one export', () => {
  it('has one id from its first failure to its recovery', async () => {
    const policies = createPolicies(readSettings({ DATABASE_URL: 'unused' }), configRules);
    const id = await createExport('Fails', 3, 1);
    await api.advanceSchedule(id);
    const { body } = await api.call('GET', `batch_exports/${id}/runs/?ordering=data_interval_start`);
    const runs = (body.results as { id: string }[]).map((run) => run.id);
    const failed = await messagesAfter(async () => {
      for (const run of runs)
        await endRun(api.journal, policies, run, {
          status: 'Failed',
          latest_error: 'NoSuchBucket: It is gone.',
        });
    });
    expect(failed).toMatchObject(
      runs.map((_, index) => ({
        type: 'run.failed',
        data: { incident: { subject: null, cause: 'failed', exports: 1, intervals: index + 1 } },
      })),
    );
    expect(new Set(failed.map(({ data }) => data.incident.id)).size).toBe(1);
    expect(failed.map(pagerDuty)).toMatchObject(failed.map(() => ({ event_action: 'trigger' })));
  });

  it('is over when the export is deleted, and every webhook that heard of it is told', async () => {
    const { pool } = api.database;
    const policies = createPolicies(readSettings({ DATABASE_URL: 'unused' }), configRules);
    const id = await createExport('Deleted', 2, 1);
    let late = '';
    const { body: own } = await api.call('POST', 'webhooks/', {
      url: 'https://receiver.example/own',
      batch_export: id,
    });
    await api.advanceSchedule(id);
    const { body } = await api.call('GET', `batch_exports/${id}/runs/`);
    const [run] = body.results as { id: string }[];
    const opened = await messagesAfter(async () => {
      late = await createExport('Deleted late', 30, 28);
      await endRun(api.journal, policies, run?.id ?? '', { status: 'Failed', latest_error: 'Gone.' });
    });
    expect(opened.map(({ type }) => type).toSorted()).toEqual(['export.behind', 'run.failed', 'run.failed']);
    const closed = await messagesAfter(() => remove([id, late]));
    const idOf = (type: string) => opened.find((one) => one.type === type)?.data.incident.id;
    const recovered = {
      type: 'batch_export.recovered',
      data: { batch_export_name: 'Deleted', incident: { id: idOf('run.failed'), closed_by: 'deletion' } },
    };
    expect(closed.toSorted((one, other) => one.type.localeCompare(other.type))).toMatchObject([
      recovered,
      recovered,
      { type: 'export.caught_up', data: { incident: { id: idOf('export.behind'), closed_by: 'deletion' } } },
    ]);
    expect(closed.map(slackText)).toContain('Deleted: The batch export was deleted.');
    expect(closed.map(pagerDuty)).toMatchObject(closed.map(() => ({ event_action: 'resolve' })));
    // Its own webhook lasts until it has heard of that.
    const path = `webhooks/${String(own.id)}/`;
    expect((await api.call('GET', path)).status).toBe(200);
    await pool.query(
      `update exportd.webhook_deliveries set status = 'delivered', ended_at = clock_timestamp()
       where webhook_id = $1 and status = 'pending'`,
      [own.id],
    );
    expect(await messagesAfter(() => Promise.resolve())).toEqual([]);
    expect((await api.call('GET', path)).status).toBe(404);
  });
});
