import { describe, expect, it } from '@jest/globals';
import { advanceBackfill, continueRun } from '../../src/decisions/advance_backfill.ts';
import { endRun, type RunOutcome } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, quickPolicies } from './commander.ts';
import { createSimulatedRuns, minuteBefore } from './simulated_runs.ts';

const { pool } = useTestDatabase();
const journal = openJournal(pool);
const policies = quickPolicies({ EXPORTD_MAX_BACKFILLS_PER_PROJECT: '100' });

/** Creates an export with one started run. */
async function createStartedRun() {
  const commander = createCommander(journal, policies);
  await commander.create();
  const recorder = createRunRecorder(journal);
  const runs = createSimulatedRuns(journal, recorder, commander);
  const id = await runs.create(3);
  const run = await runs.start(id);
  return {
    ...commander,
    id,
    complete: () => runs.publish(id, run, `key of ${id}`),
    end: (status: RunOutcome) => endRun(journal, policies, id, { status, latest_error: 'Error: a test' }),
  };
}

const statusesOf = async (batchExportId: string): Promise<string[]> =>
  (
    await pool.query<{ status: string }>(
      'select status from exportd.batch_export_runs where batch_export_id = $1 order by position',
      [batchExportId],
    )
  ).rows.map(({ status }) => status);

describe('a retry by a user', () => {
  it.each(['Failed', 'FailedRetryable', 'TimedOut', 'Terminated', 'Cancelled'] as const)(
    'of a run that is %s creates the only new run',
    async (status) => {
      const { batchExportId, id, command, end, step } = await createStartedRun();
      await end(status);
      const { command: retry } = await command('retry', { run_id: id });
      expect(retry).toMatchObject({ status: 'applied', outcome: { run_id: expect.any(String) } });
      await step();
      expect(await statusesOf(batchExportId)).toEqual([status, 'Starting']);
    },
  );

  it('of a Completed run creates a run', async () => {
    const { batchExportId, id, command, complete } = await createStartedRun();
    await complete();
    await command('retry', { run_id: id });
    expect(await statusesOf(batchExportId)).toEqual(['Completed', 'Starting']);
  });

  it('of a run that continued as new is rejected until the next run has ended', async () => {
    const { batchExportId, id, command } = await createStartedRun();
    const next = await continueRun(journal, id);
    const { command: rejected } = await command('retry', { run_id: id });
    expect(rejected.outcome).toMatchObject({
      code: 'conflict',
      detail: expect.stringContaining(next.run_id),
    });
    await endRun(journal, policies, next.run_id, { status: 'Terminated', latest_error: 'Error: a test' });
    const { command: retry } = await command('retry', { run_id: id });
    expect(retry.status).toBe('applied');
    expect(await statusesOf(batchExportId)).toEqual(['ContinuedAsNew', 'Terminated', 'Starting']);
  });

  it('does not wait for a paused export', async () => {
    const { batchExportId, id, command, end } = await createStartedRun();
    await end('FailedRetryable');
    await command('pause');
    await command('retry', { run_id: id });
    expect(await statusesOf(batchExportId)).toEqual(['FailedRetryable', 'Starting']);
  });

  it('of a run of another export is rejected', async () => {
    const { id } = await createStartedRun();
    const { command, create } = createCommander(journal, policies);
    await create();
    const { command: rejected } = await command('retry', { run_id: id });
    expect(rejected).toMatchObject({ status: 'rejected', outcome: { code: 'not_found' } });
  });
});

describe('an automatic retry', () => {
  const retryAtOnce = quickPolicies({ EXPORTD_RUN_RETRY_INITIAL: '0s' });

  /** An exported interval whose next run, requested before or after it expired, has failed. */
  async function createFailedRerun(expires: 'before the request' | 'after the request' | 'not') {
    const { batchExportId, id, command, complete } = await createStartedRun();
    await complete();
    const expire = () =>
      pool.query(
        `with owner as (update exportd.batch_exports set retention_days = 30 where id = $1)
         update exportd.intervals set completed_at = completed_at - interval '31 days' where batch_export_id = $1`,
        [batchExportId],
      );
    if (expires === 'before the request') await expire();
    const { command: retry } = await command('retry', { run_id: id });
    const rerun = retry.outcome?.run_id ?? '';
    if (expires === 'after the request') {
      await pool.query(
        `update exportd.batch_export_runs set created_at = created_at - interval '2 days' where id = $1`,
        [rerun],
      );
      await expire();
    }
    await endRun(journal, retryAtOnce, rerun, { status: 'FailedRetryable', latest_error: 'Timeout: S3' });
    const { step } = createCommander(journal, retryAtOnce, batchExportId);
    await step();
    await step();
    const { rows } = await pool.query<{ retry_at: unknown; messages: string }>(
      `select retry_at, (select string_agg(message, ' ' order by id) from exportd.log_lines where run_id = run.id) as messages
       from exportd.batch_export_runs run where id = $1`,
      [rerun],
    );
    return { statuses: await statusesOf(batchExportId), ...rows[0] };
  }

  it.each(['before the request', 'not'] as const)(
    'follows a run that a person requested, if its interval expired: %s',
    async (expires) => {
      expect((await createFailedRerun(expires)).statuses).toEqual([
        'Completed',
        'FailedRetryable',
        'Starting',
      ]);
    },
  );

  it('does not follow a run whose interval expired after it was created', async () => {
    const { statuses, retry_at, messages } = await createFailedRerun('after the request');
    expect(statuses).toEqual(['Completed', 'FailedRetryable']);
    expect(retry_at).toBeNull();
    expect(messages).toMatch(/Not retried: rules of the bucket have deleted objects of the interval/);
  });
});

describe('a backfill', () => {
  it('waits for an active run of its interval, and counts it', async () => {
    const { batchExportId, id, command, complete } = await createStartedRun();
    const { command: second } = await command('backfill', minuteBefore(3));
    const backfillId = second.outcome?.backfill_id ?? '';
    expect(await advanceBackfill(journal, policies, backfillId)).toMatchObject({
      ended: false,
      runs_created: 1,
    });
    await complete();
    expect(await advanceBackfill(journal, policies, backfillId)).toMatchObject({
      ended: true,
      runs_created: 1,
    });
    expect(await statusesOf(batchExportId)).toEqual(['Completed']);
    const { rows } = await pool.query('select * from exportd.backfill_runs where backfill_id = $1', [
      backfillId,
    ]);
    expect(rows).toMatchObject([{ run_id: id, own: false, status: 'Completed' }]);
  });
});

describe('commands for a deleted export', () => {
  it('are rejected, except another delete', async () => {
    const { id, command } = await createStartedRun();
    await command('delete');
    const names = ['pause', 'unpause', 'update', 'backfill', 'retry', 'cancelRun', 'delete'] as const;
    const bodies: Partial<Record<string, Record<string, unknown>>> = {
      update: { changes: { name: 'Renamed' } },
      backfill: minuteBefore(3),
      retry: { run_id: id },
      cancelRun: { run_id: id },
    };
    const outcomes: string[] = [];
    for (const name of names) outcomes.push((await command(name, bodies[name] ?? {})).command.status);
    expect(outcomes).toEqual(names.map((name) => (name === 'delete' ? 'no-op' : 'rejected')));
  });
});
