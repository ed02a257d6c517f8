import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { advanceSchedule } from '../../src/decisions/advance_schedule.ts';
import { isIntervalDue } from '../../src/decisions/run_end.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { GenerationSuperseded, RunEnded } from '../../src/domain/run.ts';
import type { ExistingRun, RunStatus } from '../../src/domain/run_state.ts';
import { type CommandName, readCommand } from '../../src/journal/commands.ts';
import { openJournal, reportVersions } from '../../src/projections/registry.ts';
import { pendingCommands } from '../../src/temporal/reconcilers/check_executions.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { createTestDatabase } from '../setup/database.ts';
import { minuteAgo, withinOneMinute } from '../setup/minutes.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, definition, minutesAgo, quickPolicies } from './commander.ts';
import { appendLaggingExport, createLaggingExport } from './lagging_export.ts';
import { readBackfills } from './read_backfills.ts';
import { isWarning, readLog } from './read_log.ts';
import { readRuns } from './read_runs.ts';
import { recordSameRows } from './replacements.ts';
import { commandsInWords, readCommands } from '../journal/read_commands.ts';
import { readEvents } from '../journal/read_stream.ts';

const { pool } = useTestDatabase();
const journal = openJournal(pool);

const runsOf = (batch_export_id: string) => readRuns(pool, { batch_export_id });

/** Takes a run through all of its steps, without rows. */
async function completeRun(runId: string): Promise<void> {
  const recorder = createRunRecorder(journal);
  await recorder.recordCount(runId, {
    records_total_count: 0,
    fingerprint: fingerprintOf(0),
    settled: true,
    split_keys: [],
  });
  const { generation } = await recorder.reserveGeneration(runId);
  await recorder.finishExport(runId, generation, {
    source_rows: 0,
    fingerprint: fingerprintOf(0),
    encoder: 'none',
  });
  await recordSameRows(recorder, runId);
  await recorder.startPublish(runId, generation);
  await recorder.complete(runId, generation, 'manifest.json');
}

describe('commands', () => {
  it('of a newer version stay pending, and those after them are decided', async () => {
    const { batchExportId, store, step, create } = createCommander(journal, quickPolicies());
    await create();
    const newer = await store('archive' as CommandName);
    const known = await store('pause');
    const { errors, has_more } = await step();
    expect([errors, has_more]).toEqual([[], false]);
    expect((await readCommand(pool, newer))?.status).toBe('pending');
    expect((await readCommand(pool, known))?.status).toBe('applied');
    expect(await pendingCommands(pool, 0)).not.toContainEqual(
      expect.objectContaining({ batch_export_id: batchExportId }),
    );
    expect(await reportVersions(pool)).toEqual({
      differs: null,
      needs_newer: expect.stringMatching(/newer version of exportd has stored .*: 1 pending command\./),
    });
    await pool.query('delete from exportd.commands where id = $1', [newer]);
  });

  it('are decided in the order they were stored', async () => {
    const { batchExportId, store, step, create } = createCommander(journal, quickPolicies());
    await create();
    for (const name of ['pause', 'unpause', 'pause', 'unpause', 'unpause', 'pause'] as const)
      await store(name);
    await step();
    expect((await commandsInWords(pool, batchExportId)).join(', ')).toBe(
      'create applied, pause applied, unpause applied, pause applied, unpause applied, unpause no-op, pause applied',
    );
  });

  it('are decided once, even with concurrent steps', async () => {
    const policies = quickPolicies();
    const { batchExportId, store, create } = createCommander(journal, policies);
    await create();
    await store('backfill', { start_at: minutesAgo(5), end_at: minutesAgo(2) });
    await Promise.all([1, 2, 3, 4].map(() => advanceSchedule(journal, policies, batchExportId, [])));
    expect(await readBackfills(pool, { batch_export_id: batchExportId })).toHaveLength(1);
  });

  it('do not change last_updated_at by a no-op pause', async () => {
    const { batchExportId, command, create } = createCommander(journal, quickPolicies());
    await create();
    await command('pause');
    const read = () => pool.query('select * from exportd.batch_exports where id = $1', [batchExportId]);
    const before = (await read()).rows;
    expect((await command('pause')).command.status).toBe('no-op');
    expect((await read()).rows).toEqual(before);
  });

  it('reject a retry while a run of the interval is active, and name that run', async () => {
    const { batchExportId, command, create } = createCommander(journal, quickPolicies());
    await create();
    await command('backfill', { start_at: minutesAgo(3), end_at: minutesAgo(2) });
    const [run] = await runsOf(batchExportId);
    const { command: rejected } = await command('retry', { run_id: run?.id });
    expect(rejected.outcome).toMatchObject({
      code: 'conflict',
      detail: expect.stringContaining(run?.id ?? '?'),
    });
  });

  it('retry a run as a new run of the same interval with the next generation', async () => {
    const { batchExportId, command, create } = createCommander(journal, quickPolicies());
    await create();
    await command('backfill', {
      start_at: minutesAgo(2),
      end_at: minutesAgo(2).replace(/\d\d\.\d+Z$/, '59.999Z'),
    });
    const [first] = await runsOf(batchExportId);
    await completeRun(first?.id ?? '');
    const { command: retried } = await command('retry', { run_id: first?.id });
    const second = (await runsOf(batchExportId)).at(-1);
    expect(second).toMatchObject({ status: 'Starting', data_interval_start: first?.data_interval_start });
    expect(retried.outcome?.run_id).toBe(second?.id);
    await completeRun(second?.id ?? '');
    expect((await runsOf(batchExportId)).at(-1)).toMatchObject({ status: 'Completed', generation: 2 });
  });

  it('reject a backfill above the limit of the project', async () => {
    const policies = quickPolicies({
      EXPORTD_MAX_BACKFILLS_PER_PROJECT: '1',
      EXPORTD_BACKFILL_CONCURRENCY: '1',
    });
    const other = await createTestDatabase();
    const { command, create } = createCommander(openJournal(other.pool), policies);
    await create();
    await command('backfill', { start_at: minutesAgo(5), end_at: minutesAgo(2) });
    const { command: rejected } = await command('backfill', {
      start_at: minutesAgo(15),
      end_at: minutesAgo(12),
    });
    expect(rejected.outcome?.code).toBe('too_many_concurrent_backfills');
    await other.drop();
  });

  it('delete an export with its backfills and runs, also one that is publishing', async () => {
    const { batchExportId, command, create } = createCommander(journal, quickPolicies());
    await create();
    await command('backfill', { start_at: minutesAgo(6), end_at: minutesAgo(2) });
    const recorder = createRunRecorder(journal);
    const publishing = (await runsOf(batchExportId))[0]?.id ?? '';
    const { generation } = await recorder.reserveGeneration(publishing);
    await recorder.finishExport(publishing, generation, {
      source_rows: 0,
      fingerprint: fingerprintOf(0),
      encoder: 'none',
    });
    await recorder.startPublish(publishing, generation);
    const { step } = await command('delete');
    expect(step.status).toBe('deleted');
    const statuses = (await runsOf(batchExportId)).map(({ status }) => status);
    expect(statuses).toEqual(['Cancelled', 'Cancelled', 'Cancelled']);
    await expect(recorder.complete(publishing, generation, 'manifest.json')).rejects.toThrow(RunEnded);
  });
});

describe('a run', () => {
  const createStartedRun = async () => {
    const { batchExportId, command, create, step } = createCommander(
      journal,
      quickPolicies({ EXPORTD_RUN_RETRY_INITIAL: '0s' }),
    );
    await create();
    await command('backfill', { start_at: minutesAgo(2), end_at: minutesAgo(1) });
    return { batchExportId, command, step, runId: (await runsOf(batchExportId))[0]?.id ?? '' };
  };

  it('rejects the steps of a replaced attempt', async () => {
    const { runId } = await createStartedRun();
    const recorder = createRunRecorder(journal);
    const { generation } = await recorder.reserveGeneration(runId);
    await recorder.reserveGeneration(runId);
    const facts = { source_rows: 0, fingerprint: fingerprintOf(0), encoder: 'none' };
    await expect(recorder.finishExport(runId, generation, facts)).rejects.toThrow(GenerationSuperseded);
  });

  it('ends once: nothing is recorded for it afterwards', async () => {
    const { runId } = await createStartedRun();
    const policies = quickPolicies();
    expect(await endRun(journal, policies, runId, { status: 'Failed', latest_error: 'A: b' })).toBe(true);
    expect(await endRun(journal, policies, runId, { status: 'Terminated', latest_error: 'C: d' })).toBe(
      false,
    );
    await expect(createRunRecorder(journal).startExport(runId, 0)).rejects.toThrow(RunEnded);
  });

  it('is retried automatically after a transient failure', async () => {
    const { batchExportId, runId, step } = await createStartedRun();
    const policies = quickPolicies({ EXPORTD_RUN_RETRY_INITIAL: '0s' });
    await endRun(journal, policies, runId, { status: 'FailedRetryable', latest_error: 'Timeout: S3' });
    const { start_runs } = await step();
    const retry = (await runsOf(batchExportId)).find(({ retry_number }) => retry_number === 1);
    expect(retry?.status).toBe('Starting');
    expect(start_runs.map(({ run_id }) => run_id)).toContain(retry?.id);
  });

  it('cannot be cancelled once it publishes', async () => {
    const { runId, command } = await createStartedRun();
    const recorder = createRunRecorder(journal);
    const { generation } = await recorder.reserveGeneration(runId);
    await recorder.finishExport(runId, generation, {
      source_rows: 0,
      fingerprint: fingerprintOf(0),
      encoder: 'none',
    });
    await recorder.startPublish(runId, generation);
    const { command: accepted, step: taken } = await command('cancelRun', { run_id: runId });
    expect([accepted.status, taken.cancel_runs]).toEqual(['applied', []]);
    expect((await recorder.read(runId)).cancel_requested).toBe('Cancelled by a user.');
  });
});

describe('a claim of publishing', () => {
  /** Creates a run that has exported, with a function that claims publishing for another attempt. */
  const createExportedRun = async () => {
    const { command, create, batchExportId } = createCommander(journal, quickPolicies());
    await create();
    await command('backfill', { start_at: minutesAgo(2), end_at: minutesAgo(1) });
    const runId = (await runsOf(batchExportId))[0]?.id ?? '';
    const recorder = createRunRecorder(journal);
    const { generation } = await recorder.reserveGeneration(runId);
    await recorder.finishExport(runId, generation, {
      source_rows: 0,
      fingerprint: fingerprintOf(0),
      encoder: 'none',
    });
    return {
      claim: () => recorder.startPublish(runId, generation),
      withdraw: (claimed: ExistingRun) => recorder.withdrawPublish(runId, claimed),
      cancel: async () => {
        await command('cancelRun', { run_id: runId });
        return (await recorder.read(runId)).status;
      },
    };
  };

  it('that was withdrawn, because nothing was sent, lets the run be cancelled', async () => {
    const { claim, withdraw, cancel } = await createExportedRun();
    await withdraw(await claim());
    await withdraw(await claim());
    expect(await cancel()).toBe('Cancelled');
  });

  it('is kept when another attempt continued under it, whichever of them sent nothing', async () => {
    const { claim, withdraw, cancel } = await createExportedRun();
    const stalled = await claim();
    const next = await claim();
    await withdraw(next);
    await withdraw(stalled);
    expect(await cancel()).toBe('Starting');
  });

  it('is kept when the attempt whose claim was withdrawn withdraws again', async () => {
    const { claim, withdraw, cancel } = await createExportedRun();
    const withdrawn = await claim();
    await withdraw(withdrawn);
    await claim();
    await withdraw(withdrawn);
    expect(await cancel()).toBe('Starting');
  });
});

describe('a backfill', () => {
  it('creates no more runs than its concurrency allows, and completes after the last', async () => {
    const policies = quickPolicies({ EXPORTD_BACKFILL_CONCURRENCY: '2' });
    const { batchExportId, command, create } = createCommander(journal, policies);
    await create();
    const { command: requested } = await command('backfill', {
      start_at: minutesAgo(5),
      end_at: minutesAgo(2),
    });
    const backfillId = requested.outcome?.backfill_id ?? '';
    for (;;) {
      const active = (await runsOf(batchExportId)).filter(({ status }) => status === 'Starting');
      expect(active.length).toBeLessThanOrEqual(2);
      for (const run of active) await completeRun(run.id);
      if ((await advanceBackfill(journal, policies, backfillId)).ended) break;
    }
    const { rows } = await pool.query(
      `select status, total_runs, completed_runs, (select count(*) from exportd.backfill_runs
       where backfill_id = id) as uncounted from exportd.backfills where id = $1`,
      [backfillId],
    );
    expect(rows).toEqual([{ status: 'Completed', total_runs: 4, completed_runs: 4, uncounted: 0 }]);
  });

  it('goes on by the step of each run that ends, however often and in whatever order these are taken', async () => {
    const policies = quickPolicies({ EXPORTD_BACKFILL_CONCURRENCY: '2' });
    const { batchExportId: batch_export_id, command, create } = createCommander(journal, policies);
    await create();
    const { command: requested } = await command('backfill', {
      start_at: minutesAgo(5),
      end_at: minutesAgo(2),
    });
    const backfillId = requested.outcome?.backfill_id ?? '';
    const stepOf = (run_id: string, status: RunStatus = 'Completed') =>
      advanceBackfill(journal, policies, backfillId, { run_id, batch_export_id, status });
    const [first = '', second = ''] = (await runsOf(batch_export_id)).map(({ id }) => id);
    for (const run of [first, second]) await completeRun(run);
    expect(await stepOf(second)).toMatchObject({ status: 'Running', runs_created: 4, runs_ended: 1 });
    const after = await stepOf(first);
    expect(after).toMatchObject({ status: 'Running', runs_created: 4, runs_ended: 2, done_at: null });
    expect(await stepOf(first)).toEqual(after);
    const [third = '', fourth = ''] = after.start_runs.map(({ run_id }) => run_id);
    await endRun(journal, policies, third, { status: 'Failed', latest_error: 'Error: a test' });
    await completeRun(fourth);
    expect(await stepOf(third, 'Failed')).toMatchObject({ ended: true, status: 'Completed' });
    expect(await stepOf(fourth)).toMatchObject({ ended: true, status: 'Completed' });
    const ended = await readEvents(pool, backfillId, 'BackfillRunEnded');
    expect(ended.map(({ data }) => data.run_id).slice(0, 2)).toEqual([second, first]);
    expect(ended.map(({ data }) => data.run_id).toSorted()).toEqual(
      [first, second, third, fourth].toSorted(),
    );
  });

  it('waits for an active run of one of its intervals', async () => {
    const { batchExportId, command, create } = createCommander(journal, quickPolicies());
    await create();
    const range = { start_at: minutesAgo(3), end_at: minutesAgo(2) };
    await command('backfill', range);
    const before = (await runsOf(batchExportId)).length;
    await command('backfill', range);
    expect(await runsOf(batchExportId)).toHaveLength(before);
  });
});

describe('a manual signal', () => {
  const chain = randomUUID();

  it('is stored as a command and decided once, even if the step is repeated', async () => {
    const policies = quickPolicies();
    const { batchExportId, create } = createCommander(journal, policies);
    await create();
    const input = { start_at: minutesAgo(3), end_at: minutesAgo(2), allow_shrink: true };
    const signals = [{ name: 'backfill', ordinal: 0, chain, input }];
    await advanceSchedule(journal, policies, batchExportId, signals);
    await advanceSchedule(journal, policies, batchExportId, signals);
    expect(await readBackfills(pool, { batch_export_id: batchExportId })).toMatchObject([
      { allow_shrink: true },
    ]);
  });

  it.each([
    ['an unknown name', 'explode', {}],
    ['a name with NUL', 'pa\0use', {}],
    ['a string', 'backfill', 'nonsense'],
    ['null fields', 'backfill', { start_at: null, end_at: 7 }],
    ['a list', 'retry', [1, 2]],
    ['text for a boolean', 'retry', { run_id: randomUUID(), allow_shrink: 'true' }],
    ['an unknown run', 'retry', { run_id: randomUUID() }],
  ])('is rejected if it is invalid: %s', async (_, name, input) => {
    const policies = quickPolicies();
    const { batchExportId, create } = createCommander(journal, policies);
    await create();
    await advanceSchedule(journal, policies, batchExportId, [{ name, ordinal: 1, chain, input }]);
    expect(await readCommands(pool, batchExportId)).toMatchObject([
      { name: 'create' },
      { status: 'rejected' },
    ]);
  });

  it('is logged with the identity of its sender', async () => {
    const policies = quickPolicies();
    const { batchExportId, create } = createCommander(journal, policies);
    await create();
    const signal = { name: 'pause', ordinal: 1, chain, input: {}, identity: 'temporal-cli:mallory@laptop' };
    await advanceSchedule(journal, policies, batchExportId, [signal]);
    const log = await readLog(pool, { batch_export_id: batchExportId }, ({ level }) => level === 'INFO');
    expect(log.filter((message) => message.startsWith('Manual signal'))).toEqual([
      'Manual signal of temporal-cli:mallory@laptop was received: pause',
    ]);
  });

  it('is rejected, logged and shown by an installation that accepts none', async () => {
    const policies = quickPolicies({ EXPORTD_MANUAL_SIGNALS: 'false' });
    const { batchExportId, create } = createCommander(journal, policies);
    await create();
    const signal = { name: 'delete', ordinal: 1, chain, input: {}, identity: 'temporal-cli:mallory@laptop' };
    const { decided, status, rejected_signals } = await advanceSchedule(journal, policies, batchExportId, [
      signal,
    ]);
    expect(status).toBe('live');
    expect(decided).toMatch(/^1 signal ignored: "delete" .*EXPORTD_MANUAL_SIGNALS/);
    expect(rejected_signals).toEqual([expect.stringContaining('"delete"')]);
    const [created, ...commands] = await readCommands(pool, batchExportId);
    expect(commands).toMatchObject([{ name: 'delete', status: 'rejected' }]);
    expect(await readLog(pool, { batch_export_id: batchExportId }, isWarning)).toEqual([
      expect.stringMatching(
        /^Manual signal of temporal-cli:mallory@laptop was rejected: .*EXPORTD_MANUAL_SIGNALS/,
      ),
    ]);
    // A signal that names a stored command is one of the API.
    const ofApi = { name: 'create', ordinal: 2, chain, input: { command_id: created?.id } };
    expect((await advanceSchedule(journal, policies, batchExportId, [ofApi])).rejected_signals).toEqual([]);
  });
});

describe('an interval that waits for a free slot', () => {
  async function isDueWithSlots(slots: number): Promise<boolean> {
    const policies = quickPolicies({ EXPORTD_MAX_CONCURRENT_RUNS: String(slots) });
    const { result } = await withinOneMinute(async () => {
      const { batchExportId, command } = createCommander(journal, policies);
      await createLaggingExport(journal, batchExportId, 4);
      await command('unpause');
      return isIntervalDue(journal, batchExportId);
    });
    return result;
  }

  it('is due while the slots are taken', async () => {
    expect(await isDueWithSlots(2)).toBe(true);
  });

  it('is not due when all due intervals have a run', async () => {
    expect(await isDueWithSlots(10)).toBe(false);
  });

  it('is not due after end_at, where the schedule sleeps', async () => {
    const id = randomUUID();
    const scheduled_until = minuteAgo(5).toISOString();
    const data = { definition: { ...definition, end_at: scheduled_until }, scheduled_until };
    await appendLaggingExport(journal, id, { team_id: 1, paused: false, ...data });
    expect(await isIntervalDue(journal, id)).toBe(false);
  });

  it('is not due for an export that does not exist', async () => {
    expect(await isIntervalDue(journal, '00000000-0000-4000-8000-000000000000')).toBe(false);
  });
});
