import type { BackfillEvent, BackfillState } from '../domain/backfill.ts';
import type { BatchExportEvent, BatchExportState } from '../domain/batch_export.ts';
import type { Connection } from '../journal/database.ts';
import { type JournalTransaction, type LockedStream, writeLogLine } from '../journal/journal.ts';
import { type AutoPause, autoPauseAfter, type TerminalRun } from '../domain/auto_pause.ts';

interface EndedRun extends TerminalRun {
  readonly latest_error: string | null;
}

/** Consecutive failures that cause a pause, and the latest of them. */
interface FailureStreak {
  readonly pause: AutoPause;
  /** The cause under which the pause is appended. */
  readonly cause: string;
  readonly latest: EndedRun;
}

/**
 * Pauses an export whose last `limit` scheduled runs all Failed. The caller holds the export's lock. Failures are
 * recorded under the same lock, so no run is created after the failure that reaches the limit.
 * @returns whether it paused the export.
 */
export async function pauseFailingExport(
  { connection }: JournalTransaction,
  limit: number,
  batchExport: LockedStream<BatchExportState, BatchExportEvent>,
): Promise<boolean> {
  const state = batchExport.state();
  if (state.status !== 'live' || state.paused) return false;
  const owner = { team_id: state.team_id, batch_export_id: batchExport.id, backfill_id: null };
  const streak = await findFailureStreak(connection, limit, owner);
  if (!streak) return false;
  await batchExport.append(streak.cause, [
    { type: 'BatchExportPaused', data: { last_paused_at: null, ...streak.pause } },
  ]);
  await logPause(connection, owner, streak, {
    paused: `the batch export: its last ${streak.pause.run_ids.length} scheduled runs`,
    remedy: 'unpause the batch export with `{"backfill": true}` to fill the missed intervals',
  });
  return true;
}

/**
 * Pauses a backfill whose last `limit` runs all Failed, if it has intervals left. The caller holds the locks of the
 * export and of the backfill.
 */
export async function pauseFailingBackfill(
  { connection }: JournalTransaction,
  limit: number,
  backfill: LockedStream<BackfillState, BackfillEvent>,
): Promise<void> {
  const state = backfill.state();
  if (state.status !== 'Running' || state.remaining === null) return;
  const { batch_export_id, team_id, start_at, end_at } = state.spec;
  const owner = { team_id, batch_export_id, backfill_id: backfill.id };
  const streak = await findFailureStreak(connection, limit, owner);
  if (!streak) return;
  await backfill.append(streak.cause, [{ type: 'BackfillPaused', data: streak.pause }]);
  await logPause(connection, owner, streak, {
    paused: `backfill ${backfill.id} of ${start_at} to ${end_at}: its last ${streak.pause.run_ids.length} runs`,
    remedy: 'unpause the backfill to continue with its next interval',
  });
}

/** Reports a pause in the export's log. */
async function logPause(
  connection: Connection,
  { team_id, batch_export_id }: { readonly team_id: number; readonly batch_export_id: string },
  { latest }: FailureStreak,
  { paused, remedy }: { readonly paused: string; readonly remedy: string },
): Promise<void> {
  await writeLogLine(connection, {
    team_id,
    batch_export_id,
    run_id: null,
    level: 'ERROR',
    message:
      `Paused ${paused} Failed. Latest error: ${latest.latest_error ?? 'unknown'} ` +
      `Fix the cause, ${remedy}, then retry the failed runs.`,
  });
}

/**
 * SQL: the runs of export $1 that decide about a pause, the latest first.
 * @param owner a condition: of its schedule, or of a backfill
 */
export const latestEnds = (owner: string): string => `exportd.batch_export_runs
     where batch_export_id = $1 and ${owner} and status in ('Completed', 'Failed') and not held
     order by finished_at desc, position desc`;

/**
 * Finds the consecutive failures since the last unpause, if there are enough to pause the schedule or backfill. Held runs
 * do not count: nothing is broken, and later intervals are not affected.
 */
async function findFailureStreak(
  connection: Connection,
  limit: number,
  of: { readonly batch_export_id: string; readonly backfill_id: string | null },
): Promise<FailureStreak | undefined> {
  if (limit === 0) return undefined;
  const { batch_export_id, backfill_id } = of;
  const { rows } = await connection.query<EndedRun & { finished_at: string }>(
    `select id as run_id, status, latest_error, finished_at
     from ${latestEnds(backfill_id === null ? 'backfill_id is null' : 'backfill_id = $3')} limit $2`,
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
  if (unpaused.rows.length > 0) return undefined;
  return { pause, cause: `failures:${pause.run_ids.join(',')}`, latest };
}
