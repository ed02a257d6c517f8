import { describe, expect, it } from '@jest/globals';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { endRun, type RunOutcome } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { openWorkerJournal } from '../setup/worker_journal.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { createCommander, quickPolicies } from './commander.ts';
import { readBackfills } from './read_backfills.ts';
import { readLog } from './read_log.ts';
import { readRuns } from './read_runs.ts';
import { createSimulatedRuns } from './simulated_runs.ts';
import { readEvents } from '../journal/read_stream.ts';
import { readNotifications } from '../notifications/read_notifications.ts';

const database = useTestDatabase();
const journal = openWorkerJournal(database.pool);

const rowsOf = async (statement: string, ...values: unknown[]) =>
  (await database.pool.query<Record<string, unknown>>(statement, values)).rows;
const eventsOf = async (id: string, type: string) =>
  (await readEvents(database.pool, id, type)).map(({ data }) => ({ data }));
const notificationsOf = (id: string, type: string) => readNotifications(database.pool, id, type);
const errorLines = (id: string) =>
  readLog(
    database.pool,
    { batch_export_id: id },
    ({ level, run_id }) => level === 'ERROR' && run_id === null,
  );

/** Creates an export of every minute, and helpers for its runs, oldest first. */
async function createExport(more: Record<string, string> = {}) {
  const policies = quickPolicies({ EXPORTD_MAX_CONCURRENT_RUNS: '2', ...more });
  const commander = createCommander(journal, policies);
  const id = commander.batchExportId;
  await commander.create();
  /** Makes more intervals of the export due, by moving its schedule back a number of minutes. */
  const advanceClock = (minutes: number) =>
    database.pool.query(
      `update exportd.stream_states set state = jsonb_set(state, '{scheduled_until}',
         to_jsonb(to_char(((state->>'scheduled_until')::timestamptz - $2 * interval '1 minute') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
       where stream_id = $1`,
      [id, minutes],
    );
  const runs = () => readRuns(database.pool, { batch_export_id: id });
  const active = async () =>
    (await runs()).filter(({ status }) => status === 'Starting').map((run) => run.id);
  const end = (runId: string | undefined, status: RunOutcome) =>
    endRun(journal, policies, runId ?? '', { status, latest_error: `${status}Error: it went wrong.` });
  const paused = async () =>
    (await rowsOf('select paused, last_paused_at from exportd.batch_exports where id = $1', id))[0];
  return { ...commander, id, policies, age: advanceClock, runs, active, end, paused };
}

describe('an export whose runs fail', () => {
  it('is not paused by held runs, which neither count nor end a row of failures', async () => {
    const one = await createExport({ EXPORTD_MAX_CONCURRENT_RUNS: '1' });
    const simulated = createSimulatedRuns(journal, createRunRecorder(journal), one);
    await one.age(20);
    await one.step();
    const next = async (): Promise<string> => (await one.active())[0] ?? '';
    for (let held = 0; held < 4; held += 1) {
      await simulated.hold(await next(), one.policies);
      await one.step();
    }
    expect(await one.paused()).toMatchObject({ paused: false });
    for (const step of ['fail', 'hold', 'fail', 'hold', 'fail']) {
      if (step === 'hold') await simulated.hold(await next(), one.policies);
      else await one.end(await next(), 'Failed');
      await one.step();
    }
    expect(await one.paused()).toMatchObject({ paused: true });
  });

  it('is paused after three consecutive failures, and creates no runs after the third', async () => {
    const one = await createExport();
    await one.age(20);
    await one.step();
    for (const status of ['Failed', 'FailedRetryable', 'Terminated', 'Failed', 'Cancelled'] as const) {
      const [next] = await one.active();
      await one.end(next, status);
      await one.step();
    }
    expect(await one.paused()).toEqual({ paused: false, last_paused_at: null });
    const [third] = await one.active();
    await one.end(third, 'Failed');
    const count = (await one.runs()).length;
    const step = await one.step();
    expect(step).toMatchObject({ status: 'live', wake_in_ms: null });
    expect(await notificationsOf(one.id, 'batch_export.paused')).toMatchObject([{ run_id: third }]);
    expect(await one.runs()).toHaveLength(count);
    expect(await one.paused()).toEqual({ paused: true, last_paused_at: expect.any(String) });
    const failed = (await one.runs()).filter(({ status }) => status === 'Failed').map((run) => run.id);
    expect(await eventsOf(one.id, 'BatchExportPaused')).toEqual([
      {
        data: {
          last_paused_at: null,
          reason: 'repeated failures',
          run_ids: expect.arrayContaining(failed),
        },
      },
    ]);
    const [line] = await errorLines(one.id);
    expect(line).toMatch(/last 3 scheduled runs Failed.*FailedError: it went wrong.*unpause/);
    await one.step();
    expect(await notificationsOf(one.id, 'batch_export.paused')).toHaveLength(1);
    expect(await eventsOf(one.id, 'BatchExportPaused')).toHaveLength(1);
  });

  it('starts to count again after a Completed run, and after an unpause', async () => {
    const one = await createExport({ EXPORTD_MAX_CONCURRENT_RUNS: '1' });
    const recorder = createRunRecorder(journal);
    const simulatedRuns = createSimulatedRuns(journal, recorder, one);
    await one.age(20);
    const fail = async () => {
      await one.step();
      const [next] = await one.active();
      await one.end(next, 'Failed');
      await one.step();
    };
    await fail();
    await fail();
    const [good] = await one.active();
    await simulatedRuns.publish(good ?? '', await simulatedRuns.start(good ?? ''), 'file');
    await fail();
    await fail();
    expect((await one.paused())?.paused).toBe(false);
    await fail();
    expect((await one.paused())?.paused).toBe(true);
    await one.command('unpause');
    await one.age(20);
    await fail();
    await fail();
    expect((await one.paused())?.paused).toBe(false);
    await fail();
    expect((await one.paused())?.paused).toBe(true);
    expect(await eventsOf(one.id, 'BatchExportPaused')).toHaveLength(2);
  });

  it('creates no runs after the third failure, even with concurrent steps', async () => {
    for (let round = 0; round < 5; round++) {
      const one = await createExport({ EXPORTD_MAX_CONCURRENT_RUNS: '3' });
      await one.age(30);
      await one.step();
      const ends = (await one.active()).map((run) => one.end(run, 'Failed'));
      await Promise.all([...ends, one.step(), one.step(), one.step()]);
      // If all runs ended after the last of these steps, the next step sees the failures.
      await one.step();
      while (!(await one.paused())?.paused) {
        const [next] = await one.active();
        await Promise.all([one.end(next, 'Failed'), one.step()]);
        await one.step();
      }
      const order = await rowsOf(
        `select event_type as type from exportd.journal_events event
         where stream_id = $1 or event_type = 'RunFailed' and stream_id in (
           select id from exportd.batch_export_runs where batch_export_id = $1)
         order by global_position`,
        one.id,
      );
      const types = order.map(({ type }) => type);
      const failures = types.flatMap((type, at) => (type === 'RunFailed' ? [at] : []));
      expect(types.lastIndexOf('IntervalScheduled')).toBeLessThan(failures[2] ?? 0);
    }
  });

  it('is never paused if the limit is 0', async () => {
    const one = await createExport({ EXPORTD_PAUSE_AFTER_FAILURES: '0' });
    await one.age(10);
    for (let failures = 0; failures < 4; failures++) {
      await one.step();
      const [next] = await one.active();
      await one.end(next, 'Failed');
    }
    await one.step();
    expect((await one.paused())?.paused).toBe(false);
    expect((await one.active()).length).toBeGreaterThan(0);
  });
});

describe('a backfill whose runs fail', () => {
  it('is paused after three consecutive failures and continues after an unpause; the export is not paused', async () => {
    const one = await createExport({ EXPORTD_BACKFILL_CONCURRENCY: '1' });
    const { command } = await one.command('backfill', {
      start_at: minuteAgo(10).toISOString(),
      end_at: minuteAgo(0).toISOString(),
    });
    const backfillId = command.outcome?.backfill_id ?? '';
    const runs = () => readRuns(database.pool, { backfill_id: backfillId });
    const status = async () => (await readBackfills(database.pool, { id: backfillId }))[0]?.status;
    const fail = async () => {
      const [next] = await one.active();
      await one.end(next, 'Failed');
      return advanceBackfill(journal, one.policies, backfillId);
    };
    await fail();
    await fail();
    expect(await notificationsOf(one.id, 'backfill.paused')).toEqual([]);
    expect(await status()).toBe('Running');
    expect(await fail()).toMatchObject({ start_runs: [] });
    expect(await notificationsOf(one.id, 'backfill.paused')).toHaveLength(1);
    expect([await status(), (await runs()).length]).toEqual(['Paused', 3]);
    expect(await eventsOf(backfillId, 'BackfillPaused')).toMatchObject([
      { data: { reason: 'repeated failures' } },
    ]);
    expect((await errorLines(one.id))[0]).toContain('unpause the backfill');
    await one.command('unpauseBackfill', { backfill_id: backfillId });
    await advanceBackfill(journal, one.policies, backfillId);
    expect([await status(), (await runs()).length]).toEqual(['Running', 4]);
    await one.step();
    expect((await one.paused())?.paused).toBe(false);
  });
});
