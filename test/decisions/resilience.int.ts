import { describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { advanceSchedule } from '../../src/decisions/advance_schedule.ts';
import { readCommand } from '../../src/journal/commands.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createLaggingExport } from './lagging_export.ts';
import { createCommander, minutesAgo, quickPolicies } from './commander.ts';

const { pool } = useTestDatabase();
const journal = openJournal(pool);

const runsOf = async (batchExportId: string) =>
  (
    await pool.query<{ id: string; status: string; backfill_id: string | null; retry_number: number }>(
      'select * from exportd.batch_export_runs where batch_export_id = $1 order by position',
      [batchExportId],
    )
  ).rows;
const range = { start_at: minutesAgo(4), end_at: minutesAgo(3) };

describe('a command with an unexpected error', () => {
  it('is rejected, so that later commands are decided', async () => {
    const { create, store, step } = createCommander(journal, quickPolicies());
    await create();
    const poison = [await store('cancelRun', { run_id: 'not a UUID' }), await store('update', {})];
    const pause = await store('pause');
    const { errors: errors } = await step();
    for (const id of poison)
      expect(await readCommand(pool, id)).toMatchObject({
        status: 'rejected',
        outcome: { code: 'internal_error' },
      });
    expect((await readCommand(pool, pause))?.status).toBe('applied');
    expect(errors).toHaveLength(2);
  });

  it('stays pending while the database is unavailable', async () => {
    const policies = quickPolicies();
    const { batchExportId, create, store, step } = createCommander(journal, policies);
    await create();
    const id = await store('pause');
    const outage = new pg.DatabaseError('terminating connection', 0, 'error');
    outage.code = '57P01';
    const broken: Journal = { ...journal, transaction: () => Promise.reject(outage) };
    await expect(advanceSchedule(broken, policies, batchExportId, [])).rejects.toThrow(outage);
    expect((await readCommand(pool, id))?.status).toBe('pending');
    await step();
    expect((await readCommand(pool, id))?.status).toBe('applied');
  });
});

describe('a step whose result was lost', () => {
  it('is followed by one that starts the workflow of a new backfill again', async () => {
    const { command, create, step } = createCommander(journal, quickPolicies());
    await create();
    const { command: backfill } = await command('backfill', range);
    expect((await step()).wake_backfills).toEqual([backfill.outcome?.backfill_id]);
    await command('cancelBackfill', { backfill_id: backfill.outcome?.backfill_id });
    expect((await step()).wake_backfills).toEqual([]);
  });
});

describe('the automatic retry of a run of a backfill', () => {
  const createFailingBackfill = async () => {
    const policies = quickPolicies({ EXPORTD_RUN_RETRY_INITIAL: '0s', EXPORTD_BACKFILL_CONCURRENCY: '1' });
    const commander = createCommander(journal, policies);
    await commander.create();
    const { command } = await commander.command('backfill', {
      start_at: minutesAgo(9),
      end_at: minutesAgo(3),
    });
    const [run] = await runsOf(commander.batchExportId);
    return {
      ...commander,
      backfill_id: command.outcome?.backfill_id,
      fail: () =>
        endRun(journal, policies, run?.id ?? '', { status: 'FailedRetryable', latest_error: 'Timeout: S3' }),
    };
  };
  const retriesOf = async (batchExportId: string) =>
    (await runsOf(batchExportId)).filter(({ retry_number }) => retry_number > 0);

  it('is not created once the backfill is cancelled', async () => {
    const { batchExportId, backfill_id, command, fail, step } = await createFailingBackfill();
    await fail();
    await command('cancelBackfill', { backfill_id });
    await step();
    expect(await retriesOf(batchExportId)).toEqual([]);
  });

  it('waits while the backfill is paused', async () => {
    const { batchExportId, backfill_id, command, fail, step } = await createFailingBackfill();
    await command('pauseBackfill', { backfill_id });
    await fail();
    await step();
    expect(await retriesOf(batchExportId)).toEqual([]);
    await command('unpauseBackfill', { backfill_id });
    expect(await retriesOf(batchExportId)).toHaveLength(1);
  });
});

describe('a run that two owners wait for', () => {
  it('continues for the other backfill when one is cancelled', async () => {
    const { batchExportId, command, create } = createCommander(journal, quickPolicies());
    await create();
    const { command: first } = await command('backfill', range);
    await command('backfill', range);
    await command('cancelBackfill', { backfill_id: first.outcome?.backfill_id });
    const statuses = (await runsOf(batchExportId)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set(['Starting']));
  });

  it('continues for the schedule that has adopted it', async () => {
    const { batchExportId, command, step: again } = createCommander(journal, quickPolicies());
    await createLaggingExport(journal, batchExportId, 3);
    const { command: backfill } = await command('backfill', range);
    const { step } = await command('unpause');
    expect(step.status).toBe('live');
    await command('cancelBackfill', { backfill_id: backfill.outcome?.backfill_id });
    const ofBackfill = async () =>
      (await runsOf(batchExportId)).filter((run) => run.backfill_id !== null && run.status === 'Starting');
    const [adopted] = await ofBackfill();
    // Its automatic retry is not cancelled either.
    const outcome = { status: 'FailedRetryable', latest_error: 'Timeout: S3' } as const;
    await endRun(journal, quickPolicies({ EXPORTD_RUN_RETRY_INITIAL: '0s' }), adopted?.id ?? '', outcome);
    await again();
    const retriesOf = (await runsOf(batchExportId)).filter(({ retry_number }) => retry_number === 1);
    expect(retriesOf).toMatchObject([{ status: 'Starting', backfill_id: adopted?.backfill_id }]);
  });

  it('wakes both when a user cancels it', async () => {
    const { batchExportId, command, create } = createCommander(journal, quickPolicies());
    await create();
    const { command: first } = await command('backfill', range);
    const { command: second } = await command('backfill', range);
    const [run] = await runsOf(batchExportId);
    const { step } = await command('cancelRun', { run_id: run?.id });
    expect(new Set(step.wake_backfills)).toEqual(
      new Set([first.outcome?.backfill_id, second.outcome?.backfill_id]),
    );
  });
});
