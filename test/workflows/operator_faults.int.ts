import { randomBytes, randomUUID } from 'node:crypto';
import { Context } from '@temporalio/activity';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createExportActivities } from '../../activities/run.ts';
import { createKeyRing, type KeyRing } from '../../src/config/key_ring.ts';
import {
  createMayShrink,
  createSelectionReader,
  storeConfig,
} from '../../src/destination/config_versions.ts';
import { createDestinationOpener, createLocationOpener } from '../../src/destination/open_destination.ts';
import { createMemoryBudget } from '../../src/encoding/memory.ts';
import { createPerExportLimit } from '../../src/export/per_export_limit.ts';
import { readOpenFaults } from '../../src/failures/operator_faults.ts';
import { createOperatorWebhook } from '../../src/notifications/operator_webhook.ts';
import { requireRun } from '../../src/http/runs/read_model.ts';
import { inTransaction } from '../../src/journal/database.ts';
import { createSource } from '../../src/source/postgres_source.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createExportSlots } from '../../src/temporal/worker/activity_slots.ts';
import { definition } from '../decisions/commander.ts';
import { configOf } from '../destination/bucket_requests.ts';
import { insertEvents } from '../export/export_harness.ts';
import { type Receiver, startReceiver } from '../notifications/receiver.ts';
import { createBucket, type TestBucket } from '../setup/bucket.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  type ControlPlaneHarness,
  createControlPlaneHarness,
  lastHours,
} from '../temporal/control_plane_harness.ts';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import { createOutages } from '../../src/failures/outages.ts';
import { createFaultAlarm } from '../../src/failures/fault_alarm.ts';

const keyRing = createKeyRing(`main:${randomBytes(32).toString('base64')}`);
const otherKeyRing = createKeyRing(`other:${randomBytes(32).toString('base64')}`);
const webhookSecret = `whsec_${randomBytes(32).toString('base64')}`;
const role = `reader_${randomUUID().replaceAll('-', '')}`;
const hours = 2;
const range = lastHours(hours);

let stack: ControlPlaneHarness;
let bucket: TestBucket;
let operator: Receiver;
/** The key ring of each attempt to open a destination, as if workers with different ones took turns. */
let keyRings: () => KeyRing = () => keyRing;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  bucket = await createBucket();
  operator = await startReceiver(webhookSecret);
  stack = await createControlPlaneHarness(
    {
      EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
      EXPORTD_SETTLE_DELAY: '0s',
      EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL: '500ms',
      EXPORTD_OPERATOR_WEBHOOK_URL: operator.url,
      EXPORTD_OPERATOR_WEBHOOK_SECRET: webhookSecret,
      EXPORTD_LOG_LEVEL: 'silent',
    },
    ({ url, pool }, settings, recorder) => {
      const sourceUrl = new URL(url);
      sourceUrl.username = role;
      sourceUrl.password = role;
      const source = createSource({ sourceUrl: sourceUrl.href, settings });
      const encoders = createEncoderPool({ threads: 1 });
      const logger = createLogger('test', settings);
      const alarm = createFaultAlarm(pool, settings, logger, createOperatorWebhook(settings));
      alarm.start();
      closing.push(
        () => alarm.stop(),
        () => source.close(),
        () => encoders.close(),
      );
      const exportActivities = createExportActivities({
        recorder,
        source,
        encoders,
        memory: createMemoryBudget(settings.EXPORTD_MEMORY_BUDGET),
        slots: createExportSlots(settings),
        perExportLimit: createPerExportLimit(Infinity),
        openDestination: (...given) => createDestinationOpener(pool, keyRings(), settings)(...given),
        openLocation: createLocationOpener(pool, keyRing, settings),
        mayShrink: createMayShrink(pool),
        targets: [],
        readSelection: createSelectionReader(pool),
        outages: createOutages(pool, settings, logger),
        logger,
        settings,
      });
      return { source, exportActivities };
    },
  );
  await stack.pool.query(`create role ${role} login password '${role}' in role exportd_other_roles`);
  await grant();
  for (let hour = 1; hour <= hours; hour += 1) await insertEvents(stack.pool, 5, lastHours(hour).start_at);
  await stack.startWorker();
});
afterAll(async () => {
  await stack.stopWorker();
  for (const close of closing) await close();
  await stack.pool.query(`drop owned by ${role}; drop role ${role}`);
  await stack.close();
  await operator.close();
  bucket.client.destroy();
});

const grant = () => stack.pool.query(`grant select on all tables in schema public to ${role}`);
const disconnect = () =>
  stack.pool.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [role]);

async function createExport(): Promise<string> {
  const id = randomUUID();
  const config_version = await inTransaction(stack.pool, (connection) =>
    storeConfig(
      connection,
      { keyRing, settings: stack.settings },
      { batch_export_id: id, destination_type: 'S3', config: configOf(bucket, { prefix: id }) },
    ),
  );
  const created = { ...definition, interval: 'hour', end_at: range.end_at, config_version };
  await stack.command(id, 'create', { definition: created, paused: false });
  return id;
}

/** Starts runs of the last hours for two exports. */
async function startRuns(): Promise<string[]> {
  const ids = [await createExport(), await createExport()];
  for (const id of ids) await stack.command(id, 'backfill', range);
  return ids;
}

const runsOfAll = async (ids: readonly string[]) =>
  (await Promise.all(ids.map((id) => stack.runsOf(id)))).flat();

const waitForCompleted = (ids: readonly string[]) =>
  waitFor(async () => {
    const runs = await runsOfAll(ids);
    return runs.length >= hours * ids.length && runs.every(({ status }) => status === 'Completed');
  }, 'all runs to complete');

const waitForNoFault = () =>
  waitFor(async () => (await readOpenFaults(stack.pool)).length === 0, 'the fault to be resolved');

/** Events of the journal, which a wait for the operator must not need. */
const failedAttempts = async (): Promise<readonly unknown[]> => {
  const { rows } = await stack.pool.query<object>(
    `select from exportd.journal_events where event_type = 'RunAttemptFailed'`,
  );
  return rows;
};

const waitingRuns = async (): Promise<number> => (await readOpenFaults(stack.pool))[0]?.waiting_runs ?? 0;

describe("runs wait for the operator and resume by themselves after an operator's fault", () => {
  it.each([
    {
      name: 'a renamed relation',
      type: 'RelationNotFound',
      cause: () => stack.pool.query('alter table events rename to renamed'),
      fix: () => stack.pool.query('alter table renamed rename to events'),
    },
    {
      name: 'the same relation once more, of which the operator is notified again',
      type: 'RelationNotFound',
      cause: () => stack.pool.query('alter table events rename to renamed'),
      fix: () => stack.pool.query('alter table renamed rename to events'),
    },
    {
      name: 'a refused login',
      type: 'InvalidAuthorization',
      cause: async () => {
        await stack.pool.query(`alter role ${role} nologin`);
        await disconnect();
      },
      fix: () => stack.pool.query(`alter role ${role} login`),
    },
    {
      name: 'a revoked permission',
      type: 'InsufficientPrivilege',
      cause: () => stack.pool.query(`revoke select on events from ${role}`),
      fix: grant,
    },
  ])('$name', async ({ type, cause, fix }) => {
    const notified = operator.messages.length;
    await cause();
    const ids = await startRuns();
    await waitFor(async () => (await waitingRuns()) === hours * ids.length, 'all runs to wait');
    await waitFor(() => operator.messages.length > notified, 'the notification of the operator');

    const faults = await readOpenFaults(stack.pool);
    expect(faults).toMatchObject([{ type, waiting_runs: hours * ids.length }]);
    const [waiting] = await runsOfAll(ids);
    const shown = await requireRun(stack.pool, {
      batch_export_id: waiting?.batch_export_id ?? '',
      id: waiting?.id ?? '',
    });
    expect(shown).toMatchObject({ status: 'Starting', operator_fault: { type } });
    // Each waits in one execution.
    const { rows: renewed } = await stack.pool.query(
      'select from exportd.operator_fault_runs where renewed_execution is not null',
    );
    expect(renewed).toEqual([]);

    await fix();
    await waitForCompleted(ids);
    await waitForNoFault();
    const runs = await runsOfAll(ids);
    expect(runs).toHaveLength(hours * ids.length);
    expect(runs.map(({ retry_number }) => retry_number)).toEqual(runs.map(() => 0));
    const { rows: paused } = await stack.pool.query('select from exportd.batch_exports where paused');
    expect(paused).toEqual([]);
    expect(await failedAttempts()).toEqual([]);
    await waitFor(() => operator.messages.length > notified + 1, 'the notification of the end');
    expect(operator.messages.slice(notified)).toMatchObject([
      { type: 'operator_fault', signed: true, data: { type } },
      { type: 'operator_fault.resolved', signed: true, data: { type } },
    ]);
  });

  it('one of two workers without the key', async () => {
    let opened = 0;
    // An attempt runs on one worker, and opens its destination for the rows and for the manifest.
    keyRings = () => {
      opened += 1;
      return Context.current().info.attempt % 2 === 1 ? otherKeyRing : keyRing;
    };
    const ids = await startRuns();
    await waitForCompleted(ids);
    expect(await runsOfAll(ids)).toHaveLength(hours * ids.length);
    expect(opened).toBeGreaterThan(hours * ids.length);
    expect(await failedAttempts()).toEqual([]);
    await waitForNoFault();
  });

  it('all workers without the key, for longer than the limits of the run', async () => {
    keyRings = () => otherKeyRing;
    stack.setActivityTimeout(1_500);
    const id = await createExport();
    await stack.command(id, 'backfill', lastHours(1));
    await waitFor(async () => {
      const { rows } = await stack.pool.query(
        'select from exportd.operator_fault_runs where renewed_execution is not null',
      );
      return rows.length > 0;
    }, 'the limits to be renewed');
    await waitFor(async () => (await waitingRuns()) === 1, 'the run to wait in its next execution');

    stack.setActivityTimeout(undefined);
    keyRings = () => keyRing;
    await stack.waitForRun(id, 'Completed');
    expect(await stack.runsOf(id)).toHaveLength(1);
    expect(await failedAttempts()).toEqual([]);
    await waitForNoFault();
  });
});
