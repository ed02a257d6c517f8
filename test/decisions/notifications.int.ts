import { describe, expect, it } from '@jest/globals';
import { createKeyRing } from '../../src/config/key_ring.ts';
import { endRun, type RunOutcome } from '../../src/decisions/run_outcomes.ts';
import { notifyOfCompletion } from '../../src/notifications/incidents.ts';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { attemptOf } from '../../src/domain/run.ts';
import { inTransaction, type Connection } from '../../src/journal/database.ts';
import { openWorkerJournal } from '../setup/worker_journal.ts';
import { maxPendingDeliveries } from '../../src/notifications/deliveries.ts';
import { incidentTypes } from '../../src/notifications/notification.ts';
import { createWebhookSecret } from '../../src/notifications/send_webhook.ts';
import { createWebhook, type WebhookFields } from '../../src/notifications/webhooks.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createCommander, minutesAgo, quickPolicies } from './commander.ts';
import { readRuns } from './read_runs.ts';
import { createSimulatedRuns, minuteBefore } from './simulated_runs.ts';
import { readNotifications, readDeliveries } from '../notifications/read_notifications.ts';

const database = useTestDatabase();
const journal = openWorkerJournal(database.pool);

const keyRing = createKeyRing(`test:${Buffer.alloc(32).toString('base64')}`);
async function webhook(fields: Partial<WebhookFields> = {}, teamId = 1) {
  const created = await createWebhook(
    database.pool,
    keyRing,
    teamId,
    {
      url: 'https://example.com/',
      events: incidentTypes,
      format: 'json',
      batch_export: null,
      enabled: true,
      ...fields,
    },
    createWebhookSecret(),
  );
  if (!created) throw new Error('The limit of webhooks is reached.');
  return created;
}

/** Creates an export whose schedule has due intervals. */
async function createExport(more: Record<string, string> = {}) {
  const policies = quickPolicies({ EXPORTD_MAX_CONCURRENT_RUNS: '4', EXPORTD_RUN_RETRY_LIMIT: '0', ...more });
  const commander = createCommander(journal, policies);
  const id = commander.batchExportId;
  await commander.create();
  await database.pool.query(
    `update exportd.stream_states set state = jsonb_set(state, '{scheduled_until}', to_jsonb($2::text)) where stream_id = $1`,
    [id, `${minutesAgo(10).slice(0, 17)}00.000Z`],
  );
  const simulatedRuns = createSimulatedRuns(journal, createRunRecorder(journal), commander);
  const active = async () => {
    await commander.step();
    const found = await readRuns(database.pool, { batch_export_id: id });
    return found.filter(({ status }) => status === 'Starting').map((run) => run.id);
  };
  const end = (runId: string | undefined, status: RunOutcome) =>
    endRun(journal, policies, runId ?? '', { status, latest_error: 'Error: it went wrong.' });
  /** Creates a backfill of minutes before the creation of the export. */
  const backfill = async (minutes: number) => {
    const { end_at } = minuteBefore(20);
    const start_at = new Date(Date.parse(end_at) - minutes * 60_000).toISOString();
    const { command } = await commander.command('backfill', { start_at, end_at });
    const backfillId = command.outcome?.backfill_id ?? '';
    const runs = await readRuns(database.pool, { backfill_id: backfillId });
    return { backfillId, runs: runs.map((run) => run.id) };
  };
  const complete = async (runId: string | undefined) => {
    const run = await simulatedRuns.start(runId ?? '');
    return () => simulatedRuns.publish(runId ?? '', run, `file of ${runId ?? ''}`);
  };
  const notifications = async () =>
    (await readNotifications(database.pool, id)).map(({ type, run_id }) => ({ type, run_id }));
  /** The owners that recovered, in the order of the notifications: a backfill, or null for the schedule. */
  const recovered = async () =>
    (await readNotifications(database.pool, id, 'batch_export.recovered')).map(
      ({ data }) => data.backfill_id,
    );
  const receivers = async () => (await readDeliveries(database.pool, id)).map(({ webhook_id }) => webhook_id);
  return { ...commander, id, active, backfill, end, complete, news: notifications, recovered, receivers };
}

describe('notifications', () => {
  it('report taken keys once per export and day', async () => {
    const one = await createExport();
    await webhook({ batch_export: one.id });
    const recorder = createRunRecorder(journal);
    const runs = await one.active();
    for (const run of runs)
      for (const key of ['one', 'two']) {
        const attempt = attemptOf(await recorder.startExport(run, 0), 0);
        await recorder.recordTakenKey(run, attempt, { file: 0, key });
      }
    expect(runs.length).toBeGreaterThan(1);
    expect(await one.news()).toEqual([{ type: 'run.key_taken', run_id: runs[0] }]);
    expect(await one.receivers()).toHaveLength(1);
  });

  it('report a backfill that is done to those who subscribe to it, with its intervals, rows and failures', async () => {
    const one = await createExport();
    await webhook({ batch_export: one.id });
    const subscribed = await webhook({ batch_export: one.id, events: ['backfill.completed'] });
    const { backfillId, runs } = await one.backfill(3);
    const recorder = createRunRecorder(journal);
    await (
      await one.complete(runs[0])
    )();
    await one.end(runs[1], 'Failed');
    const unchanged = await recorder.readActive(runs[2] ?? '');
    await recorder.completeUnchanged(runs[2] ?? '', {
      run_id: runs[0] ?? '',
      run: unchanged,
      adopted_by: null,
    });
    await advanceBackfill(journal, quickPolicies(), backfillId);
    const deliveries = await readDeliveries(database.pool, one.id);
    const minute = minuteBefore(20).end_at;
    expect(deliveries.filter(({ type }) => type === 'backfill.completed')).toMatchObject([
      {
        webhook_id: subscribed.id,
        data: expect.objectContaining({
          backfill_id: backfillId,
          data_interval_start: new Date(Date.parse(minute) - 180_000).toISOString(),
          data_interval_end: new Date(minute).toISOString(),
          backfill: { intervals: 3, exported: 1, unchanged: 1, failed: 1, rows: expect.any(Number) },
        }) as unknown,
      },
    ]);
  });

  it('report a held run as such; there is nothing to recover from', async () => {
    const one = await createExport();
    await webhook({ batch_export: one.id });
    const [held, completed] = await one.active();
    await createSimulatedRuns(journal, createRunRecorder(journal), one).hold(held ?? '', quickPolicies());
    expect(await one.news()).toEqual([{ type: 'run.held', run_id: held }]);
    expect(await one.receivers()).toHaveLength(1);
    await (
      await one.complete(completed)
    )();
    expect(await one.recovered()).toEqual([]);
  });

  it('go to the subscribed webhooks of the project', async () => {
    const one = await createExport();
    const other = await createExport();
    const receivers = [await webhook(), await webhook({ batch_export: one.id, events: ['run.failed'] })];
    await webhook({ events: ['batch_export.paused'] });
    await webhook({ enabled: false });
    await webhook({ batch_export: other.id });
    await webhook({}, 2);
    const [run] = await one.active();
    await one.end(run, 'Failed');
    expect((await one.receivers()).sort()).toEqual(receivers.map(({ id }) => id).sort());
    expect(await one.end(run, 'Failed')).toBe(false);
    expect(await one.news()).toEqual([{ type: 'run.failed', run_id: run }]);
    await database.pool.query('delete from exportd.webhooks');
    expect(await one.receivers()).toEqual([]);
  });

  it('report that no retry is left, but not while one follows', async () => {
    const one = await createExport();
    const [first, second, third] = await one.active();
    await one.end(first, 'FailedRetryable');
    await one.end(second, 'TimedOut');
    await one.end(third, 'Cancelled');
    expect(await one.news()).toEqual([
      { type: 'run.retries_exhausted', run_id: first },
      { type: 'run.retries_exhausted', run_id: second },
    ]);
    const withRetries = await createExport({ EXPORTD_RUN_RETRY_LIMIT: '1' });
    const [run] = await withRetries.active();
    await withRetries.end(run, 'FailedRetryable');
    expect(await withRetries.news()).toEqual([]);
  });

  it('report a recovery once, even if two runs complete at the same time', async () => {
    const one = await createExport();
    const [first, second, third, fourth] = await one.active();
    await (
      await one.complete(first)
    )();
    expect(await one.news()).toEqual([]);
    await one.end(second, 'Failed');
    const publish = [await one.complete(third), await one.complete(fourth)];
    await Promise.all(publish.map((finish) => finish()));
    const types = (await one.news()).map(({ type }) => type);
    expect(types).toEqual(['run.failed', 'batch_export.recovered']);
    const [next] = await one.active();
    await (
      await one.complete(next)
    )();
    expect(await one.news()).toHaveLength(2);
  });

  it('report the recovery of a paused export only after its unpause', async () => {
    const one = await createExport({ EXPORTD_PAUSE_AFTER_FAILURES: '2' });
    const [first, second, third, fourth] = await one.active();
    await one.end(first, 'Failed');
    await one.end(second, 'Failed');
    await one.step();
    const types = async () => (await one.news()).map(({ type }) => type);
    expect(await types()).toEqual(['run.failed', 'run.failed', 'batch_export.paused']);
    await (
      await one.complete(third)
    )();
    expect(await types()).toHaveLength(3);
    await one.command('unpause');
    await (
      await one.complete(fourth)
    )();
    expect(await types()).toEqual([
      'run.failed',
      'run.failed',
      'batch_export.paused',
      'batch_export.recovered',
    ]);
  });

  it('report recoveries of a backfill and of the schedule separately', async () => {
    const one = await createExport();
    const [first, second, third] = await one.active();
    const { backfillId, runs } = await one.backfill(3);
    expect(runs).toHaveLength(3);
    const complete = async (run: string | undefined) => (await one.complete(run))();
    await one.end(runs[0], 'Failed');
    await complete(first);
    expect(await one.recovered()).toEqual([]);
    await one.end(second, 'Failed');
    await complete(runs[1]);
    expect(await one.recovered()).toEqual([backfillId]);
    await complete(third);
    expect(await one.recovered()).toEqual([backfillId, null]);
    await complete(runs[2]);
    expect(await one.recovered()).toHaveLength(2);
  });

  it('report the recovery of a backfill when all of its failed runs were retried', async () => {
    const one = await createExport();
    const { backfillId, runs } = await one.backfill(2);
    for (const run of runs) await one.end(run, 'Failed');
    const retry = async (run: string | undefined) => {
      const { command } = await one.command('retry', { run_id: run });
      return command.outcome?.run_id;
    };
    await (
      await one.complete(await retry(runs[0]))
    )();
    expect(await one.recovered()).toEqual([]);
    const again = await retry(runs[1]);
    await one.end(again, 'Failed');
    await (
      await one.complete(await retry(again))
    )();
    const backfills = await one.recovered();
    // The failed retry was a backfill with an incident too.
    expect(backfills).toHaveLength(2);
    expect(backfills).toContain(backfillId);
  });

  it('name the manifest of a published interval, for the webhooks that subscribe to it', async () => {
    const one = await createExport();
    const [first, second] = await one.active();
    await (
      await one.complete(first)
    )();
    expect(await one.news()).toEqual([]);
    const all = await webhook({ batch_export: one.id, events: ['interval.published'] });
    await webhook({ batch_export: one.id });
    await (
      await one.complete(second)
    )();
    expect(await one.news()).toEqual([{ type: 'interval.published', run_id: second }]);
    expect(await one.receivers()).toEqual([all.id]);
    const { rows } = await database.pool.query(
      `select notification.data as message, run.data_interval_start, run.data_interval_end
       from exportd.notifications notification
       join exportd.batch_export_runs run on run.id = notification.run_id
       where notification.batch_export_id = $1`,
      [one.id],
    );
    const [{ message, data_interval_start, data_interval_end }] = rows as [
      { message: object; data_interval_start: string; data_interval_end: string },
    ];
    expect(message).toEqual({
      project_id: 1,
      batch_export_id: one.id,
      batch_export_name: expect.any(String),
      backfill_id: null,
      run_id: second,
      status: 'Completed',
      latest_error: null,
      data_interval_start,
      data_interval_end,
      backfill: null,
      incident: null,
      condition: null,
      manifest_key: 'the manifest',
      generation: 1,
      rows: 3,
      bytes: 90,
      files: 1,
    });
  });

  it('cost a completed run one statement when it has no incident and no webhook', async () => {
    const one = await createExport();
    const sent: unknown[] = [];
    await inTransaction(database.pool, (connection) =>
      notifyOfCompletion(
        {
          query: (statement: { name?: string }, values?: unknown[]) => {
            sent.push(statement.name ?? statement);
            return connection.query(statement as never, values);
          },
        } as unknown as Connection,
        {
          team_id: 1,
          batch_export_id: one.id,
          run_id: one.id,
          backfill_id: null,
          cause: one.id,
          status: 'Completed',
          latest_error: null,
          data_interval_start: minutesAgo(2),
          data_interval_end: minutesAgo(1),
          manifest: { manifest_key: 'the manifest', generation: 1, rows: 3, bytes: 90, files: 1 },
        },
      ),
    );
    expect(sent).toEqual(['completion-to-notify']);
  });

  it('are not stored for a webhook that is deleted at the same time', async () => {
    const one = await createExport();
    const deleted = await webhook({ batch_export: one.id, events: ['run.failed'] });
    const [run] = await one.active();
    const ended = await inTransaction(database.pool, async (connection) => {
      await connection.query('delete from exportd.webhooks where id = $1', [deleted.id]);
      const ending = one.end(run, 'Failed');
      await waitFor(async () => {
        const { rows } = await database.pool.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        );
        return rows.length > 0;
      }, 'the end of the run waits for the deletion');
      return { ending };
    });
    await ended.ending;
    expect(await one.news()).toEqual([{ type: 'run.failed', run_id: run }]);
    expect(await one.receivers()).toEqual([]);
  });

  it('of published intervals are dropped while a webhook has too many pending deliveries', async () => {
    const one = await createExport();
    const full = await webhook({ batch_export: one.id, events: ['interval.published', 'run.failed'] });
    await database.pool.query(
      `with waiting as (
         insert into exportd.notifications (id, type, team_id, data)
         select gen_random_uuid(), 'run.failed', 1, '{}' from generate_series(1, $2) returning id)
       insert into exportd.webhook_deliveries (notification_id, webhook_id) select id, $1 from waiting`,
      [full.id, maxPendingDeliveries],
    );
    const [first, second] = await one.active();
    await (
      await one.complete(first)
    )();
    await one.end(second, 'Failed');
    expect(await readDeliveries(database.pool, one.id)).toMatchObject([
      {
        type: 'interval.published',
        status: 'dropped',
        detail: 'The webhook already had 1,000 pending deliveries.',
      },
      { type: 'run.failed', status: 'pending', detail: null },
    ]);
    await database.pool.query('delete from exportd.webhooks where id = $1', [full.id]);
  });

  it('are dropped when the export is deleted', async () => {
    const one = await createExport();
    const webhooks = [await webhook(), await webhook({ batch_export: one.id })];
    const [run] = await one.active();
    await one.end(run, 'Failed');
    await one.command('delete');
    const dropped = (await readDeliveries(database.pool, one.id)).map(({ webhook_id, status }) => [
      webhook_id,
      status,
    ]);
    // Its own webhook stays until it has been told that the incident is over.
    expect(dropped.sort()).toEqual(webhooks.map(({ id }) => [id, 'dropped']).sort());
    await database.pool.query('delete from exportd.webhooks');
  });
});
