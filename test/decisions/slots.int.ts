import { describe, expect, it } from '@jest/globals';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import type { Policies } from '../../src/decisions/policies.ts';
import { endRun, type RunOutcome } from '../../src/decisions/run_outcomes.ts';
import { readCommand } from '../../src/journal/commands.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { createTestDatabase } from '../setup/database.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createLaggingExport } from './lagging_export.ts';
import { createCommander, minutesAgo, quickPolicies } from './commander.ts';

const { pool } = useTestDatabase();
const journal = openJournal(pool);

interface Row {
  readonly id: string;
  readonly status: string;
  readonly retry_number: number;
  readonly data_interval_start: string;
}
const runsOf = async (batchExportId: string): Promise<Row[]> =>
  (
    await pool.query<Row>(
      'select * from exportd.batch_export_runs where batch_export_id = $1 order by position',
      [batchExportId],
    )
  ).rows;
const activeOf = async (batchExportId: string): Promise<Row[]> =>
  (await runsOf(batchExportId)).filter(({ status }) => status === 'Starting');
const starts = (rows: readonly Row[]): string[] => rows.map(({ data_interval_start }) => data_interval_start);

const end = (policies: Policies, { id }: Row, status: RunOutcome): Promise<boolean> =>
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
