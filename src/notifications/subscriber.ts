import type { ExistingBackfill } from '../domain/backfill.ts';
import { withBase } from '../domain/run.ts';
import { backfillOf, type ExistingRun, filesOf } from '../domain/run_state.ts';
import type { Connection } from '../journal/database.ts';
import type { AppendedEvent, Subscriber } from '../journal/journal.ts';
import type { Logger } from '../telemetry/logger.ts';
import { notifyOfHold } from './condition_changes.ts';
import { deleteWebhooksOfDeleted, notifyOfCompletion, openIncident } from './incidents.ts';
import { type CompletedBackfill, withoutRun } from './notification.ts';
import { storeNotification } from './store_notification.ts';
import type { AutoPause } from '../domain/auto_pause.ts';

/** Starts every delivery of an export that has not been attempted. */
type StartDeliveries = (batchExportId: string) => Promise<void>;

/**
 * Stores what events of the journal notify, in their transaction, and starts the deliveries after the commit. What decides
 * about runs, exports and backfills does not know that there are webhooks. A failed start is only logged: the reconciler
 * starts what is missing.
 */
export const createNotificationSubscriber =
  (startDeliveries: StartDeliveries, logger: Logger): Subscriber =>
  async (connection, event) => {
    const batchExportId = await reportEvent(connection, event);
    if (batchExportId === null) return undefined;
    return () =>
      void startDeliveries(batchExportId).catch((error: unknown) => {
        logger.warn(
          { err: error, batch_export_id: batchExportId },
          'Notifications could not be started; the reconciler will start them.',
        );
      });
  };

/** @returns the export with a new delivery; null if there is none */
async function reportEvent(connection: Connection, event: AppendedEvent): Promise<string | null> {
  switch (event.stream_type) {
    case 'run':
      // Its creation is no event that is notified.
      if (event.before.status === 'Absent') return null;
      return (await reportRun(connection, event, event.before)) ? event.before.spec.batch_export_id : null;
    case 'batch_export':
      return reportBatchExport(connection, event);
    case 'backfill':
      return event.before.status === 'Absent' ? null : reportBackfill(connection, event, event.before);
  }
}

async function reportBackfill(
  connection: Connection,
  { stored }: Extract<AppendedEvent, { stream_type: 'backfill' }>,
  { spec }: ExistingBackfill,
): Promise<string | null> {
  const owner = { ...spec, backfill_id: stored.stream_id };
  if (stored.type === 'BackfillPaused') return reportPause(connection, owner, stored.data);
  // A retry is one run, and a repair is asked for by no person.
  const isAskedFor = spec.plan.kind === 'range' || spec.plan.kind === 'failed';
  if (stored.type !== 'BackfillCompleted' || !isAskedFor) return null;
  const { batch_export_id, team_id, start_at, end_at } = spec;
  const { rows } = await connection.query<CompletedBackfill>(
    `select total_runs as intervals, completed_runs - unchanged_runs as exported, unchanged_runs as unchanged,
       total_runs - completed_runs as failed, records_completed as rows
     from exportd.backfills where id = $1`,
    [stored.stream_id],
  );
  const [backfill] = rows;
  if (!backfill) throw new RangeError(`The row of the backfill ${stored.stream_id} is missing.`);
  const hasDelivery = await storeNotification(connection, {
    ...withoutRun,
    type: 'backfill.completed',
    cause: stored.stream_id,
    team_id,
    batch_export_id,
    backfill_id: stored.stream_id,
    status: 'Completed',
    data_interval_start: start_at,
    data_interval_end: end_at,
    incident: null,
    backfill,
  });
  return hasDelivery ? batch_export_id : null;
}

/** @returns whether there is a delivery */
async function reportRun(
  connection: Connection,
  { stored }: Extract<AppendedEvent, { stream_type: 'run' }>,
  run: ExistingRun,
): Promise<boolean> {
  const { team_id, batch_export_id, data_interval_start, data_interval_end } = run.spec;
  const notification = {
    cause: stored.stream_id,
    team_id,
    batch_export_id,
    backfill_id: backfillOf(run.spec),
    run_id: stored.stream_id,
    status: run.status,
    latest_error: null,
    data_interval_start,
    data_interval_end,
  };
  switch (stored.type) {
    case 'RunCompleted': {
      const { rows, bytes, count: files } = filesOf(withBase(run));
      const { manifest_key } = stored.data;
      return notifyOfCompletion(connection, {
        ...notification,
        status: 'Completed',
        manifest: { manifest_key, generation: run.generation, rows, bytes, files },
      });
    }
    case 'RunUnchanged':
      return notifyOfCompletion(connection, { ...notification, status: 'Completed', manifest: null });
    case 'RunFailed': {
      const { latest_error, held } = stored.data;
      const ended = { ...notification, status: 'Failed', latest_error };
      // A held run opens no incident: nothing is broken, and no run recovers from it.
      return held
        ? notifyOfHold(connection, ended)
        : openIncident(connection, { ...ended, type: 'run.failed' });
    }
    case 'RunFailedRetryable':
    case 'RunTimedOut': {
      const { latest_error, retry_delay_seconds } = stored.data;
      if (retry_delay_seconds !== null) return false;
      const status = stored.type === 'RunTimedOut' ? 'TimedOut' : 'FailedRetryable';
      return openIncident(connection, {
        ...notification,
        status,
        latest_error,
        type: 'run.retries_exhausted',
      });
    }
    case 'RunKeyTaken':
      // A prefix with the objects of another export has thousands of them.
      return storeNotification(connection, {
        ...notification,
        type: 'run.key_taken',
        incident: null,
        cause: dayOf(stored.recorded_at),
      });
    case 'IntervalCompared':
      if (stored.data.outcome !== 'source_expired') return false;
      return storeNotification(connection, {
        ...notification,
        type: 'interval.expired',
        incident: null,
        cause: dayOf(stored.recorded_at),
        backfill_id: null,
      });
    default:
      return false;
  }
}

/** The cause of a notification that an export has at most once a day, in UTC. */
const dayOf = (recordedAt: string): string =>
  new Date(recordedAt).toISOString().slice(0, 'YYYY-MM-DD'.length);

async function reportBatchExport(
  connection: Connection,
  { stored, before }: Extract<AppendedEvent, { stream_type: 'batch_export' }>,
): Promise<string | null> {
  switch (stored.type) {
    case 'BatchExportPaused': {
      if (before.status !== 'live') return null;
      const owner = { team_id: before.team_id, batch_export_id: stored.stream_id, backfill_id: null };
      return reportPause(connection, owner, stored.data);
    }
    case 'BatchExportDeleted':
      await dropNotifications(connection, stored.stream_id);
      return null;
    default:
      return null;
  }
}

/** The schedule or the backfill that was paused. */
interface PausedOwner {
  readonly team_id: number;
  readonly batch_export_id: string;
  readonly backfill_id: string | null;
}

/** Reports a pause after repeated failures, as an incident of the latest failed run. A pause that a person asked for is not reported. */
async function reportPause(
  connection: Connection,
  { team_id, batch_export_id, backfill_id }: PausedOwner,
  { run_ids }: Partial<AutoPause>,
): Promise<string | null> {
  if (run_ids === undefined) return null;
  const { rows } = await connection.query<{
    readonly run_id: string;
    readonly latest_error: string | null;
    readonly data_interval_start: string;
    readonly data_interval_end: string;
  }>(
    `select id as run_id, latest_error, data_interval_start, data_interval_end
     from exportd.batch_export_runs where id = $1`,
    [run_ids[0]],
  );
  const [latest] = rows;
  if (!latest) throw new RangeError(`The run ${run_ids[0] ?? ''} that led to a pause is missing.`);
  const hasDelivery = await openIncident(connection, {
    ...latest,
    team_id,
    batch_export_id,
    backfill_id,
    type: backfill_id === null ? 'batch_export.paused' : 'backfill.paused',
    cause: `failures:${run_ids.join(',')}`,
    status: 'Paused',
  });
  return hasDelivery ? batch_export_id : null;
}

/**
 * Drops the pending deliveries of a deleted export, and deletes its dedicated webhooks, unless they have to be told that an
 * incident is over.
 */
async function dropNotifications(connection: Connection, batchExportId: string): Promise<void> {
  await connection.query(
    `update exportd.webhook_deliveries
     set status = 'dropped', detail = 'The batch export was deleted.', ended_at = clock_timestamp()
     where batch_export_id = $1 and status = 'pending'`,
    [batchExportId],
  );
  await connection.query(`${deleteWebhooksOfDeleted} and export.id = $1`, [batchExportId]);
}
