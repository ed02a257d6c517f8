import { beforeEach, describe, expect, it } from '@jest/globals';
import type { MaintenancePolicy } from '../../src/decisions/policies.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { readDueMaintenance } from '../../src/decisions/due_maintenance.ts';
import {
  readObsoleteObjects,
  recordFailedDeletions,
  recordDeletions,
} from '../../src/decisions/obsolete_objects.ts';
import { readDueRechecks, recordRecheck } from '../../src/decisions/due_rechecks.ts';
import { openJournal } from '../../src/projections/open_journal.ts';
import { createCommander, quickPolicies } from './commander.ts';
import { createSimulatedRuns } from './simulated_runs.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { waitFor } from '../setup/wait_for.ts';

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
  orphanRetentionMs: 0,
  orphanRetryBudgetMs: hour,
  recheckFirstMs: 0,
  recheckSecondMs: 0,
  ...more,
});

const due = async (of: MaintenancePolicy, delayedTasks: readonly string[] = []) =>
  (await readDueMaintenance(database.pool, of, delayedTasks)).tasks.filter(
    ({ batch_export_id }) => batch_export_id === commander.batchExportId,
  );

const keys = async (of: MaintenancePolicy) =>
  (await readObsoleteObjects(database.pool, of, commander.batchExportId, 100)).map(({ key }) => key);

const logLines = async () =>
  (
    await database.pool.query<{ message: string }>(
      'select message from exportd.log_lines where batch_export_id = $1 order by id',
      [commander.batchExportId],
    )
  ).rows.map(({ message }) => message);

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
    expect(await due(policy({ orphanRetentionMs: hour }))).toEqual([
      { kind: 'cleanUpExport', batch_export_id: commander.batchExportId },
    ]);
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
    expect(await due(policy(), [`recheckRuns/${commander.batchExportId}`])).toHaveLength(1);
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
      { data: { key: 'first', upload_id: null, deleted: false, reason: 'A permission is missing.' } },
    ]);
  });
});

/** Creates a Completed run; `after` is the milliseconds from the end of its interval to its completion. */
async function createCompletedRun(minutes = 3): Promise<{ id: string; after: number }> {
  const id = await runs.create(minutes);
  await runs.publish(id, await runs.start(id), `file of ${id}`);
  const { rows } = await database.pool.query<{ after: number }>(
    'select completed_after_ms as after from exportd.rechecks where run_id = $1',
    [id],
  );
  return { id, after: rows[0]?.after ?? 0 };
}

const dueChecks = async (of: MaintenancePolicy) =>
  (await readDueRechecks(database.pool, of, commander.batchExportId, 100)).map(({ run_id, check }) => [
    run_id,
    check,
  ]);

/** Waits until a re-check is due and returns it. */
async function dueCheck(of: MaintenancePolicy) {
  const [check] = await waitFor(async () => {
    const found = await readDueRechecks(database.pool, of, commander.batchExportId, 1);
    return found.length > 0 && found;
  }, 'a due re-check');
  if (!check) throw new Error('No re-check is due.');
  return check;
}

describe('due re-checks', () => {
  it('are those whose time is after the completion of the run', async () => {
    const { id, after } = await createCompletedRun();
    expect(await dueChecks(policy({ recheckFirstMs: after - 1, recheckSecondMs: after + hour }))).toEqual([]);
    const first = policy({ recheckFirstMs: after + 1, recheckSecondMs: after + hour });
    expect(await dueCheck(first)).toMatchObject({ run_id: id, check: 1 });
    expect(await due(first)).toEqual([{ kind: 'recheckRuns', batch_export_id: commander.batchExportId }]);
    const second = policy({ recheckFirstMs: after + 1, recheckSecondMs: after + 2 });
    expect(await dueCheck(second)).toMatchObject({ run_id: id, check: 2 });
    expect(await dueCheck(policy({ recheckSecondMs: after + 1 }))).toMatchObject({ check: 2 });
    expect(await dueChecks(policy())).toEqual([]);
  });

  it('wait while the export is paused, and while another run of the interval is active', async () => {
    const { id, after } = await createCompletedRun();
    const first = policy({ recheckFirstMs: after + 1 });
    const check = await dueCheck(first);
    await commander.command('pause');
    expect(await dueChecks(first)).toEqual([]);
    expect(await recordRecheck(journal, check, 4)).toEqual({ result: 'not recorded' });
    await commander.command('unpause');
    expect(await dueChecks(first)).toEqual([[id, 1]]);
    await runs.retry(id);
    expect(await dueChecks(first)).toEqual([]);
    expect(await recordRecheck(journal, check, 4)).toEqual({ result: 'not recorded' });
  });

  it('wait while the export is of persons, and are dropped with the export', async () => {
    const { after } = await createCompletedRun();
    const first = policy({ recheckFirstMs: after + 1 });
    const check = await dueCheck(first);
    await commander.command('update', { changes: { model: 'persons' } });
    expect(await dueChecks(first)).toEqual([]);
    expect(await recordRecheck(journal, check, 4)).toEqual({ result: 'not recorded' });
    await commander.command('delete');
    expect(await recordRecheck(journal, check, 4)).toEqual({ result: 'not recorded' });
  });
});

describe('a re-check', () => {
  it('with equal counts is recorded once, and the second follows', async () => {
    const { id, after } = await createCompletedRun();
    const check = await dueCheck(policy({ recheckFirstMs: after + 1 }));
    expect(await recordRecheck(journal, check, 3)).toEqual({ result: 'same' });
    expect(await recordRecheck(journal, check, 9)).toEqual({ result: 'not recorded' });
    expect(await dueChecks(policy({ recheckFirstMs: after + 1 }))).toEqual([]);
    const last = policy({ recheckFirstMs: after + 1, recheckSecondMs: after + 2 });
    expect(await dueChecks(last)).toEqual([[id, 2]]);
    expect(await recordRecheck(journal, await dueCheck(last), 3)).toEqual({ result: 'same' });
    expect(await dueChecks(last)).toEqual([]);
  });

  it('with more rows exports the interval again', async () => {
    const { id, after } = await createCompletedRun();
    const check = await dueCheck(policy({ recheckFirstMs: after + 1 }));
    const outcome = await recordRecheck(journal, check, 5);
    expect(outcome).toMatchObject({ result: 'exported again' });
    expect(await logLines()).toContainEqual(expect.stringContaining('2 late rows: source has 5 rows for'));
    const { start_runs } = await commander.step();
    const backfill = await database.pool.query<{ retry_of_run_id: string }>(
      'select retry_of_run_id from exportd.backfills where batch_export_id = $1 order by position desc limit 1',
      [commander.batchExportId],
    );
    expect(backfill.rows).toEqual([{ retry_of_run_id: id }]);
    expect(start_runs).toBeDefined();
  });

  it('with fewer rows is logged once and leaves the exported files unchanged', async () => {
    const { after } = await createCompletedRun();
    const check = await dueCheck(policy({ recheckFirstMs: after + 1 }));
    expect(await recordRecheck(journal, check, 1)).toEqual({ result: 'fewer rows' });
    expect(await recordRecheck(journal, check, 1)).toEqual({ result: 'not recorded' });
    const lines = (await logLines()).filter((line) =>
      line.startsWith('2 rows were deleted from the source: source has 1 row'),
    );
    expect(lines).toHaveLength(1);
    const { rows } = await database.pool.query(
      `select id from exportd.commands where batch_export_id = $1 and name = 'retry'`,
      [commander.batchExportId],
    );
    expect(rows).toEqual([]);
  });

  it('with more rows is retried even if the project has reached its limit of backfills', async () => {
    const { id, after } = await createCompletedRun();
    const check = await dueCheck(policy({ recheckFirstMs: after + 1 }));
    const full = quickPolicies({ EXPORTD_MAX_BACKFILLS_PER_PROJECT: '1' });
    const { command } = createCommander(journal, full, commander.batchExportId);
    await runs.create(9);
    expect((await command('retry', { run_id: id })).command.status).toBe('rejected');
    await recordRecheck(journal, check, 5);
    const { rows } = await database.pool.query<{ id: string }>(
      `select id from exportd.commands where batch_export_id = $1 and status = 'pending'`,
      [commander.batchExportId],
    );
    expect(rows).toHaveLength(1);
    await command('pause');
    const decided = await database.pool.query<{ status: string }>(
      'select status from exportd.commands where id = $1',
      [rows[0]?.id],
    );
    expect(decided.rows).toEqual([{ status: 'applied' }]);
  });
});
