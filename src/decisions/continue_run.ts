import { backfillDecider } from '../domain/backfill.ts';
import { batchExportDecider } from '../domain/batch_export.ts';
import { runDecider, RunEnded } from '../domain/run.ts';
import { decideContinuation } from '../domain/run_continuation.ts';
import { deterministicId, type Journal } from '../journal/journal.ts';
import type { LockedBackfill } from './advance_backfill.ts';

/** The run that goes on, how many rows its interval was counted to have, and in how many ranges they are exported. */
export interface ContinuedRun {
  readonly run_id: string;
  readonly rows: number;
  readonly ranges: number;
}

/**
 * Closes a run as ContinuedAsNew and opens the one that goes on at its cursor, both or neither. Whoever waits for the
 * closed run waits for the new one from here on. A repeat answers the same and changes nothing.
 * @throws RunEnded when the run ended in another way.
 */
export async function continueRun(journal: Journal, runId: string): Promise<ContinuedRun> {
  const nextRunId = deterministicId('continue', runId);
  return journal.transaction(async (transaction) => {
    const { connection } = transaction;
    const found = await connection.query<{ batch_export_id: string; cursor: string | null }>(
      'select batch_export_id, cursor from exportd.batch_export_runs where id = $1',
      [runId],
    );
    const [row] = found.rows;
    if (!row) throw new RunEnded('Absent');
    // Backfills begin to wait for a run under the export's lock, so none can do so between here and the handover.
    await transaction.lock(batchExportDecider, row.batch_export_id);
    const waiting = await connection.query<{ backfill_id: string }>(
      'select backfill_id from exportd.backfill_runs where run_id = $1 and status is null order by backfill_id',
      [runId],
    );
    const backfills: LockedBackfill[] = [];
    for (const { backfill_id } of waiting.rows)
      backfills.push(await transaction.lock(backfillDecider, backfill_id));
    const run = await transaction.lock(runDecider, runId);
    const state = run.state();
    if (state.status === 'Absent') throw new RunEnded('Absent');
    const continued = {
      run_id: nextRunId,
      rows: state.records_total_count ?? 0,
      ranges: state.ranges.length,
    };
    if (state.status === 'ContinuedAsNew') return continued;
    const ids = { run_id: runId, next_run_id: nextRunId, cursor: row.cursor ?? '' };
    const { closed, created } = decideContinuation(state, ids);
    // In this order, since an interval has one active run at a time.
    await run.append('ended', [closed]);
    await (await transaction.lock(runDecider, nextRunId)).append('opened', [created]);
    for (const backfill of backfills)
      await backfill.append(`continued:${runId}`, [
        { type: 'BackfillRunContinued', data: { run_id: runId, next_run_id: nextRunId } },
      ]);
    return continued;
  });
}
