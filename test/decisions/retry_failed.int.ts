import { describe, expect, it } from '@jest/globals';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { endRun, type RunOutcome } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { findBackfill } from '../../src/http/backfills/routes.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, definition, quickPolicies } from './commander.ts';
import { createSimulatedRuns } from './simulated_runs.ts';

const { pool } = useTestDatabase();
const journal = openJournal(pool);
const policies = quickPolicies({
  EXPORTD_BACKFILL_CONCURRENCY: '2',
  EXPORTD_MAX_BACKFILLS_PER_PROJECT: '1',
  EXPORTD_RUN_RETRY_INITIAL: '1h',
});
/** The runs of these intervals are created at the same time. */
const allAtOnce = quickPolicies({ EXPORTD_BACKFILL_CONCURRENCY: '100', EXPORTD_RUN_RETRY_INITIAL: '1h' });

const minutesBetween = (first: number, last: number) => ({
  start_at: minuteAgo(first).toISOString(),
  end_at: minuteAgo(last).toISOString(),
});

interface Run {
  readonly id: string;
  readonly start: string;
  readonly status: string;
  readonly backfill_id: string;
  readonly finished_at: string;
  readonly retry_at: string | null;
}

/** Creates a paused export with a run for each status, of one minute each. `Held` is Failed because rows are missing. */
async function createEndedRuns(statuses: readonly (RunOutcome | 'Completed' | 'Held' | 'Starting')[]) {
  const { batchExportId, command: createAllAtOnce } = createCommander(journal, allAtOnce);
  const { command } = createCommander(journal, policies, batchExportId);
  const recorder = createRunRecorder(journal);
  const simulated = createSimulatedRuns(journal, recorder, { command });
  // Paused, so that no run of the schedule disturbs.
  await command('create', { definition, paused: true });
  const range = minutesBetween(statuses.length + 1, 1);
  const { command: backfill } = await createAllAtOnce('backfill', range);
  const runs = async (): Promise<Run[]> =>
    (
      await pool.query<Run>(
        'select *, data_interval_start as start from exportd.batch_export_runs where batch_export_id = $1 order by position',
        [batchExportId],
      )
    ).rows;
  const complete = async (id: string) => simulated.publish(id, await simulated.start(id), `key of ${id}`);
  const end = async (id: string, status: (typeof statuses)[number]): Promise<void> => {
    if (status === 'Starting') return;
    if (status === 'Completed') return complete(id);
    if (status === 'Held') return simulated.hold(id, policies);
    await endRun(journal, policies, id, { status, latest_error: 'Error: a test' });
  };
  for (const [index, run] of (await runs()).entries()) await end(run.id, statuses[index] ?? 'Starting');
  await advanceBackfill(journal, allAtOnce, backfill.outcome?.backfill_id ?? '');
  const retryFailed = async (body: { since?: string } = {}) => (await command('retryFailed', body)).command;
  return { batchExportId, command, complete, end, runs, retryFailed, first: await runs() };
}

const outcomes = [
  'Failed',
  'Completed',
  'TimedOut',
  'Cancelled',
  'FailedRetryable',
  'Terminated',
  'Held',
] as const;

describe('a retry of all failed runs', () => {
  it('exports the intervals again whose run failed, within the limit of a backfill, and no others', async () => {
    const { batchExportId, runs, retryFailed, complete, first } = await createEndedRuns(outcomes);
    const { status, outcome } = await retryFailed();
    expect([status, outcome]).toEqual(['applied', { backfill_id: expect.any(String), runs: 3 }]);
    const backfillId = outcome?.backfill_id ?? '';
    const retries = async () => (await runs()).slice(first.length);
    expect(await retries()).toHaveLength(2);
    for (const { id } of await retries()) await complete(id);
    expect(await advanceBackfill(journal, policies, backfillId)).toMatchObject({
      ended: false,
      runs_created: 3,
    });
    await complete((await retries())[2]?.id ?? '');
    expect(await advanceBackfill(journal, policies, backfillId)).toMatchObject({ status: 'Completed' });
    const failed = first.filter(({ status: was }) => ['Failed', 'TimedOut', 'FailedRetryable'].includes(was));
    expect((await retries()).map(({ start }) => start)).toEqual(
      failed.filter(({ id }) => id !== first[6]?.id).map(({ start }) => start),
    );
    expect(await findBackfill(pool, batchExportId, backfillId)).toMatchObject({
      retries_failed: true,
      start_at: first[0]?.start,
      progress: { total_runs: 3, completed_runs: 3, progress: 1 },
    });
    expect((await retryFailed()).status).toBe('no-op');
  });

  it('is not limited by the number of backfills, and does not count towards it', async () => {
    const exports = [await createEndedRuns(['Failed']), await createEndedRuns(['Failed'])];
    for (const { retryFailed } of exports) expect((await retryFailed()).status).toBe('applied');
    const range = minutesBetween(20, 19);
    const { command: own } = (await exports[0]?.command('backfill', range)) ?? {};
    expect(own?.status).toBe('applied');
    const { command: second } = (await exports[0]?.command('backfill', range)) ?? {};
    expect(second?.outcome).toMatchObject({ code: 'too_many_concurrent_backfills' });
    await exports[0]?.command('cancelBackfill', { backfill_id: own?.outcome?.backfill_id });
  });

  it('replaces the automatic retry of a run', async () => {
    const { runs, retryFailed } = await createEndedRuns(['FailedRetryable']);
    const pending = async () => (await runs()).filter(({ retry_at }) => retry_at !== null).length;
    expect(await pending()).toBe(1);
    await retryFailed();
    expect(await pending()).toBe(0);
  });

  it('leaves out runs that failed before a time', async () => {
    const { first, runs, retryFailed } = await createEndedRuns(['Failed', 'Failed', 'Failed']);
    const { outcome } = await retryFailed({ since: first[1]?.finished_at ?? '' });
    expect(outcome).toMatchObject({ runs: 2 });
    expect((await runs()).slice(3).map(({ start }) => start)).toEqual([first[1]?.start, first[2]?.start]);
  });

  it('counts a run that was created while it waited, instead of creating another one', async () => {
    const { batchExportId, first, runs, end, complete, retryFailed, command } = await createEndedRuns([
      'Failed',
      'Failed',
      'Failed',
      'Failed',
    ]);
    const backfillId = (await retryFailed()).outcome?.backfill_id ?? '';
    const [, , third, fourth] = first;
    const { command: retry } = await command('retry', { run_id: third?.id });
    const retried = (await runs()).at(-1);
    expect(retried?.start).toBe(third?.start);
    await complete(retried?.id ?? '');
    await advanceBackfill(journal, policies, retry.outcome?.backfill_id ?? '');
    for (const { id } of (await runs()).slice(4, 6)) await complete(id);
    await advanceBackfill(journal, policies, backfillId);
    expect((await runs()).slice(7).map(({ start }) => start)).toEqual([fourth?.start]);
    await end((await runs()).at(-1)?.id ?? '', 'Failed');
    await advanceBackfill(journal, policies, backfillId);
    expect(await findBackfill(pool, batchExportId, backfillId)).toMatchObject({
      status: 'Completed',
      progress: { total_runs: 4, completed_runs: 3, failed_runs: 1, progress: 1 },
    });
  });

  it('can be cancelled', async () => {
    const { runs, retryFailed, command } = await createEndedRuns(['Failed', 'Failed', 'Failed']);
    const { outcome } = await retryFailed();
    expect((await runs()).slice(3).map(({ status }) => status)).toEqual(['Starting', 'Starting']);
    await command('cancelBackfill', { backfill_id: outcome?.backfill_id });
    expect((await runs()).slice(3).map(({ status }) => status)).toEqual(['Cancelled', 'Cancelled']);
  });

  it('waits for the new runs of intervals that are exported again already', async () => {
    const { runs, retryFailed, command, first } = await createEndedRuns(['Failed', 'Failed']);
    await command('retry', { run_id: first[0]?.id });
    expect((await retryFailed()).outcome).toMatchObject({ runs: 1 });
    expect((await runs()).map(({ start }) => start)).toEqual([
      first[0]?.start,
      first[1]?.start,
      first[0]?.start,
      first[1]?.start,
    ]);
  });
});
