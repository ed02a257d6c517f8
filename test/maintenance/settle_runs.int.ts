import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import type { ComparisonGroup } from '../../src/decisions/comparisons.ts';
import { readDueMaintenance } from '../../src/decisions/due_maintenance.ts';
import { batchExportDecider, type BatchExportEvent, type Model } from '../../src/domain/batch_export.ts';
import { checkRunBarrier, countRows } from '../../src/export/count.ts';
import { rebuild } from '../../src/projections/registry.ts';
import { quickPolicies } from '../decisions/commander.ts';
import { readRepairs } from '../decisions/read_backfills.ts';
import { readLog } from '../decisions/read_log.ts';
import { createExportHarness, interval, type ExportHarness } from '../export/export_harness.ts';
import { rollbackPrepared } from '../setup/rollback_prepared.ts';
import { createMaintenanceHarness, expire, type MaintenanceHarness } from './maintenance_harness.ts';
import { readEvents } from '../journal/read_stream.ts';
import { readComparisons } from './read_comparisons.ts';

let harness: ExportHarness;
let maintenance: MaintenanceHarness;
/** Sessions of a test's writers, which end with the test. */
let writers: pg.Client[] = [];

beforeAll(async () => {
  harness = await createExportHarness();
  maintenance = createMaintenanceHarness(harness);
});
afterAll(() => harness.close());
beforeEach(async () => {
  await harness.database.pool.query(
    `delete from events; delete from persons; delete from person_distinct_ids; delete from exportd.unsettled_runs`,
  );
  await harness.insertEvents(10);
});
afterEach(async () => {
  await Promise.all(writers.map((writer) => writer.end()));
  writers = [];
  await rollbackPrepared(harness.database.pool);
});

const query = async <Row extends object>(sql: string, ...values: unknown[]): Promise<Row[]> =>
  (await harness.database.pool.query<Row>(sql, values)).rows;

const lateEvent = `insert into events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
  values (1, gen_random_uuid(), 'late', 'person', '${interval.start}', '${interval.start}')`;

/** Inserts a person of the interval. */
const insertPerson = (client: pg.ClientBase | pg.Pool, distinctId: string) =>
  client.query(
    `with person as (
       insert into persons (team_id, id, properties, updated_at)
       values (1, gen_random_uuid(), '{}', $1::timestamptz) returning id, updated_at)
     insert into person_distinct_ids (team_id, distinct_id, person_id, updated_at)
     select 1, $2, id, updated_at from person`,
    [interval.start, distinctId],
  );

/** A transaction that has inserted a row into the interval. */
async function openTransaction(applicationName = 'writer'): Promise<pg.Client> {
  const writer = new pg.Client({
    connectionString: harness.database.url,
    application_name: applicationName,
  });
  await writer.connect();
  writers.push(writer);
  await writer.query('begin');
  await writer.query(lateEvent);
  return writer;
}

/** Exports and publishes the interval as the workflow does when the wait for open transactions times out at once. */
async function publish(
  batchExportId: string,
  model: Model = 'events',
  config: object = {},
  dialect?: string,
) {
  const run = await harness.createRun({ batchExportId, model, config, query: dialect });
  const { signal } = new AbortController();
  const { run_id } = run;
  const check = await checkRunBarrier(harness, { run_id, state: { phase: 'settling' } }, signal);
  const { state: barrier, blocked_by } = check;
  if (barrier.phase === 'settling') throw new Error('The interval is over.');
  if (barrier.phase !== 'open')
    await countRows(harness, { run_id, settled: false, blocked_by, barrier }, signal);
  const activities = harness.attempt();
  await activities.exportInterval(run);
  await activities.publishManifest(run);
  return { run_id, phase: barrier.phase };
}

/** An export whose only run was published while transactions were open. */
async function publishUnsettled(model: Model = 'events', config: object = {}, dialect?: string) {
  const batchExportId = randomUUID();
  await maintenance.createExport(batchExportId, 1, model);
  const { run_id, phase } = await publish(batchExportId, model, config, dialect);
  if (phase === 'open') throw new Error('No transaction is open.');
  return { batchExportId, run_id };
}

/** Appends an event of the export. */
const change = (batchExportId: string, event: BatchExportEvent) =>
  harness.journal.transaction(async (transaction) => {
    const stream = await transaction.lock(batchExportDecider, batchExportId);
    await stream.append(event.type, [event]);
  });

const checkBarriers = () => maintenance.activities().checkBarriers();
const settle = (batchExportId: string, settings: Record<string, string> = {}) =>
  maintenance.activities(settings).settleRuns({ batch_export_id: batchExportId });

/** Compares the export's interval with the source before its barrier opens. */
async function compareBefore(batchExportId: string): Promise<void> {
  const [group] = await query<ComparisonGroup>(
    `update exportd.interval_comparisons set next_due_at = next_due_at - interval '1 hour'
     where batch_export_id = $1 returning team_id, selection_hash`,
    batchExportId,
  );
  if (!group) throw new Error('The export has no comparisons.');
  expect(await maintenance.activities().compareIntervals(group)).toMatchObject({ compared: 1 });
}

/** The kinds of maintenance that are due because of unsettled runs. */
const dueKinds = async (): Promise<string[]> => {
  const { tasks } = await readDueMaintenance(harness.database.pool, quickPolicies().maintenance, []);
  return tasks.map(({ kind }) => kind).filter((kind) => ['checkBarriers', 'settleRuns'].includes(kind));
};

const repairOf = async (batchExportId: string): Promise<string | undefined> =>
  (await readRepairs(harness.database.pool, batchExportId))[0]?.id;

const eventsOf = async (runId: string): Promise<unknown[]> =>
  (await readEvents(harness.database.pool, runId, 'RunCounted', 'RunBarrierAdvanced', 'RunSettled')).map(
    ({ type, data }) => [type, (data.barrier as { phase?: string } | undefined)?.phase ?? data.outcome],
  );

const logOf = async (runId: string): Promise<string> =>
  (await readLog(harness.database.pool, { run_id: runId })).join('\n');

const unsettledRuns = () => query<{ run_id: string }>('select run_id from exportd.unsettled_runs');

describe('a run whose state this version cannot read', () => {
  it('keeps no other barrier from being checked', async () => {
    const writer = await openTransaction();
    const broken = await publishUnsettled();
    const { run_id } = await publishUnsettled();
    await query(
      `update exportd.unsettled_runs set barrier = barrier - 'blockers' where run_id = $1`,
      broken.run_id,
    );
    await writer.query('commit');
    expect(await checkBarriers()).toEqual({ checked: 2, opened: 1, has_more: false });
    expect(await eventsOf(run_id)).toContainEqual(['RunBarrierAdvanced', 'open']);
  });

  it('keeps no other run of its export from being followed up', async () => {
    const writer = await openTransaction();
    const { batchExportId, run_id } = await publishUnsettled();
    const broken = await publishUnsettled();
    await writer.query('commit');
    expect(await checkBarriers()).toMatchObject({ opened: 2 });
    // The read model says that it belongs to the same export, and comes first.
    await query(
      `update exportd.unsettled_runs set batch_export_id = $1, data_interval_start = data_interval_start - interval '1 hour'
       where run_id = $2`,
      batchExportId,
      broken.run_id,
    );
    await query(`update exportd.stream_states set state = '{}' where stream_id = $1`, broken.run_id);
    await expect(settle(batchExportId)).rejects.toThrow('Unexpected TypeError');
    expect(await maintenance.repairsOf(batchExportId)).toEqual([run_id]);
  });
});

describe('a run that was exported while a transaction was open', () => {
  it('is exported again when the transaction has committed rows', async () => {
    const writer = await openTransaction('etl');
    const { batchExportId, run_id } = await publishUnsettled();
    expect(await logOf(run_id)).toMatch(/Stopped waiting for open transactions .*application etl/);
    expect(await dueKinds()).toEqual(['checkBarriers']);
    expect(await checkBarriers()).toEqual({ checked: 1, opened: 0, has_more: false });
    expect(await settle(batchExportId)).toEqual({ settled: 0, has_more: false });
    await writer.query('commit');
    expect(await checkBarriers()).toEqual({ checked: 1, opened: 1, has_more: false });
    expect(await dueKinds()).toEqual(['settleRuns']);
    expect(await settle(batchExportId)).toEqual({ settled: 1, has_more: false });
    expect(await maintenance.repairsOf(batchExportId)).toEqual([run_id]);
    expect(maintenance.startedRepairs).toContain(await repairOf(batchExportId));
    expect(await eventsOf(run_id)).toEqual([
      ['RunCounted', 'transactions'],
      ['RunBarrierAdvanced', 'open'],
      ['RunSettled', 'exported_again'],
    ]);
    expect((await logOf(run_id)).match(/Exporting the interval again/g)).toHaveLength(1);
    expect(await logOf(run_id)).toMatch(/1 late rows: source has 11 rows .*Exporting the interval again\./);
    expect(await dueKinds()).toEqual([]);
    expect(await settle(batchExportId)).toEqual({ settled: 0, has_more: false });
    // Whatever the run of the retry finds, it ends the watch for the former run.
    await publish(batchExportId);
    expect(await unsettledRuns()).toEqual([]);
  });

  it.each([
    { comparisons: 'enabled', first: '1h' },
    { comparisons: 'disabled', first: '0s' },
  ])(
    'is not exported again when the transaction has added nothing, with comparisons $comparisons',
    async ({ first }) => {
      const writer = await openTransaction();
      const { batchExportId, run_id } = await publishUnsettled();
      await writer.query('rollback');
      await checkBarriers();
      expect(await settle(batchExportId, { EXPORTD_COMPARISON_FIRST: first })).toEqual({
        settled: 1,
        has_more: false,
      });
      expect(await maintenance.repairsOf(batchExportId)).toEqual([]);
      expect(await eventsOf(run_id)).toContainEqual(['RunSettled', 'same_rows']);
      expect(await unsettledRuns()).toEqual([]);
    },
  );

  it('is not exported again when the transaction committed before the rows were read', async () => {
    const writer = await openTransaction();
    const batchExportId = randomUUID();
    await maintenance.createExport(batchExportId, 1);
    const run = await harness.createRun({ batchExportId });
    const { run_id } = run;
    const { signal } = new AbortController();
    const { state, blocked_by } = await checkRunBarrier(
      harness,
      { run_id, state: { phase: 'settling' } },
      signal,
    );
    if (state.phase !== 'transactions') throw new Error('No transaction is open.');
    await writer.query('commit');
    await countRows(harness, { run_id, settled: false, blocked_by, barrier: state }, signal);
    await harness.attempt().exportInterval(run);
    await harness.attempt().publishManifest(run);
    await checkBarriers();
    await settle(batchExportId);
    expect(await maintenance.repairsOf(batchExportId)).toEqual([]);
    expect(await eventsOf(run_id)).toContainEqual(['RunSettled', 'same_rows']);
  });

  it('is exported again when its rows have become incomparable since they were equal', async () => {
    const writer = await openTransaction();
    const filters = [{ type: 'person', key: 'plan', operator: 'is_not_set' }];
    // Without persons, what events store alone decides which of them are selected.
    await query('alter table persons rename to hidden');
    const publishWithoutPersons = async () => {
      try {
        const published = await publishUnsettled('events', { filters });
        await compareBefore(published.batchExportId);
        return published;
      } finally {
        await query('alter table hidden rename to persons');
      }
    };
    const { batchExportId, run_id } = await publishWithoutPersons();
    const lastComparison = async () =>
      (await readComparisons(harness.database.pool, { run_id })).map(({ outcome, last_compared_at }) => ({
        outcome,
        last_compared_at,
      }));
    const equal = await lastComparison();
    await writer.query('commit');
    await checkBarriers();
    await settle(batchExportId);
    expect(await maintenance.repairsOf(batchExportId)).toHaveLength(1);
    expect(await eventsOf(run_id)).toContainEqual(['RunSettled', 'exported_again']);
    expect(await logOf(run_id)).toMatch(/have ended\. Exporting the interval again\./);
    expect(await lastComparison()).toEqual(equal);
  });

  it.each([{ isCompared: false }, { isCompared: true }])(
    'is not exported again when rows were only deleted, compared before: $isCompared',
    async ({ isCompared }) => {
      const writer = await openTransaction();
      const { batchExportId, run_id } = await publishUnsettled();
      await query('delete from events where ctid in (select ctid from events order by inserted_at limit 2)');
      if (isCompared) await compareBefore(batchExportId);
      await writer.query('rollback');
      await checkBarriers();
      expect(await settle(batchExportId)).toEqual({ settled: 1, has_more: false });
      expect(await maintenance.repairsOf(batchExportId)).toEqual([]);
      expect(await eventsOf(run_id)).toContainEqual(['RunSettled', 'no_late_rows']);
      expect(await logOf(run_id)).toContain('None arrived late');
    },
  );

  it('is exported again when rows were deleted and its files cannot be read', async () => {
    const writer = await openTransaction();
    const { batchExportId, run_id } = await publishUnsettled();
    await query('delete from events where ctid in (select ctid from events order by inserted_at limit 2)');
    for (const key of await maintenance.keysOf(batchExportId)) await maintenance.deleteObject(key);
    await compareBefore(batchExportId);
    await writer.query('rollback');
    await checkBarriers();
    await settle(batchExportId);
    expect(await maintenance.repairsOf(batchExportId)).toHaveLength(1);
    expect(await eventsOf(run_id)).toContainEqual(['RunSettled', 'exported_again']);
  });

  it('waits for a transaction that was prepared after the wait timed out, and not for later ones', async () => {
    const writer = await openTransaction();
    const { batchExportId, run_id } = await publishUnsettled();
    await writer.query(`prepare transaction 'after the timeout'`);
    expect(await checkBarriers()).toMatchObject({ opened: 0 });
    const later = await openTransaction();
    await later.query(`prepare transaction 'later'`);
    expect(await checkBarriers()).toMatchObject({ opened: 0 });
    await writer.query(`commit prepared 'after the timeout'`);
    expect(await checkBarriers()).toMatchObject({ opened: 1 });
    await later.query(`rollback prepared 'later'`);
    await settle(batchExportId);
    expect(await maintenance.repairsOf(batchExportId)).toHaveLength(1);
    expect(await eventsOf(run_id)).toEqual([
      ['RunCounted', 'transactions'],
      ['RunBarrierAdvanced', 'prepared'],
      ['RunBarrierAdvanced', 'open'],
      ['RunSettled', 'exported_again'],
    ]);
  });

  it('is watched while its export is paused, and followed up after that', async () => {
    const writer = await openTransaction();
    const { batchExportId, run_id } = await publishUnsettled();
    await change(batchExportId, { type: 'BatchExportPaused', data: { last_paused_at: null } });
    await writer.query('commit');
    expect(await checkBarriers()).toMatchObject({ opened: 1 });
    expect(await dueKinds()).toEqual([]);
    expect(await settle(batchExportId)).toEqual({ settled: 0, has_more: false });
    await change(batchExportId, { type: 'BatchExportUnpaused', data: {} });
    expect(await settle(batchExportId)).toMatchObject({ settled: 1 });
    expect(await eventsOf(run_id)).toContainEqual(['RunSettled', 'exported_again']);
  });

  it('is no longer watched when a newer run of the interval settles', async () => {
    const writer = await openTransaction();
    const { batchExportId } = await publishUnsettled();
    const other = await publishUnsettled();
    await writer.query('commit');
    await publish(batchExportId);
    expect(await unsettledRuns()).toEqual([{ run_id: other.run_id }]);
    expect(await checkBarriers()).toMatchObject({ checked: 1 });
    await change(other.batchExportId, { type: 'BatchExportDeleted', data: {} });
    expect(await unsettledRuns()).toEqual([]);
  });

  it('is left to an active run of the interval', async () => {
    const writer = await openTransaction();
    const { batchExportId } = await publishUnsettled();
    await writer.query('commit');
    await checkBarriers();
    const { run_id } = await harness.createRun({ batchExportId });
    expect(await settle(batchExportId)).toEqual({ settled: 0, has_more: false });
    expect(await maintenance.repairsOf(batchExportId)).toEqual([]);
    await maintenance.fail(run_id);
    expect(await settle(batchExportId)).toMatchObject({ settled: 1 });
  });

  it('does not export persons again when the transaction has added none', async () => {
    const writer = await openTransaction();
    await insertPerson(writer, 'late');
    const { batchExportId, run_id } = await publishUnsettled('persons');
    await writer.query('rollback');
    await checkBarriers();
    expect(await settle(batchExportId)).toMatchObject({ settled: 1 });
    expect(await maintenance.repairsOf(batchExportId)).toEqual([]);
    expect(await eventsOf(run_id)).toContainEqual(['RunSettled', 'same_rows']);
  });

  it('exports persons again each time that a transaction has added some', async () => {
    const first = await openTransaction();
    await insertPerson(first, 'first');
    const { batchExportId, run_id } = await publishUnsettled('persons');
    await first.query('commit');
    // Another transaction blocks the run of the retry.
    const second = await openTransaction();
    await insertPerson(second, 'second');
    await checkBarriers();
    await settle(batchExportId);
    expect(await maintenance.repairsOf(batchExportId)).toEqual([run_id]);
    const repeated = await publish(batchExportId, 'persons');
    expect(repeated.phase).toBe('transactions');
    await second.query('commit');
    await checkBarriers();
    expect(await settle(batchExportId)).toMatchObject({ settled: 1 });
    expect(await maintenance.repairsOf(batchExportId)).toEqual([repeated.run_id]);
    expect(await eventsOf(repeated.run_id)).toContainEqual(['RunSettled', 'exported_again']);
  });

  it('exports persons again once where the files have no keys', async () => {
    const query = 'select properties from persons';
    await insertPerson(harness.database.pool, 'known');
    const writer = await openTransaction();
    const { batchExportId, run_id } = await publishUnsettled('persons', {}, query);
    await writer.query('rollback');
    await checkBarriers();
    await settle(batchExportId);
    expect(await maintenance.repairsOf(batchExportId)).toEqual([run_id]);
    await openTransaction();
    const repeated = await publish(batchExportId, 'persons', {}, query);
    await writers.at(-1)?.query('commit');
    await checkBarriers();
    expect(await settle(batchExportId)).toMatchObject({ settled: 1 });
    expect(await maintenance.repairsOf(batchExportId)).toHaveLength(1);
    expect(await eventsOf(repeated.run_id)).toContainEqual(['RunSettled', 'not_exported_again']);
    expect(await unsettledRuns()).toEqual([]);
  });

  it.each(['events', 'persons'] as const)('is not exported again once it has expired (%s)', async (model) => {
    const writer = await openTransaction();
    const { batchExportId, run_id } = await publishUnsettled(model);
    await writer.query('commit');
    await checkBarriers();
    await expire(harness, batchExportId);
    expect(await settle(batchExportId)).toMatchObject({ settled: 1 });
    expect(await maintenance.repairsOf(batchExportId)).toEqual([]);
    expect(await eventsOf(run_id)).toContainEqual(['RunSettled', 'not_exported_again']);
    expect(await logOf(run_id)).toContain('Rules of the bucket have deleted its objects');
  });

  it('is watched again after the read models are rebuilt', async () => {
    const writer = await openTransaction();
    const { run_id } = await publishUnsettled();
    await rebuild(harness.database.pool);
    expect(await unsettledRuns()).toContainEqual({ run_id });
    await writer.query('rollback');
    await checkBarriers();
    expect(await eventsOf(run_id)).toContainEqual(['RunBarrierAdvanced', 'open']);
  });
});
