import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { continueRun } from '../../src/decisions/continue_run.ts';
import { advanceSchedule } from '../../src/decisions/advance_schedule.ts';
import { deleteExpired } from '../../src/journal/stored_rows.ts';
import { storedRows } from '../../src/temporal/capabilities.ts';
import { endRun, type RunOutcome } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { readCommand } from '../../src/journal/commands.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, minutesAgo, quickPolicies } from './commander.ts';
import { createLaggingExport } from './lagging_export.ts';
import { readRuns } from './read_runs.ts';
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

const statusesOf = async (batch_export_id: string) =>
  (await readRuns(pool, { batch_export_id })).map(({ status }) => status);

describe('an outage of the destination', () => {
  const destination = 's3://outage';
  const limited = quickPolicies({ EXPORTD_RUN_RETRY_LIMIT: '1', EXPORTD_RUN_RETRY_INITIAL: '0s' });

  it('costs no retry, so that the interval is exported however long it lasts', async () => {
    const commander = createCommander(journal, limited);
    const { batchExportId } = commander;
    await pool.query(
      `insert into exportd.destination_configs (batch_export_id, version, destination_type, config, circuit)
       values ($1, 1, 'S3', $3, $2)`,
      [
        batchExportId,
        destination,
        { bucket_name: 'outage', prefix: batchExportId, region: 'us-east-1', endpoint_url: null },
      ],
    );
    await commander.create({ config_version: 1 });
    const runs = createSimulatedRuns(journal, createRunRecorder(journal), commander);
    await runs.create(3);
    const newest = async () => (await readRuns(pool, { batch_export_id: batchExportId })).at(-1);
    const fail = async () => {
      const run = await newest();
      await endRun(journal, limited, run?.id ?? '', {
        status: 'FailedRetryable',
        latest_error: 'Error: down',
      });
      await commander.step();
      return newest();
    };
    await pool.query(
      `insert into exportd.destination_circuits (destination, error, opened_at, next_probe_at)
       values ($1, 'silent', clock_timestamp(), clock_timestamp())`,
      [destination],
    );
    for (let runsInOutage = 0; runsInOutage < 4; runsInOutage += 1)
      expect(await fail()).toMatchObject({ status: 'Starting', retry_number: 1, retry_at: null });
    // It closes in the time of the run, whose retry starts over.
    await pool.query(
      `update exportd.destination_circuits set opened_at = null, error = null, next_probe_at = null,
         closed_at = clock_timestamp() where destination = $1`,
      [destination],
    );
    expect(await fail()).toMatchObject({ status: 'Starting', retry_number: 1 });
    expect(await fail()).toMatchObject({ status: 'FailedRetryable', retry_at: null });
  });
});

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

describe('when something fails unexpectedly,', () => {
  const { pool } = useTestDatabase();
  const journal = openJournal(pool);

  const runsOf = (batch_export_id: string) => readRuns(pool, { batch_export_id });
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
          endRun(journal, policies, run?.id ?? '', {
            status: 'FailedRetryable',
            latest_error: 'Timeout: S3',
          }),
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
});

describe('what is older than its retention', () => {
  const database = useTestDatabase();

  const hour = 3_600_000;
  const count = async (table: string) =>
    (await database.pool.query<{ count: number }>(`select count(*) as count from exportd.${table}`)).rows[0]
      ?.count;

  it('is deleted in batches, while the journal keeps everything', async () => {
    const { create } = createCommander(openJournal(database.pool), quickPolicies());
    await create();
    const events = await count('journal_events');
    await database.pool.query(
      `insert into exportd.log_lines (team_id, batch_export_id, level, message, timestamp)
     select 1, $1, 'INFO', 'line ' || n, clock_timestamp() - age
     from unnest(array[interval '61 minutes', interval '59 minutes']) age, generate_series(1, 6000) n`,
      [randomUUID()],
    );
    await database.pool.query(
      `with webhook as (
       insert into exportd.webhooks (id, team_id, origin, sealed_url, events, secret)
       values (gen_random_uuid(), 1, 'https://example.com', '', '{}', '') returning id),
     notification as (
       insert into exportd.notifications (id, type, team_id, data, created_at)
       select gen_random_uuid(), 'run.failed', 1, '{}', clock_timestamp() - age
       from unnest(array[interval '61 minutes', interval '59 minutes']) age, generate_series(1, 2) returning id, created_at)
     insert into exportd.webhook_deliveries (notification_id, webhook_id, status)
     select notification.id, webhook.id,
       case when row_number() over (order by notification.created_at) = 1 then 'pending' else 'delivered' end
     from notification, webhook`,
    );
    await database.pool.query(
      `insert into exportd.jobs (kind, team_id, user_id, target, parameters, is_kept, ends_before, created_at)
     select 'verification', 1, 1, gen_random_uuid(), '{}', is_kept, clock_timestamp(), clock_timestamp() - age
     from unnest(array[interval '61 minutes', interval '59 minutes']) age, unnest(array[true, false]) is_kept`,
    );
    expect(await deleteExpired(database.pool, hour, storedRows)).toBe(6_003);
    expect([
      await count('log_lines'),
      await count('notifications'),
      await count('webhook_deliveries'),
    ]).toEqual([6_000, 3, 3]);
    expect(await count('jobs')).toBe(2);
    expect(await deleteExpired(database.pool, hour, storedRows)).toBe(0);
    expect(await count('journal_events')).toBe(events);
  });
});
