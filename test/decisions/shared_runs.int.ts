import { describe, expect, it } from '@jest/globals';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, minutesAgo, quickPolicies } from './commander.ts';

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
  const runs = async () =>
    (
      await pool.query<{ id: string; status: string; retry_at: string | null; retry_number: number }>(
        'select * from exportd.batch_export_runs where batch_export_id = $1 order by position',
        [batchExportId],
      )
    ).rows;
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
  { order: 'the one that created them first', pick: <Id>(first: Id, second: Id) => [first, second] as const },
  {
    order: 'the one that waits for them first',
    pick: <Id>(first: Id, second: Id) => [second, first] as const,
  },
];

describe('runs that two backfills share', () => {
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
