import { describe, expect, it } from '@jest/globals';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import type { Policies } from '../../src/decisions/policies.ts';
import { endRun, type RunOutcome } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { findBackfill } from '../../src/http/backfills/routes.ts';
import { readCommand } from '../../src/journal/commands.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { createTestDatabase } from '../setup/database.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, definition, minutesAgo, quickPolicies } from './commander.ts';
import { createLaggingExport } from './lagging_export.ts';
import { type ReadRun, readRuns } from './read_runs.ts';
import { createSimulatedRuns } from './simulated_runs.ts';

describe('a retry of all failed runs', () => {
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
    const runs = async () =>
      (await readRuns(pool, { batch_export_id: batchExportId })).map((run) => ({
        ...run,
        start: run.data_interval_start,
      }));
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

describe('runs that two backfills share', () => {
  const { pool } = useTestDatabase();
  const journal = openJournal(pool);
  /** More intervals than a backfill exports at once, so that it has not completed when its first runs fail. */
  const range = { start_at: minutesAgo(9), end_at: minutesAgo(3) };

  /** Creates an export with two backfills over the same intervals. The first creates the runs. */
  async function createSharedRuns(retryDelay = '0s') {
    const policies = quickPolicies({
      EXPORTD_RUN_RETRY_INITIAL: retryDelay,
      EXPORTD_MAX_BACKFILLS_PER_PROJECT: '100',
      EXPORTD_BACKFILL_CONCURRENCY: '2',
    });
    const { batchExportId, command, create, step } = createCommander(journal, policies);
    await create();
    const backfill = async (): Promise<string> =>
      (await command('backfill', range)).command.outcome?.backfill_id ?? '';
    const [first, second] = [await backfill(), await backfill()];
    const runs = () => readRuns(pool, { batch_export_id: batchExportId });
    return {
      step,
      command,
      first,
      second,
      runs,
      statuses: async () => (await runs()).map(({ status }) => status),
      cancel: async (backfillId: string) =>
        (await command('cancelBackfill', { backfill_id: backfillId })).step.cancel_runs,
      /** Lets all active runs fail, so that they are retried, and both backfills record it. */
      failRuns: async () => {
        for (const run of await runs())
          await endRun(journal, policies, run.id, { status: 'FailedRetryable', latest_error: 'Timeout: S3' });
        for (const id of [first, second]) await advanceBackfill(journal, policies, id);
      },
    };
  }

  const orders = [
    {
      order: 'the one that created them first',
      pick: <Id>(first: Id, second: Id) => [first, second] as const,
    },
    {
      order: 'the one that waits for them first',
      pick: <Id>(first: Id, second: Id) => [second, first] as const,
    },
  ];

  it.each(orders)('end when the last backfill is cancelled, $order', async ({ pick }) => {
    const { first, second, statuses, cancel } = await createSharedRuns();
    const [earlier, last] = pick(first, second);
    expect(await cancel(earlier)).toEqual([]);
    expect(new Set(await statuses())).toEqual(new Set(['Starting']));
    const cancelled = await cancel(last);
    expect(new Set(await statuses())).toEqual(new Set(['Cancelled']));
    expect(cancelled).toHaveLength((await statuses()).length);
  });

  it.each(orders)('are retried until the last backfill is cancelled, $order', async ({ pick }) => {
    const { first, second, runs, statuses, failRuns, cancel, step } = await createSharedRuns();
    await failRuns();
    const [earlier, last] = pick(first, second);
    await cancel(earlier);
    await step();
    const retries = (await runs()).filter(({ retry_number }) => retry_number === 1);
    expect(retries.map(({ status }) => status)).toEqual(retries.map(() => 'Starting'));
    expect(retries.length).toBeGreaterThan(0);
    await cancel(last);
    expect((await statuses()).filter((status) => status === 'Starting')).toEqual([]);
  });

  it('are not retried after both were cancelled', async () => {
    const { first, second, runs, failRuns, cancel } = await createSharedRuns('1h');
    const pending = async () => (await runs()).filter(({ retry_at }) => retry_at !== null).length;
    await failRuns();
    const failed = await pending();
    await cancel(first);
    expect([failed > 0, await pending()]).toEqual([true, failed]);
    await cancel(second);
    expect(await pending()).toBe(0);
  });

  it('are retried while one of the backfills is paused', async () => {
    const { first, runs, failRuns, command, step } = await createSharedRuns();
    await command('pauseBackfill', { backfill_id: first });
    await failRuns();
    await step();
    expect((await runs()).some(({ retry_number }) => retry_number === 1)).toBe(true);
  });

  it('end with a retry of a user, when that and the backfill that waits for it are cancelled', async () => {
    const { runs, command, cancel, first, second, statuses } = await createSharedRuns();
    await cancel(first);
    await cancel(second);
    const [run] = await runs();
    const { command: retry } = await command('retry', { run_id: run?.id });
    const { command: backfill } = await command('backfill', range);
    await cancel(retry.outcome?.backfill_id ?? '');
    expect(await statuses()).toContain('Starting');
    await cancel(backfill.outcome?.backfill_id ?? '');
    expect(new Set(await statuses())).toEqual(new Set(['Cancelled']));
  });
});

describe('the slots for runs:', () => {
  const { pool } = useTestDatabase();
  const journal = openJournal(pool);

  const runsOf = (batch_export_id: string) => readRuns(pool, { batch_export_id });
  const activeOf = async (batchExportId: string): Promise<ReadRun[]> =>
    (await runsOf(batchExportId)).filter(({ status }) => status === 'Starting');
  const starts = (rows: readonly ReadRun[]): string[] =>
    rows.map(({ data_interval_start }) => data_interval_start);

  const end = (policies: Policies, { id }: ReadRun, status: RunOutcome): Promise<boolean> =>
    endRun(journal, policies, id, { status, latest_error: 'Timeout: S3' });

  describe('automatic retries', () => {
    it('of scheduled runs take slots of the schedule first, oldest interval first', async () => {
      const policies = quickPolicies({ EXPORTD_RUN_RETRY_INITIAL: '0s', EXPORTD_MAX_CONCURRENT_RUNS: '2' });
      const { batchExportId, command, step } = createCommander(journal, policies);
      await createLaggingExport(journal, batchExportId, 6);
      await command('unpause');
      const [first, second] = await activeOf(batchExportId);
      if (!first || !second) throw new Error('The schedule created no runs.');
      // The newer interval fails first; the older one is retried first.
      await end(policies, second, 'FailedRetryable');
      await end(policies, first, 'FailedRetryable');
      await step();
      expect(starts(await activeOf(batchExportId))).toEqual(starts([first, second]));
      for (const run of await activeOf(batchExportId)) await end(policies, run, 'FailedRetryable');
      const limited = quickPolicies({ EXPORTD_RUN_RETRY_INITIAL: '0s', EXPORTD_MAX_CONCURRENT_RUNS: '1' });
      const { step: limitedStep } = createCommander(journal, limited, batchExportId);
      await limitedStep();
      expect(starts(await activeOf(batchExportId))).toEqual(starts([first]));
      for (const run of await activeOf(batchExportId)) await end(policies, run, 'Failed');
      await limitedStep();
      expect(starts(await activeOf(batchExportId))).toEqual(starts([second]));
      for (const run of await activeOf(batchExportId)) await end(policies, run, 'Failed');
      await step();
      const next = await activeOf(batchExportId);
      expect(next.map(({ retry_number }) => retry_number)).toEqual([0, 0]);
    });

    it('of a backfill take its slots before its next intervals', async () => {
      const policies = quickPolicies({ EXPORTD_RUN_RETRY_INITIAL: '0s', EXPORTD_BACKFILL_CONCURRENCY: '2' });
      const { batchExportId, command, step, create } = createCommander(journal, policies);
      await create();
      const { command: backfill } = await command('backfill', {
        start_at: minutesAgo(9),
        end_at: minutesAgo(3),
      });
      const backfillId = backfill.outcome?.backfill_id ?? '';
      const [first, second] = await activeOf(batchExportId);
      if (!first || !second) throw new Error('The backfill created no runs.');
      await end(policies, first, 'FailedRetryable');
      // The backfill takes its step first, and leaves the slot to the retry.
      await advanceBackfill(journal, policies, backfillId);
      expect(starts(await activeOf(batchExportId))).toEqual(starts([second]));
      await step();
      expect(starts(await activeOf(batchExportId)).toSorted()).toEqual(starts([first, second]));
      await advanceBackfill(journal, policies, backfillId);
      expect(await activeOf(batchExportId)).toHaveLength(2);
      for (const run of await activeOf(batchExportId)) await end(policies, run, 'Failed');
      await advanceBackfill(journal, policies, backfillId);
      expect((await activeOf(batchExportId)).map(({ retry_number }) => retry_number)).toEqual([0, 0]);
    });

    it('take no slot of a backfill while they wait for a paused export', async () => {
      const policies = quickPolicies({ EXPORTD_RUN_RETRY_INITIAL: '0s', EXPORTD_BACKFILL_CONCURRENCY: '1' });
      const { batchExportId, command, create } = createCommander(journal, policies);
      await create();
      const { command: backfill } = await command('backfill', {
        start_at: minutesAgo(9),
        end_at: minutesAgo(3),
      });
      await command('pause');
      const [first] = await activeOf(batchExportId);
      if (!first) throw new Error('The backfill created no runs.');
      await end(policies, first, 'FailedRetryable');
      await advanceBackfill(journal, policies, backfill.outcome?.backfill_id ?? '');
      expect((await activeOf(batchExportId)).map(({ retry_number }) => retry_number)).toEqual([0]);
    });
  });

  describe('a project', () => {
    it('never exceeds its limit of backfills, even if many exports request one at the same time', async () => {
      const policies = quickPolicies({ EXPORTD_MAX_BACKFILLS_PER_PROJECT: '3' });
      const other = await createTestDatabase();
      const commanders = Array.from({ length: 8 }, () => createCommander(openJournal(other.pool), policies));
      for (const { create } of commanders) await create();
      const range = { start_at: minutesAgo(5), end_at: minutesAgo(2) };
      const commandIds = await Promise.all(commanders.map(({ store }) => store('backfill', range)));
      await Promise.all(commanders.map(({ step }) => step()));
      const decided = await Promise.all(commandIds.map((id) => readCommand(other.pool, id)));
      expect(decided.filter((command) => command?.status === 'applied')).toHaveLength(3);
      const codes = decided.flatMap((command) => command?.outcome?.code ?? []);
      expect(codes).toEqual(Array.from({ length: 5 }, () => 'too_many_concurrent_backfills'));
      await other.drop();
    });
  });
});
