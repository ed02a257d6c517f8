import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DateTime } from 'luxon';
import pg from 'pg';
import { Registry } from 'prom-client';
import { readSettings } from '../../src/config/settings.ts';
import { createPolicies } from '../../src/decisions/policies.ts';
import { configRules } from '../../src/temporal/capabilities.ts';
import { notifyConditionChanges } from '../../src/notifications/condition_changes.ts';
import { storeNotification } from '../../src/notifications/store_notification.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { recordIntervalCheck } from '../../src/projections/interval_checks.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import type { Condition } from '../../src/domain/condition.ts';
import { classifyError } from '../../src/failures/classify_error.ts';
import { storeFault } from '../../src/failures/operator_faults.ts';
import { createOperatorWebhook } from '../../src/notifications/operator_webhook.ts';
import type { Overview } from '../../src/http/console/pages/schema.ts';
import { registerDeploymentMetrics, registerExportMetrics } from '../../src/http/metrics.ts';
import { createPool, inTransaction, type Pool } from '../../src/journal/database.ts';
import { createWebhookSecret } from '../../src/notifications/send_webhook.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { exportd } from '../cli/command_line.ts';
import { createCommander } from '../decisions/commander.ts';
import { createSimulatedRuns } from '../decisions/simulated_runs.ts';
import { type Receiver, startReceiver } from '../notifications/receiver.ts';
import { fromSetUp } from '../setup/environment.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { waitFor } from '../setup/wait_for.ts';
import { collectLog } from '../telemetry/collect_log.ts';
import { valuesOf } from '../temporal/metrics/metric_values.ts';
import { type ApiHarness, openApiHarness } from './api_harness.ts';
import { createLaggingExport } from './lagging_export.ts';
import type { ConditionCause } from '../../src/domain/condition_causes.ts';
import { createFaultAlarm } from '../../src/failures/fault_alarm.ts';
import { createServerAlarm } from '../../src/failures/server_alarm.ts';
import { readNotifications } from '../notifications/read_notifications.ts';

let api: ApiHarness;
let receiver: Receiver;
let baseUrl: string;
let webhook: string;
let runs: ReturnType<typeof createSimulatedRuns>;
const settings = readSettings({ DATABASE_URL: 'unused' });
const policies = createPolicies(settings, configRules);
const logger = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });

beforeAll(async () => {
  api = await openApiHarness({
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_WEBHOOK_TIMEOUT: '60s',
    EXPORTD_MAX_BACKFILLS_PER_PROJECT: '1000',
  });
  runs = createSimulatedRuns(
    api.journal,
    createRunRecorder(api.journal),
    createCommander(api.journal, policies),
  );
  const secret = createWebhookSecret();
  receiver = await startReceiver(secret);
  baseUrl = await api.listen();
  const { body } = await api.call('POST', 'webhooks/', { url: receiver.url, secret });
  webhook = String(body.id);
});
afterAll(async () => {
  await receiver.close();
  await api.close();
});

/** An export of each minute, without an interval that is due, and the runs of a backfill of these minutes, oldest first. */
async function createExport(name: string, ...backfills: readonly (readonly [from: number, to: number])[]) {
  const id = await createLaggingExport(api, minuteAgo(1), {
    name,
    end_at: minuteAgo(1).toISOString(),
  });
  for (const [from, to] of backfills)
    await api.call('POST', `batch_exports/${id}/backfill`, {
      start_at: minuteAgo(from).toISOString(),
      end_at: minuteAgo(to).toISOString(),
    });
  const { body } = await api.call('GET', `batch_exports/${id}/runs/?ordering=data_interval_start&limit=100`);
  return { id, own: (body.results as { id: string }[]).map((run) => run.id) };
}

const publish = async (run: string): Promise<void> =>
  runs.publish(run, await runs.start(run), `${run}.jsonl`, 1);

const fail = (run: string, latest_error: string) =>
  endRun(api.journal, policies, run, { status: 'Failed', latest_error });

const conditionAt = async (id: string): Promise<Condition> =>
  (await api.call('GET', `batch_exports/${id}/`)).body.condition as Condition;

/** Sends a message about the export, and returns what it says of its condition. */
async function notifiedCondition(id: string): Promise<unknown> {
  const cause = randomUUID();
  await inTransaction(api.database.pool, (connection) =>
    storeNotification(connection, {
      type: 'run.failed',
      cause,
      team_id: api.projectId,
      batch_export_id: id,
      backfill_id: null,
      run_id: null,
      status: 'Failed',
      latest_error: cause,
      data_interval_start: null,
      data_interval_end: null,
      incident: null,
    }),
  );
  const { rows } = await api.database.pool.query<{ id: string }>(
    `select delivery.id from exportd.webhook_deliveries delivery
     join exportd.notifications notification on notification.id = notification_id
     where notification.data->>'latest_error' = $1`,
    [cause],
  );
  // As the reconciler does when the workflow of a delivery was lost.
  await api.call('POST', `webhooks/${webhook}/deliveries/${rows[0]?.id}/resend/`, {});
  const message = await waitFor(
    () => receiver.messages.find(({ data }) => data.latest_error === cause),
    'the message arrives',
  );
  return message.data.condition;
}

/** The events of an export without those that this file sends itself, after conditions were compared once more. */
async function eventsSince(id: string): Promise<string[]> {
  await notifyConditionChanges(api.database.pool);
  const types = (await readNotifications(api.database.pool, id)).map(({ type }) => type);
  return types.filter((type) => type !== 'run.failed');
}

/** What every surface says of an export. */
async function surfacesOf(id: string) {
  const condition = await conditionAt(id);
  const { body: list } = await api.call('GET', 'batch_exports/?limit=1000');
  const { text } = await api.call('GET', 'console/overview/?limit=1000');
  const { exports } = JSON.parse(text) as Overview;
  const environment = { EXPORTD_BASE_URL: baseUrl, EXPORTD_API_KEY: api.key };
  const status = await exportd(environment, 'status');
  const json = await exportd(environment, 'status', '--json');
  const show = await exportd(environment, 'export', 'show', id);
  const names = await exportd(environment, 'export', 'list');
  const metrics = new Registry();
  registerExportMetrics(metrics, {
    pool: api.database.pool,
    logger,
    settings: { EXPORTD_METRICS_PER_EXPORT: true, EXPORTD_COMPARISON_FIRST: 3_600_000 },
    cacheMs: 0,
  });
  const series = Object.entries(await valuesOf(metrics, 'exportd_export_condition')).filter(
    ([labels, value]) => value > 0 && labels.includes(id),
  );
  const lineOf = (output: string): string => output.split('\n').find((line) => line.includes(id)) ?? '';
  const { batch_exports } = JSON.parse(json.stdout) as {
    batch_exports: { id: string; condition: Condition }[];
  };
  return {
    condition,
    others: {
      list: (list.results as { id: string; condition: Condition }[]).find((one) => one.id === id)?.condition,
      overview: exports.find((one) => one.id === id)?.condition,
      statusJson: batch_exports.find((one) => one.id === id)?.condition,
    },
    notified: await notifiedCondition(id),
    status: {
      code: status.code,
      line:
        lineOf(status.stdout) ||
        (status.stdout.split('\n').find((line) => line.includes(condition.incident?.summary ?? id)) ?? ''),
    },
    show: show.stdout,
    names: lineOf(names.stdout),
    series: series.map(([labels]) => labels),
  };
}

/** Expects every surface to say the same cause and sentence, and returns the condition. */
async function expectEverywhere(id: string, cause: ConditionCause): Promise<Condition> {
  const found = await surfacesOf(id);
  const { condition } = found;
  expect(condition.cause).toBe(cause);
  const { severity, summary, since, owner, coverage } = condition;
  // The ranges grow with the clock, the sentence does not: the schedule of these exports has ended.
  const same = { ...condition, coverage: { ...coverage, ranges: expect.any(Array) } };
  expect(found.others).toEqual({ list: same, overview: same, statusJson: same });
  expect(found.notified).toEqual({ severity, cause, summary, since, owner });
  expect(found.status.line).toMatch(new RegExp(`^${severity} +${cause} `));
  expect(found.show).toContain(`Condition: ${cause} (${severity}): ${summary}`);
  expect(found.names).toMatch(new RegExp(` ${cause} `));
  expect(found.names.endsWith(coverage?.sentence ?? '')).toBe(true);
  expect(found.series).toEqual([expect.stringContaining(`cause=${cause},`)]);
  expect(found.series[0]).toContain(`severity=${severity}`);
  // The exports that an outage concerns have one line, without what is exported.
  const isShared = !found.status.line.includes(id);
  const said =
    severity === 'ok' ? ' - ' : isShared ? (condition.incident?.summary ?? 'an incident') : summary;
  expect(found.status.line).toContain(said);
  expect(found.status.line).toMatch(
    isShared ? / \d+ exports, \d+ intervals wait\. / : / Exported .*\.$| Nothing is exported yet\. .*\.$/,
  );
  expect(found.status.line.endsWith(isShared ? '' : (coverage?.sentence ?? ''))).toBe(true);
  expect(found.show).toContain(coverage?.sentence);
  return condition;
}

describe('every surface says the same of an export', () => {
  it('whose intervals are all exported', async () => {
    const { id, own } = await createExport('Exported', [4, 1]);
    for (const run of own) await publish(run);
    const { code, stdout } = await exportd({ EXPORTD_BASE_URL: baseUrl, EXPORTD_API_KEY: api.key }, 'status');
    expect([code, stdout]).toEqual([0, expect.stringContaining('Service: ok')]);
    const [first, last] = [4, 1].map((minutes) =>
      DateTime.fromJSDate(minuteAgo(minutes), { zone: 'UTC' }).toFormat('d LLL HH:mm'),
    );
    const sentence = `Exported ${first} – ${last} UTC. Not exported: anything before ${first}, before the export was created; since ${last}, after end_at.`;
    expect(await expectEverywhere(id, 'ok')).toEqual({
      severity: 'ok',
      cause: 'ok',
      summary: sentence,
      coverage: {
        sentence,
        ranges: [
          {
            start: null,
            end: minuteAgo(4).toISOString(),
            state: 'not_owed',
            reason: 'before creation',
          },
          {
            start: minuteAgo(4).toISOString(),
            end: minuteAgo(1).toISOString(),
            state: 'exported',
            reason: null,
          },
          {
            start: minuteAgo(1).toISOString(),
            end: expect.any(String),
            state: 'not_owed',
            reason: 'after end_at',
          },
        ],
        is_complete: true,
        next_end: null,
        backfills: null,
      },
      since: null,
      owner: 'none',
      affected: { intervals: 0, ranges: [] },
      actions: [],
      incident: null,
    });
  });

  it('with an interval that is held, also after a newer run has succeeded', async () => {
    const { id, own } = await createExport('Held', [4, 1]);
    const [first = '', ...rest] = own;
    await runs.start(first);
    await runs.hold(first, policies);
    for (const run of rest) await publish(run);
    const condition = await expectEverywhere(id, 'held');
    expect((await exportd({ EXPORTD_BASE_URL: baseUrl, EXPORTD_API_KEY: api.key }, 'status')).code).toBe(2);
    expect(condition).toMatchObject({
      severity: 'error',
      owner: 'tenant',
      affected: {
        intervals: 1,
        ranges: [{ start: minuteAgo(4).toISOString(), end: minuteAgo(3).toISOString() }],
      },
      actions: [
        {
          method: 'GET',
          path: `/api/projects/${api.projectId}/batch_exports/${id}/intervals/${minuteAgo(4).toISOString()}/difference/`,
          command: `exportd export difference ${id} ${minuteAgo(4).toISOString()}`,
        },
      ],
    });
    expect(await eventsSince(id)).toEqual(['run.held']);
    expect((await api.call('POST', `batch_exports/${id}/runs/${first}/retry/`)).status).toBe(200);
    const { body: newest } = await api.call('GET', `batch_exports/${id}/runs/?limit=1`);
    await publish((newest.results as { id: string }[])[0]?.id ?? '');
    await expectEverywhere(id, 'ok');
    expect(await eventsSince(id)).toEqual(['run.held', 'batch_export.recovered']);
  });

  it('that was held and retried before conditions were compared: its recovery is told too', async () => {
    const { id, own } = await createExport('Held shortly', [2, 1]);
    const [run = ''] = own;
    await runs.start(run);
    await runs.hold(run, policies);
    await api.call('POST', `batch_exports/${id}/runs/${run}/retry/`);
    const { body } = await api.call('GET', `batch_exports/${id}/runs/?status=Starting`);
    for (const { id: retry } of body.results as { id: string }[]) await publish(retry);
    expect(await eventsSince(id)).toEqual(['run.held', 'batch_export.recovered']);
  });

  it('whose files differ from the source by a check, until they do not', async () => {
    const { id, own } = await createExport('Differs', [3, 1]);
    for (const run of own) await publish(run);
    const check = (difference: string | null) =>
      recordIntervalCheck(api.database.pool, {
        batch_export_id: id,
        start: minuteAgo(3).toISOString(),
        end: minuteAgo(2).toISOString(),
        checked_by: 'verification',
        checked_at: new Date().toISOString(),
        difference,
        findings: {},
      });
    await check('1 row is not in the source');
    expect((await expectEverywhere(id, 'differs')).affected.intervals).toBe(1);
    expect(await eventsSince(id)).toEqual(['export.differs']);
    await check(null);
    await expectEverywhere(id, 'ok');
    expect(await eventsSince(id)).toEqual(['export.differs', 'export.agrees']);
  });

  it('that is late, until it is not, whatever pauses do meanwhile', async () => {
    const id = await createLaggingExport(api, minuteAgo(30), {
      name: 'Late',
      end_at: minuteAgo(28).toISOString(),
    });
    await expectEverywhere(id, 'not_started');
    expect(await eventsSince(id)).toEqual(['export.behind']);
    await api.call('POST', `batch_exports/${id}/pause`);
    expect(await eventsSince(id)).toEqual(['export.behind']);
    await api.call('POST', `batch_exports/${id}/unpause`);
    await api.advanceSchedule(id);
    expect((await conditionAt(id)).cause).toBe('behind');
    const { body } = await api.call('GET', `batch_exports/${id}/runs/`);
    for (const { id: run } of body.results as { id: string }[]) await publish(run);
    expect((await conditionAt(id)).cause).toBe('ok');
    expect(await eventsSince(id)).toEqual(['export.behind', 'export.caught_up']);
  });

  it('that is behind because no worker has a free slot, until its run has one, and in the doctor', async () => {
    const id = await createLaggingExport(api, minuteAgo(30), {
      name: 'Waits for a slot',
      end_at: minuteAgo(28).toISOString(),
    });
    const { pool } = api.database;
    const slots = { use: () => ({ slots: 4 }), areTaken: () => true };
    const capacity = { slots, turns: { areTaken: () => false } };
    const alarm = createFaultAlarm(pool, settings, logger, undefined, undefined, capacity);
    alarm.start();
    await alarm.stop();
    // As if it reported on.
    await pool.query(
      `update exportd.worker_heartbeats
       set seen_at = seen_at + interval '1 hour', slots_taken_at = slots_taken_at + interval '1 hour'`,
    );
    const doctor = async () => {
      const environment = {
        DATABASE_URL: api.database.url,
        TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
      };
      const { stdout } = await exportd(environment, 'doctor', '--json');
      const checks = JSON.parse(stdout) as { check: string; ok: boolean; detail: string }[];
      return checks.find(({ check }) => check === 'conditions')?.detail;
    };
    await expectEverywhere(id, 'not_started');
    await api.advanceSchedule(id);
    // Its runs wait for open transactions of the source.
    expect((await conditionAt(id)).cause).toBe('behind');
    const { body } = await api.call('GET', `batch_exports/${id}/runs/`);
    const own = (body.results as { id: string }[]).map((run) => run.id);
    for (const run of own) await runs.count(run);
    const condition = await expectEverywhere(id, 'behind_capacity');
    expect(condition).toMatchObject({ severity: 'warning', owner: 'operator', affected: { intervals: 2 } });
    expect(condition.summary).toMatch(
      /^Behind for lack of capacity: 2 intervals wait for a free slot, and all 4 of 1 worker are in use\. The oldest ended at .* UTC\. Start one more worker, or raise EXPORTD_EXPORT_SLOTS if the machines have CPU time left\.$/,
    );
    expect(await eventsSince(id)).toEqual(['export.behind']);
    const { stdout } = await exportd({ EXPORTD_BASE_URL: baseUrl, EXPORTD_API_KEY: api.key }, 'why', id);
    expect(stdout).toContain(`${condition.summary} The operator of exportd has to act.`);
    expect(await doctor()).toContain(`1 export for lack of capacity, the first: ${condition.summary}`);
    // Another worker has a free one.
    await pool.query(`insert into exportd.worker_heartbeats (worker, export_slots) values ('another', 4)`);
    expect((await conditionAt(id)).cause).toBe('behind');
    await pool.query(`delete from exportd.worker_heartbeats where worker = 'another'`);
    expect((await conditionAt(id)).cause).toBe('behind_capacity');
    // A run that has a slot waits for none, however long it takes.
    const started: { run: string; state: Awaited<ReturnType<typeof runs.start>> }[] = [];
    for (const run of own) started.push({ run, state: await runs.start(run) });
    expect((await conditionAt(id)).cause).toBe('behind');
    for (const { run, state } of started) await runs.publish(run, state, `${run}.jsonl`, 1);
    await expectEverywhere(id, 'ok');
    expect(await eventsSince(id)).toEqual(['export.behind', 'export.caught_up']);
    expect(await doctor()).not.toContain('capacity');
    await pool.query('delete from exportd.worker_heartbeats');
  });

  it('that is behind because its runs have no turn in any worker, until they have counted their rows', async () => {
    const id = await createLaggingExport(api, minuteAgo(30), {
      name: 'Waits for its turn',
      end_at: minuteAgo(28).toISOString(),
    });
    const { pool } = api.database;
    await pool.query(
      `insert into exportd.worker_heartbeats (worker, seen_at, export_slots, turns_taken_at)
       select 'busy', later, 4, later from (select clock_timestamp() + interval '1 hour' as later) reported`,
    );
    await expectEverywhere(id, 'not_started');
    await api.advanceSchedule(id);
    const condition = await expectEverywhere(id, 'behind_capacity');
    expect(condition).toMatchObject({ severity: 'warning', owner: 'operator', affected: { intervals: 2 } });
    expect(condition.summary).toMatch(
      /^Behind for lack of capacity: 2 intervals wait for their turn, and the only worker is busy\. The oldest ended at .* UTC\. Start one more worker\.$/,
    );
    // Another worker has turns.
    await pool.query(`insert into exportd.worker_heartbeats (worker, export_slots) values ('another', 4)`);
    expect((await conditionAt(id)).cause).toBe('behind');
    await pool.query(`delete from exportd.worker_heartbeats where worker = 'another'`);
    expect((await conditionAt(id)).cause).toBe('behind_capacity');
    const { body } = await api.call('GET', `batch_exports/${id}/runs/`);
    const own = (body.results as { id: string }[]).map((run) => run.id);
    for (const run of own) await runs.count(run);
    expect((await conditionAt(id)).cause).toBe('behind');
    for (const run of own) await publish(run);
    await expectEverywhere(id, 'ok');
    await pool.query('delete from exportd.worker_heartbeats');
  });

  it('with a hole between two exported ranges, until a backfill of it is requested', async () => {
    const { id, own } = await createExport('Holes', [30, 28], [10, 8]);
    for (const run of own) await publish(run);
    const condition = await expectEverywhere(id, 'holes');
    const hole = { start: minuteAgo(28).toISOString(), end: minuteAgo(10).toISOString() };
    expect(condition).toMatchObject({ severity: 'warning', affected: { intervals: 18, ranges: [hole] } });
    const { path = '', body, command } = condition.actions[0] ?? {};
    expect(command).toBe(`exportd export backfill ${id} --start-at ${hole.start} --end-at ${hole.end}`);
    // Who creates an export backfills it next: only holes that last are told.
    expect(await eventsSince(id)).toEqual([]);
    await api.database.pool.query(
      `update exportd.notified_conditions set seen_at = seen_at - interval '15 minutes' where batch_export_id = $1`,
      [id],
    );
    expect(await eventsSince(id)).toEqual(['export.holes']);
    expect((await api.call('POST', path, body)).status).toBe(200);
    expect((await conditionAt(id)).cause).toBe('ok');
    expect(await eventsSince(id)).toEqual(['export.holes', 'export.holes_filled']);
  });

  it('whose bucket denies access, with a retry of all that failed', async () => {
    const { id, own } = await createExport('Denied', [4, 1]);
    for (const run of own) {
      await runs.start(run);
      await fail(run, 'SignatureDoesNotMatch: The S3 server rejected the signature of a request.');
    }
    const access = await expectEverywhere(id, 'access_denied');
    expect(access.summary).toBe(
      '3 intervals failed and are not retried automatically: SignatureDoesNotMatch: The S3 server rejected the signature of a request.',
    );
    const { path = '', body } = access.actions[0] ?? {};
    const { body: retried } = await api.call('POST', path, body);
    expect(retried).toMatchObject({ runs: 3, results: [{ batch_export: id }] });
  });

  it('whose bucket does not respond, and why: who has changed its address before', async () => {
    const { id, own } = await createExport('Refused', [4, 1]);
    await createExport('Has the bucket elsewhere');
    const keys = { aws_access_key_id: 'AKIA1', aws_secret_access_key: 'secret' };
    const { pool } = api.database;
    await pool.query(`update exportd.api_keys set name = 'deploy' where name = ''`);
    const changed = await api.call('PATCH', `batch_exports/${id}/`, {
      destination: { type: 'S3', config: { endpoint_url: 'http://127.0.0.1:1', ...keys } },
    });
    expect([changed.status, changed.body.detail]).toEqual([200, undefined]);
    expect(own).toHaveLength(3);
    const { rows } = await pool.query<{ circuit: string | null }>(
      `select config.circuit from exportd.batch_exports export join exportd.destination_configs config
         on config.batch_export_id = export.id and config.version = export.config_version where export.id = $1`,
      [id],
    );
    await pool.query(
      `insert into exportd.destination_circuits (destination, opened_at, error, next_probe_at)
       values ($1, clock_timestamp(), 'The S3 server refused the connection.', clock_timestamp())`,
      [rows[0]?.circuit],
    );
    const condition = await expectEverywhere(id, 'destination_unavailable');
    expect(await eventsSince(id)).toEqual(['destination.unavailable']);
    const { status, body } = await api.call('GET', `batch_exports/${id}/why/`);
    expect([status, body.condition, body.change]).toEqual([
      200,
      condition,
      {
        at: expect.any(String),
        by: 'ada@example.com',
        key: 'deploy',
        fields: expect.arrayContaining(['destination.config.endpoint_url']),
      },
    ]);
    expect(body.summary).toMatch(
      /^The bucket .* at 127\.0\.0\.1:1 does not respond since .*: The S3 server refused the connection\. 3 intervals wait\. endpoint_url, .* were changed at .* UTC by ada@example\.com with the key "deploy"\. The owner of the export has to act\.$/,
    );
    const { stdout } = await exportd({ EXPORTD_BASE_URL: baseUrl, EXPORTD_API_KEY: api.key }, 'why', id);
    expect(stdout).toBe(`${String(body.summary)}\n${condition.coverage?.sentence}\n`);
    await pool.query('delete from exportd.destination_circuits');
    expect(await eventsSince(id)).toEqual(['destination.unavailable', 'destination.recovered']);
  });

  it('that exportd has paused after failures, until it is unpaused and retried', async () => {
    const id = await createLaggingExport(api, minuteAgo(4), {
      name: 'Paused',
      end_at: minuteAgo(1).toISOString(),
    });
    await api.advanceSchedule(id);
    const { body } = await api.call('GET', `batch_exports/${id}/runs/`);
    for (const { id: run } of body.results as { id: string }[])
      await fail(run, 'NoSuchBucket: The bucket does not exist.');
    await api.advanceSchedule(id);
    const condition = await expectEverywhere(id, 'paused_by_failures');
    expect(condition.summary).toMatch(
      /^exportd paused the export at .* UTC, after 3 failed runs in a row: NoSuchBucket: The bucket does not exist\.$/,
    );
    expect(condition.affected.intervals).toBe(3);
    for (const { path, body: request } of condition.actions)
      expect((await api.call('POST', path, request)).status).toBe(200);
    expect(condition.actions).toHaveLength(2);
    expect((await conditionAt(id)).cause).toBe('ok');
    // The schedule has no run to come, so that the retries of its intervals are what it recovers with.
    const { body: retries } = await api.call('GET', `batch_exports/${id}/runs/?status=Starting`);
    expect(retries.results).toHaveLength(3);
    for (const { id: run } of retries.results as { id: string }[]) await publish(run);
    expect(await eventsSince(id)).toEqual(['batch_export.paused', 'batch_export.recovered']);
  });

  it('while the source cannot be read, with what waits', async () => {
    const { id, own } = await createExport('Waiting', [4, 1]);
    await createExport('Waiting too', [4, 1]);
    expect(own).toHaveLength(3);
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const check = async (ping: () => Promise<void>): Promise<void> => {
      const alarm = createFaultAlarm(api.database.pool, settings, logger, undefined, { ping });
      alarm.start();
      await alarm.stop();
    };
    const dependencies = async () => {
      const metrics = new Registry();
      const describeTaskQueues = () => Promise.resolve([]);
      registerDeploymentMetrics(metrics, { pool: api.database.pool, describeTaskQueues, cacheMs: 0 });
      return valuesOf(metrics, 'exportd_dependency_up');
    };
    await check(() => Promise.reject(refused));
    const condition = await expectEverywhere(id, 'source_unavailable');
    expect(condition).toMatchObject({ severity: 'error', owner: 'operator', affected: { intervals: 3 } });
    expect(condition.summary).toMatch(/^The source refuses connections, since .* UTC\. 3 intervals wait\.$/);
    expect(await dependencies()).toMatchObject({ 'dependency=source': 0 });
    const { body } = await api.call('GET', '/readyz');
    expect(body.operator_faults).toMatchObject([
      { type: 'SourceUnavailable', message: 'The source refuses connections.' },
    ]);
    expect(await eventsSince(id)).toEqual(['source.unavailable']);
    await check(() => Promise.resolve());
    expect((await conditionAt(id)).cause).toBe('ok');
    expect(await eventsSince(id)).toEqual(['source.unavailable', 'source.recovered']);
    // One message each for the webhook of the project, however many exports the outage concerns.
    const { rows } = await api.database.pool.query<{ type: string; messages: number }>(
      `select type, count(*)::int as messages from exportd.webhook_deliveries delivery
       join exportd.notifications notification on notification.id = notification_id
       where type like 'source.%' group by 1 order by 1`,
    );
    expect(rows).toEqual([
      { type: 'source.recovered', messages: 1 },
      { type: 'source.unavailable', messages: 1 },
    ]);
    expect(await dependencies()).toMatchObject({ 'dependency=source': 1 });
    await api.database.pool.query('delete from exportd.worker_heartbeats');
  });

  it('while the source rejects the login: one fault, that of the runs that meet it', async () => {
    const { id, own } = await createExport('Locked out', [4, 1]);
    const { pool } = api.database;
    const rejected = Object.assign(new pg.DatabaseError('password authentication failed', 0, 'error'), {
      code: '28P01',
    });
    const log = collectLog();
    const check = async (ping: () => Promise<void>): Promise<void> => {
      const alarm = createFaultAlarm(pool, settings, log.logger, undefined, { ping });
      alarm.start();
      await alarm.stop();
    };
    await check(() => Promise.reject(rejected));
    for (const run of own) await storeFault(pool, log.logger, run, classifyError(rejected));
    const { body } = await api.call('GET', '/readyz');
    const message = 'The database rejected the login. Check DATABASE_URL and SOURCE_DATABASE_URL.';
    expect(body.operator_faults).toMatchObject([{ type: 'InvalidAuthorization', message }]);
    const [{ incident_id } = { incident_id: '' }] = body.operator_faults as { incident_id: string }[];
    const condition = await expectEverywhere(id, 'source_unavailable');
    expect(condition.incident?.id).toBe(incident_id);
    expect(condition.summary).toMatch(
      /^The source cannot be read: The database rejected the login\..*, since .* UTC\. 3 intervals wait\.$/,
    );
    await check(() => Promise.resolve());
    expect((await api.call('GET', '/readyz')).body.operator_faults).toEqual([]);
    expect((await conditionAt(id)).cause).toBe('ok');
    expect(log.lines).toMatchObject([
      { msg: `The operator has to act: ${message}`, incident_id },
      { msg: `This is over: ${message}`, incident_id },
    ]);
    // Another outage is another incident.
    await check(() => Promise.reject(rejected));
    expect((await conditionAt(id)).incident?.id).not.toBe(incident_id);
    await check(() => Promise.resolve());
    await pool.query('delete from exportd.worker_heartbeats');
  });

  it.each<[cause: ConditionCause, responds: boolean, silentSeconds: number, message: string]>([
    ['temporal_unavailable', false, 0, 'Temporal does not respond.'],
    ['no_worker', true, 50, 'No worker of exportd has reported.'],
  ])('while it is %s, which the operator is told too', async (cause, responds, silentSeconds, message) => {
    const { id } = await createExport(`Waiting with ${cause}`, [4, 1]);
    const { pool } = api.database;
    const seen = (seconds: number) =>
      pool.query(
        `insert into exportd.worker_heartbeats (worker, seen_at) values ('w', clock_timestamp() - $1 * interval '1 second')
         on conflict (worker) do update set seen_at = excluded.seen_at`,
        [seconds],
      );
    await seen(silentSeconds);
    const watching = await watchServers(pool, () =>
      responds ? Promise.resolve(1) : Promise.reject(new Error('Gone')),
    );
    expect(await watching.told('operator_fault')).toMatchObject({
      message,
      waiting_runs: expect.any(Number),
    });
    const condition = await expectEverywhere(id, cause);
    expect(condition).toMatchObject({ severity: 'error', owner: 'operator', affected: { intervals: 3 } });
    const { body } = await api.call('GET', '/readyz');
    expect(body.operator_faults).toMatchObject([{ message }]);
    await watching.stop();
    await seen(0);
    const healthy = await watchServers(pool, () => Promise.resolve(1));
    expect(await healthy.told('operator_fault.resolved')).toMatchObject({ message });
    await healthy.stop();
    expect((await conditionAt(id)).cause).toBe('ok');
    await pool.query('delete from exportd.worker_heartbeats');
  });
});

/** Watches the servers as a server does, with a webhook of the operator. */
async function watchServers(pool: Pool, pingTemporal: () => Promise<unknown>) {
  const secret = createWebhookSecret();
  const operator = await startReceiver(secret);
  const quick = readSettings({
    DATABASE_URL: 'unused',
    EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL: '10ms',
    EXPORTD_OPERATOR_WEBHOOK_URL: operator.url,
    EXPORTD_OPERATOR_WEBHOOK_SECRET: secret,
  });
  const alarm = createServerAlarm(pool, quick, logger, createOperatorWebhook(quick), pingTemporal);
  alarm.start();
  return {
    told: async (type: string) =>
      (
        await waitFor(
          () => operator.messages.find((one) => one.type === type),
          `the operator is told ${type}`,
        )
      ).data,
    stop: async () => {
      await alarm.stop();
      await operator.close();
    },
  };
}

describe('a control database that does not respond', () => {
  it('is told to the operator, and that it responds again', async () => {
    let gone = true;
    const { pool } = api.database;
    const unreachable = createPool('postgres://nobody@127.0.0.1:1/none', { max: 1 });
    const either = new Proxy(pool, {
      get: (target, name) => {
        const used = gone ? unreachable : target;
        const value: unknown = Reflect.get(used, name);
        return typeof value === 'function' ? (value.bind(used) as unknown) : value;
      },
    });
    const watching = await watchServers(either, () => Promise.resolve(1));
    const fault = { type: 'ControlDatabaseUnavailable', message: 'The control database does not respond.' };
    expect(await watching.told('operator_fault')).toMatchObject(fault);
    gone = false;
    expect(await watching.told('operator_fault.resolved')).toMatchObject(fault);
    await watching.stop();
    await unreachable.end();
  });
});
