import { nextBackfillInterval, type BackfillEvent, type BackfillState } from '../domain/backfill.ts';
import type { BatchExportEvent, BatchExportState } from '../domain/batch_export.ts';
import { autoPauseAfter, type TerminalRun, type AutoPause } from '../domain/auto_pause.ts';
import type { Connection } from '../journal/database.ts';
import type { JournalTransaction, LockedStream } from '../journal/journal.ts';
import { writeLogLine } from '../journal/log_lines.ts';
import { openIncident } from './notifications.ts';

interface EndedRun extends TerminalRun {
  readonly latest_error: string | null;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
}

/** Failures in a row that pause something, with the latest of them. */
interface Streak {
  readonly pause: AutoPause;
  readonly latest: EndedRun;
}

const causeOf = ({ run_ids }: AutoPause): string => `failures:${run_ids.join(',')}`;

/**
 * Pauses an export whose last scheduled runs all Failed. The caller holds its lock, and so does whoever records a
 * failure, so that nothing is opened after the last one that it takes.
 * @returns whether it did.
 */
export async function pauseFailingExport(
  transaction: JournalTransaction,
  limit: number,
  batchExport: LockedStream<BatchExportState, BatchExportEvent>,
): Promise<boolean> {
  const { connection } = transaction;
  const state = batchExport.state();
  if (state.status !== 'live' || state.paused) return false;
  const streak = await findStreak(connection, limit, { batch_export_id: batchExport.id, backfill_id: null });
  if (!streak) return false;
  const { pause, latest } = streak;
  const cause = causeOf(pause);
  await batchExport.append(cause, [{ type: 'BatchExportPaused', data: { last_paused_at: null, ...pause } }]);
  const subject = { team_id: state.team_id, batch_export_id: batchExport.id, run_id: null };
  await writeLogLine(connection, {
    ...subject,
    level: 'ERROR',
    message:
      `The batch export has paused itself: its last ${pause.run_ids.length} scheduled runs Failed. ` +
      `Latest error: ${latest.latest_error ?? 'unknown'} No scheduled run is started any more. Cure the cause, then ` +
      'unpause the batch export, with `backfill: true` to make up for the intervals that end meanwhile, and retry ' +
      'the runs that Failed.',
  });
  await openIncident(connection, {
    ...newsOf(latest),
    team_id: state.team_id,
    batch_export_id: batchExport.id,
    backfill_id: null,
    type: 'batch_export.paused',
    cause,
  });
  return true;
}

/**
 * Pauses a backfill whose last runs all Failed, while it has intervals left to open. The caller holds the locks of its
 * export and of itself.
 * @returns whether it did.
 */
export async function pauseFailingBackfill(
  transaction: JournalTransaction,
  limit: number,
  backfill: LockedStream<BackfillState, BackfillEvent>,
): Promise<boolean> {
  const { connection } = transaction;
  const state = backfill.state();
  if (state.status === 'Absent' || nextBackfillInterval(state) === undefined) return false;
  const { batch_export_id, team_id, start_at, end_at } = state.spec;
  const streak = await findStreak(connection, limit, { batch_export_id, backfill_id: backfill.id });
  if (!streak) return false;
  const { pause, latest } = streak;
  const cause = causeOf(pause);
  await backfill.append(cause, [{ type: 'BackfillPaused', data: pause }]);
  await writeLogLine(connection, {
    team_id,
    batch_export_id,
    run_id: null,
    level: 'ERROR',
    message:
      `The backfill ${backfill.id} of ${start_at} to ${end_at} has paused itself: its last ${pause.run_ids.length} ` +
      `runs Failed. Latest error: ${latest.latest_error ?? 'unknown'} Cure the cause, then unpause the backfill to go ` +
      'on with its next interval, and retry the runs that Failed.',
  });
  await openIncident(connection, {
    ...newsOf(latest),
    team_id,
    batch_export_id,
    backfill_id: backfill.id,
    type: 'backfill.paused',
    cause,
  });
  return true;
}

const newsOf = (latest: EndedRun) => ({
  run_id: latest.run_id,
  status: 'Paused',
  latest_error: latest.latest_error,
  data_interval_start: latest.data_interval_start,
  data_interval_end: latest.data_interval_end,
});

/** The runs of a schedule or a backfill that Failed in a row since it was unpaused, when they are enough to pause it. */
async function findStreak(
  connection: Connection,
  limit: number,
  of: { readonly batch_export_id: string; readonly backfill_id: string | null },
): Promise<Streak | undefined> {
  if (limit === 0) return undefined;
  const { batch_export_id, backfill_id } = of;
  const { rows } = await connection.query<EndedRun & { finished_at: string }>(
    `select id as run_id, status, latest_error, data_interval_start, data_interval_end, finished_at
     from exportd.batch_export_runs
     where batch_export_id = $1 and ${backfill_id === null ? 'backfill_id is null' : 'backfill_id = $3'}
       and status in ('Completed', 'Failed')
     order by finished_at desc, position desc limit $2`,
    [batch_export_id, limit, ...(backfill_id === null ? [] : [backfill_id])],
  );
  const pause = autoPauseAfter(rows, limit);
  const [latest] = rows;
  const oldest = rows.at(-1);
  if (!pause || !latest || !oldest) return undefined;
  const unpaused = await connection.query(
    `select from (
       select recorded_at from exportd.journal_events
       where stream_type = $1 and stream_id = $2 and event_type = $3 order by stream_version desc limit 1) latest
     where date_trunc('milliseconds', recorded_at) > $4`,
    [
      ...(backfill_id === null
        ? ['batch_export', batch_export_id, 'BatchExportUnpaused']
        : ['backfill', backfill_id, 'BackfillUnpaused']),
      oldest.finished_at,
    ],
  );
  return unpaused.rows.length > 0 ? undefined : { pause, latest };
}
