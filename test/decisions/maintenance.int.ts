import { beforeEach, describe, expect, it } from '@jest/globals';
import type { MaintenancePolicy } from '../../src/decisions/policies.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import {
  readDueMaintenance,
  readObsoleteObjects,
  recordDeletions,
  recordFailedDeletions,
} from '../../src/decisions/due_maintenance.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { createCommander, quickPolicies } from './commander.ts';
import { createSimulatedRuns } from './simulated_runs.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';

const hour = 3_600_000;
const database = useTestDatabase();
const journal = openJournal(database.pool);
const recorder = createRunRecorder(journal);
let commander: ReturnType<typeof createCommander>;
let runs: ReturnType<typeof createSimulatedRuns>;

beforeEach(async () => {
  // All tests share one project.
  commander = createCommander(journal, quickPolicies({ EXPORTD_MAX_BACKFILLS_PER_PROJECT: '100' }));
  runs = createSimulatedRuns(journal, recorder, commander);
  await commander.create();
});

const policy = (more: Partial<MaintenancePolicy> = {}): MaintenancePolicy => ({
  oldGenerationRetentionMs: 0,
  targetFileRetentionMs: 0,
  orphanRetentionMs: 0,
  orphanRetryBudgetMs: hour,
  comparisons: { firstMs: 0, maxIntervalMs: hour },
  comparisonRowsPerSecond: 1_000,
  ...more,
});

const due = async (of: MaintenancePolicy, delayedTasks: readonly string[] = []) =>
  (await readDueMaintenance(database.pool, of, delayedTasks)).tasks.flatMap(({ kind, input }) =>
    'batch_export_id' in input && input.batch_export_id === commander.batchExportId ? [kind] : [],
  );

const keys = async (of: MaintenancePolicy) =>
  (await readObsoleteObjects(database.pool, of, commander.batchExportId, 100)).map(({ key }) => key);

/** Exports an interval twice: the first generation is replaced, the second is current. */
async function publishedTwice(): Promise<{ first: string; second: string }> {
  const first = await runs.create(3);
  await runs.publish(first, await runs.start(first), 'first');
  const second = await runs.retry(first);
  await runs.publish(second, await runs.start(second), 'second');
  return { first, second };
}

describe('obsolete objects', () => {
  it('include files of old generations after their retention, with the current manifest', async () => {
    const { first, second } = await publishedTwice();
    expect(await due(policy({ oldGenerationRetentionMs: hour }))).toEqual([]);
    expect(await keys(policy({ oldGenerationRetentionMs: hour }))).toEqual([]);
    expect(await due(policy({ orphanRetentionMs: hour }))).toEqual(['cleanUpExport']);
    expect(await readObsoleteObjects(database.pool, policy(), commander.batchExportId, 100)).toMatchObject([
      {
        key: 'first',
        object_type: 'file',
        publish_claimed: true,
        run_id: first,
        current_key: 'the manifest',
      },
    ]);
    expect(second).not.toBe(first);
  });

  it('include unpublished uploads and files, after a separate retention', async () => {
    const id = await runs.create(3);
    const run = await runs.start(id);
    await runs.file(id, run, 'file');
    await runs.upload(id, run, 'upload');
    await endRun(journal, quickPolicies(), id, { status: 'Failed', latest_error: 'A reason.' });
    expect(await keys(policy({ orphanRetentionMs: hour }))).toEqual([]);
    expect(await keys(policy({ oldGenerationRetentionMs: hour }))).toEqual(['file', 'upload']);
  });

  it('include a manifest at a former location, before its files, while no run of the interval is active', async () => {
    const first = await runs.create(3);
    await runs.publish(first, await runs.start(first), 'first');
    await commander.command('update', { changes: { config_version: 2 } });
    const second = await runs.retry(first);
    await runs.publish(second, await runs.start(second), 'second');
    expect(await keys(policy())).toEqual(['the manifest', 'first']);
    await runs.retry(second);
    expect(await keys(policy())).toEqual(['first']);
  });

  it('are read per location; those that failed before come last', async () => {
    const id = await runs.create(3);
    const run = await runs.start(id);
    await runs.upload(id, run, 'first upload');
    await runs.file(id, run, 'second');
    await endRun(journal, quickPolicies(), id, { status: 'Failed', latest_error: 'A reason.' });
    await commander.command('update', { changes: { config_version: 2 } });
    const later = await runs.retry(id);
    await runs.upload(later, await runs.start(later), 'elsewhere');
    await endRun(journal, quickPolicies(), later, { status: 'Failed', latest_error: 'A reason.' });
    const read = (limit: number) =>
      readObsoleteObjects(database.pool, policy(), commander.batchExportId, limit);
    const [first] = await read(1);
    expect(await read(1)).toMatchObject([{ key: 'first upload' }, { key: 'elsewhere' }]);
    if (!first) throw new Error('There are no obsolete objects.');
    await recordFailedDeletions(journal, [
      { object: first, locationWide: false, reason: 'Still referenced.' },
    ]);
    expect(await read(1)).toMatchObject([{ key: 'second' }, { key: 'elsewhere' }]);
    expect((await read(100)).map(({ failing_for_ms }) => failing_for_ms !== null)).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('record since when a location fails, until a deletion there succeeds', async () => {
    await publishedTwice();
    const read = () => readObsoleteObjects(database.pool, policy(), commander.batchExportId, 100);
    const objects = await read();
    const [object] = objects;
    if (!object) throw new Error('There are no obsolete objects.');
    await recordFailedDeletions(journal, [{ object, locationWide: true, reason: 'Unreachable.' }]);
    expect(await read()).toMatchObject([
      { failing_for_ms: null, location_failing_for_ms: expect.any(Number) },
    ]);
    const failures = async () =>
      (
        await database.pool.query('select from exportd.location_failures where batch_export_id = $1', [
          commander.batchExportId,
        ])
      ).rows.length;
    expect(await failures()).toBe(1);
    await recordDeletions(journal, [{ object, deleted: true, reason: null }]);
    expect(await failures()).toBe(0);
  });

  it('are ignored while their task is delayed', async () => {
    await publishedTwice();
    expect(await due(policy(), [`cleanUpExport/${commander.batchExportId}`])).toEqual([]);
    expect(await due(policy(), [`compareIntervals/1/${commander.batchExportId}`])).toHaveLength(1);
  });

  it('are gone once their deletion, or that they cannot be deleted, is recorded', async () => {
    await publishedTwice();
    const objects = await readObsoleteObjects(database.pool, policy(), commander.batchExportId, 100);
    const deletions = objects.map((object) => ({
      object,
      deleted: false,
      reason: 'A permission is missing.',
    }));
    await recordDeletions(journal, deletions);
    await recordDeletions(journal, deletions);
    expect(await due(policy())).toEqual([]);
    const { rows } = await database.pool.query(
      `select data from exportd.journal_events where event_type = 'RunObjectDeleted' and data->>'key' = 'first'
       and stream_id = $1`,
      [objects[0]?.run_id],
    );
    expect(rows).toEqual([
      {
        data: {
          key: 'first',
          upload_id: null,
          upload_token: 'token of first',
          deleted: false,
          reason: 'A permission is missing.',
        },
      },
    ]);
  });
});
