import { backfillDecider } from '../domain/backfill.ts';
import { batchExportDecider } from '../domain/batch_export.ts';
import { decideContinuation, runDecider, RunEnded } from '../domain/run.ts';
import { deterministicId, type Journal } from '../journal/journal.ts';
import type { LockedBackfill } from './advance_backfill.ts';

/** The run that continues, the row count of its interval, and the number of ranges. */
export interface ContinuedRun {
  readonly run_id: string;
  readonly rows: number;
  readonly ranges: number;
}

/**
 * Ends a run as ContinuedAsNew and creates the run that resumes at its cursor, in one transaction. Backfills that wait
 * for the ended run now wait for the new one. Idempotent.
 * @throws RunEnded when the run has another terminal status.
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
    // Backfills start to wait for a run under the export's lock, so none can be added before this transaction commits.
    await transaction.lock(batchExportDecider, row.batch_export_id);
    const waitingBackfills = await connection.query<{ backfill_id: string }>(
      'select backfill_id from exportd.backfill_runs where run_id = $1 and status is null order by backfill_id',
      [runId],
    );
    const backfills: LockedBackfill[] = [];
    for (const { backfill_id } of waitingBackfills.rows)
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
    const { closed: closedEvent, created: createdEvent } = decideContinuation(state, ids);
    // In this order, because an interval has at most one active run.
    await run.append('ended', [closedEvent]);
    await (await transaction.lock(runDecider, nextRunId)).append('created', [createdEvent]);
    for (const backfill of backfills)
      await backfill.append(`continued:${runId}`, [
        { type: 'BackfillRunContinued', data: { run_id: runId, next_run_id: nextRunId } },
      ]);
    return continued;
  });
}
