import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  findComparison,
  type IntervalComparison,
  isChanged,
  readDueBatch,
  readDueGroups,
  recordComparison,
  recordUnchanged,
} from '../../src/decisions/comparisons.ts';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { compareFingerprints } from '../../src/domain/comparison.ts';
import { openJournal, rebuild } from '../../src/projections/registry.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, quickPolicies } from './commander.ts';
import { readRepairs } from './read_backfills.ts';
import { isWarning, readLog } from './read_log.ts';
import { readRuns } from './read_runs.ts';
import { createSimulatedRuns, minuteBefore } from './simulated_runs.ts';
import { readPendingCommands } from '../../src/journal/commands.ts';

const database = useTestDatabase();
const journal = openJournal(database.pool);
const recorder = createRunRecorder(journal);
const { maintenance } = quickPolicies();
const { comparisons: schedule } = maintenance;
let commander: ReturnType<typeof createCommander>;
let runs: ReturnType<typeof createSimulatedRuns>;

beforeEach(async () => {
  // All tests share one project.
  await query('delete from exportd.interval_comparisons');
  commander = createCommander(journal, quickPolicies({ EXPORTD_MAX_BACKFILLS_PER_PROJECT: '100' }));
  runs = createSimulatedRuns(journal, recorder, commander);
  await commander.create();
});

const query = async <Row extends object>(sql: string, ...values: unknown[]): Promise<Row[]> =>
  (await database.pool.query<Row>(sql, values)).rows;

/** Creates a Completed run of three rows, whose first comparison is due. */
async function createCompletedRun(minutes = 3): Promise<string> {
  const id = await runs.create(minutes);
  await runs.publish(id, await runs.start(id), `file of ${id}`);
  await elapse();
  return id;
}

/** An hour passes for all comparisons. */
const elapse = () =>
  query(
    `update exportd.interval_comparisons set compared_from = compared_from - interval '1 hour',
       next_due_at = next_due_at - interval '1 hour'`,
  );

const dueRuns = async (): Promise<string[]> => {
  const groups = await readDueGroups(database.pool, maintenance, [], 10);
  const batches = await Promise.all(groups.map((group) => readDueBatch(database.pool, maintenance, group)));
  return batches.flatMap((batch) => batch?.intervals.flat().map(({ run_id }) => run_id) ?? []);
};

async function comparisonOf(runId: string): Promise<IntervalComparison & { readonly at: string }> {
  const found = await findComparison(database.pool, runId);
  if (!found) throw new Error('The run has no comparisons.');
  return found;
}

/** Compares the manifest of a run with a source that has this many rows. */
async function compare(interval: IntervalComparison & { readonly at: string }, rows: number) {
  const source = fingerprintOf(rows);
  const comparison = compareFingerprints(fingerprintOf(3), source);
  const done = { interval, source, comparison, at: interval.at };
  if (isChanged(done)) return (await recordComparison(journal, schedule, done)).result;
  await recordUnchanged(database.pool, schedule, [done]);
  return 'unchanged';
}

/** The repairs of the export, the newest last. */
const repairs = () => readRepairs(database.pool, commander.batchExportId);

/** Takes a step of the newest repair. @returns the runs to start */
async function advanceRepair(policies = quickPolicies()): Promise<string[]> {
  const repair = (await repairs()).at(-1);
  const { start_runs } = await advanceBackfill(journal, policies, repair?.id ?? '');
  return start_runs.map(({ run_id }) => run_id);
}

const logOf = (runId: string) => readLog(database.pool, { run_id: runId }, isWarning);

describe('due comparisons', () => {
  it('are found without reading the intervals that are not due', async () => {
    await query(
      `insert into exportd.interval_comparisons (batch_export_id, data_interval_start, data_interval_end, run_id, team_id,
         config_version, selection_hash, bucket_rows, compared_from, comparisons, next_due_at, early_at)
       select $1, at, at + interval '1 hour', gen_random_uuid(), 1, 1, 'all', 1, at, 1, due, due
       from generate_series(1, 20000) number, lateral (select timestamptz '2020-01-01' + number * interval '1 hour' as at,
         clock_timestamp() + number * interval '1 hour' as due) times`,
      commander.batchExportId,
    );
    await query('analyze exportd.interval_comparisons');
    const plans: string[] = [];
    const explaining = {
      query: async (text: string, values?: unknown[]) => {
        const { rows } = await database.pool.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
        plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
        return { rows: [] };
      },
    } as unknown as typeof database.pool;
    await readDueGroups(explaining, maintenance, [], 10);
    expect(plans).toHaveLength(2);
    for (const plan of plans) expect(plan).toMatch(/Index Cond: \(+next_due_at <= /);
  });

  it('wait while the export is paused, and while another run of the interval is active', async () => {
    const id = await createCompletedRun();
    const interval = await comparisonOf(id);
    expect(await dueRuns()).toEqual([id]);
    await commander.command('pause');
    expect(await dueRuns()).toEqual([]);
    expect(await compare(interval, 4)).toBe('not recorded');
    await commander.command('unpause');
    expect(await dueRuns()).toEqual([id]);
    await runs.retry(id);
    expect(await dueRuns()).toEqual([]);
    expect(await compare(interval, 4)).toBe('not recorded');
  });

  it('wait while the export is of persons, and are dropped with the export', async () => {
    const id = await createCompletedRun();
    const interval = await comparisonOf(id);
    await commander.command('update', { changes: { model: 'persons' } });
    expect(await dueRuns()).toEqual([]);
    expect(await compare(interval, 4)).toBe('not recorded');
    await commander.command('delete');
    expect(await findComparison(database.pool, id)).toBeUndefined();
    expect(await compare(interval, 4)).toBe('not recorded');
  });

  it('of persons are due apart from those of events', async () => {
    const ofEvents = await createCompletedRun(2);
    await commander.command('update', { changes: { model: 'persons' } });
    const ofPersons = await createCompletedRun();
    expect(await findComparison(database.pool, ofPersons)).toMatchObject({ model: 'persons' });
    expect(await findComparison(database.pool, ofEvents)).toMatchObject({ model: 'events' });
    // Those of the former model wait.
    expect(await dueRuns()).toEqual([ofPersons]);
  });

  it('belong to the newest manifest of an interval', async () => {
    const first = await createCompletedRun();
    const second = await runs.retry(first);
    await runs.publish(second, await runs.start(second), 'second');
    expect(await findComparison(database.pool, first)).toBeUndefined();
    expect(await comparisonOf(second)).toMatchObject({ bucket_rows: 3, comparisons: 0, outcome: null });
  });

  it('do not exist when comparisons are disabled', async () => {
    await createCompletedRun();
    const disabled = quickPolicies({ EXPORTD_COMPARISON_FIRST: '0s' }).maintenance;
    expect(await readDueGroups(database.pool, disabled, [], 10)).toEqual([]);
  });

  it('are read longest overdue first, without the delayed groups', async () => {
    const id = await createCompletedRun();
    const [group] = await readDueGroups(database.pool, maintenance, [], 10);
    expect(group).toEqual({ team_id: 1, selection_hash: commander.batchExportId });
    expect(await readDueGroups(database.pool, maintenance, group ? [group] : [], 10)).toEqual([]);
    const other = createCommander(journal, quickPolicies());
    await other.create();
    const otherRuns = createSimulatedRuns(journal, recorder, other);
    const longer = await otherRuns.create(3);
    await otherRuns.publish(longer, await otherRuns.start(longer), 'longer');
    await query(
      `update exportd.interval_comparisons set next_due_at = next_due_at - interval '2 hours' where run_id = $1`,
      longer,
    );
    expect(await dueRuns()).toEqual([longer, id]);
  });

  it('stay as they are when the read models are rebuilt', async () => {
    await createCompletedRun();
    const before = await query('select * from exportd.interval_comparisons');
    await rebuild(database.pool);
    expect(before).toHaveLength(1);
    expect(await query('select * from exportd.interval_comparisons')).toEqual(before);
  });
});

describe('a comparison', () => {
  it('is recorded once', async () => {
    const id = await createCompletedRun();
    const interval = await comparisonOf(id);
    expect(await compare(interval, 3)).toBe('unchanged');
    expect(await compare(interval, 9)).toBe('not recorded');
    expect(await dueRuns()).toEqual([]);
    expect(await repairs()).toEqual([]);
  });

  it('with late rows exports the interval again, even at the limit of backfills', async () => {
    const id = await createCompletedRun();
    const full = quickPolicies({ EXPORTD_MAX_BACKFILLS_PER_PROJECT: '1' });
    const { command } = createCommander(journal, full, commander.batchExportId);
    await runs.create(9);
    expect((await command('retry', { run_id: id })).command.status).toBe('rejected');
    expect(await compare(await comparisonOf(id), 5)).toBe('exported again');
    expect(await logOf(id)).toContainEqual(expect.stringContaining('2 late rows: source has 5 rows for'));
    expect(await advanceRepair(full)).toHaveLength(1);
  });

  it('with late rows that are found again asks for nothing more while its run is active', async () => {
    const id = await createCompletedRun();
    const interval = await comparisonOf(id);
    expect(await compare(interval, 5)).toBe('exported again');
    const [run = ''] = await advanceRepair();
    expect(await compare(await comparisonOf(id), 6)).toBe('not recorded');
    await runs.publish(run, await runs.start(run), 'with late rows');
    expect(await advanceRepair()).toEqual([]);
    expect(await repairs()).toMatchObject([{ status: 'Completed', total_runs: 1 }]);
  });

  it('with late rows is dropped when the interval has another manifest by then', async () => {
    const id = await createCompletedRun();
    expect(await compare(await comparisonOf(id), 5)).toBe('exported again');
    const requested = await runs.retry(id);
    await runs.publish(requested, await runs.start(requested), 'requested');
    expect(await advanceRepair()).toEqual([]);
    expect(await repairs()).toMatchObject([{ status: 'Completed', total_runs: 0 }]);
  });

  it('does not request a retry again that was held, until the source changes', async () => {
    const id = await createCompletedRun();
    expect(await compare(await comparisonOf(id), 5)).toBe('exported again');
    await advanceRepair();
    const held = (await readRuns(database.pool, { batch_export_id: commander.batchExportId })).at(-1);
    await hold(held?.id ?? '', id);
    expect(await compare(await comparisonOf(id), 5)).toBe('changed');
    expect(await compare(await comparisonOf(id), 5)).toBe('unchanged');
    expect(await advanceRepair()).toEqual([]);
    expect(await repairs()).toHaveLength(1);
    const lines = (await logOf(id)).filter((line) => line.includes('was held because of these rows'));
    expect(lines).toHaveLength(1);
    expect(await compare(await comparisonOf(id), 6)).toBe('exported again');
  });

  it('requests a retry again that failed for another reason', async () => {
    const id = await createCompletedRun();
    expect(await compare(await comparisonOf(id), 5)).toBe('exported again');
    await advanceRepair();
    for (const { id: runId, status } of await readRuns(database.pool, {
      batch_export_id: commander.batchExportId,
    }))
      if (status === 'Starting')
        await endRun(journal, quickPolicies(), runId, { status: 'Failed', latest_error: 'A reason.' });
    expect(await compare(await comparisonOf(id), 5)).toBe('exported again');
    expect(await advanceRepair()).toHaveLength(1);
  });
});

describe('late rows in many intervals', () => {
  const many = 12;

  it('are exported by one repair, a few runs at a time, and nothing that people ask for waits for it', async () => {
    const ids: string[] = [];
    for (let minutes = 3; minutes < 3 + many; minutes += 1) ids.push(await createCompletedRun(minutes));
    for (const id of ids) expect(await compare(await comparisonOf(id), 5)).toBe('exported again');
    expect(await repairs()).toMatchObject([{ status: 'Running' }]);
    const ahead = () => readPendingCommands(database.pool, commander.batchExportId);
    expect(await ahead()).toEqual([]);
    expect(await advanceRepair()).toHaveLength(2);
    expect(await ahead()).toEqual([]);

    // The limit counts what was requested: one backfill for each interval.
    const limited = quickPolicies({ EXPORTD_MAX_BACKFILLS_PER_PROJECT: String(await unfinishedRequests()) });
    const last = quickPolicies({
      EXPORTD_MAX_BACKFILLS_PER_PROJECT: String((await unfinishedRequests()) + 1),
    });
    const range = { start_at: minuteBefore(2).start_at, end_at: minuteBefore(2).end_at };
    const request = (policies: ReturnType<typeof quickPolicies>) =>
      createCommander(journal, policies, commander.batchExportId).command('backfill', range);
    expect((await request(limited)).command.status).toBe('rejected');
    expect((await request(last)).command.status).toBe('applied');

    expect((await commander.command('pause')).command.status).toBe('applied');
    const active = await advanceRepair();
    for (const run of active) await runs.publish(run, await runs.start(run), `late rows of ${run}`);
    expect(await advanceRepair()).toEqual([]);
    const [repair] = await repairs();
    expect((await commander.command('unpause')).step.wake_backfills).toContain(repair?.id);
    const done = [...active];
    for (;;) {
      const started = await advanceRepair();
      if (started.length === 0) break;
      expect(started.length).toBeLessThanOrEqual(2);
      for (const run of started) await runs.publish(run, await runs.start(run), `late rows of ${run}`);
      done.push(...started);
    }
    expect(done).toHaveLength(many);
    expect(await repairs()).toMatchObject([{ status: 'Completed', total_runs: many }]);
    const manifests = await query<{ manifest_run_id: string }>(
      'select manifest_run_id from exportd.intervals where batch_export_id = $1 and manifest_run_id is not null',
      commander.batchExportId,
    );
    expect(manifests.map((row) => row.manifest_run_id).toSorted()).toEqual(done.toSorted());
  });

  it('wait while a person has paused the repair, also when the export is unpaused', async () => {
    await compare(await comparisonOf(await createCompletedRun(3)), 5);
    const [repair] = await repairs();
    await commander.command('pauseBackfill', { backfill_id: repair?.id });
    await commander.command('pause');
    await commander.command('unpause');
    expect(await repairs()).toMatchObject([{ status: 'Paused' }]);
    expect(await advanceRepair()).toEqual([]);
    await commander.command('unpauseBackfill', { backfill_id: repair?.id });
    expect(await advanceRepair()).toHaveLength(1);
  });

  it('wait for no more when the repair is cancelled, until a later comparison finds them', async () => {
    const [one, other] = [await createCompletedRun(3), await createCompletedRun(4)];
    for (const id of [one, other]) await compare(await comparisonOf(id), 5);
    const [repair] = await repairs();
    await commander.command('cancelBackfill', { backfill_id: repair?.id });
    expect(await advanceRepair()).toEqual([]);
    expect(await compare(await comparisonOf(one), 5)).toBe('exported again');
    expect(await advanceRepair()).toHaveLength(1);
    expect(await repairs()).toMatchObject([{ status: 'Cancelled' }, { status: 'Running' }]);
  });
});

/** The unfinished backfills of the project that people have requested. */
async function unfinishedRequests(): Promise<number> {
  const found = await query(
    `select from exportd.backfills where team_id = 1 and finished_at is null and kind <> 'repair'`,
  );
  return found.length;
}

/** Holds a run: five rows of the source, but some of the manifest are not among them. */
async function hold(runId: string, replacedRunId: string): Promise<void> {
  await recorder.recordCount(runId, {
    records_total_count: 5,
    fingerprint: fingerprintOf(5),
    settled: true,
    split_keys: [],
  });
  await recorder.recordReplacement(runId, {
    replaced: { run_id: replacedRunId, generation: 1 },
    outcome: 'rows_missing',
    missing_rows: 1,
    bucket_rows: 3,
    source_rows: 5,
    source: null,
    generation: null,
  });
  await endRun(journal, quickPolicies(), runId, { status: 'Failed', latest_error: 'Rows are missing.' });
}
