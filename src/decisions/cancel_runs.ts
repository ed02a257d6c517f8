import { decideCancel, runDecider } from '../domain/run.ts';
import { isActiveStatus, mayBePublished } from '../domain/run_state.ts';
import type { JournalTransaction } from '../journal/journal.ts';
import { activeStatuses } from '../projections/runs.ts';
import { isWantedRun } from './wanted_runs.ts';

/**
 * Cancels active runs of an export. `all`: the export is deleted, so that even those that are publishing end; the clean-up
 * finds out which of their manifests are in the bucket. `unwanted`: those that neither the schedule nor a backfill wants any
 * more, except those that are publishing, which complete.
 * @returns the ids of the cancelled runs.
 */
export async function cancelRuns(
  transaction: JournalTransaction,
  batchExportId: string,
  which: 'all' | 'unwanted',
  { cause, reason }: { readonly cause: string; readonly reason: string },
): Promise<string[]> {
  const { rows } = await transaction.connection.query<{ id: string }>(
    `select id from exportd.batch_export_runs run
     where batch_export_id = $1 and status in (${activeStatuses}) ${which === 'all' ? '' : `and not ${isWantedRun}`} order by id`,
    [batchExportId],
  );
  const evenPublishing = which === 'all';
  const cancelled: string[] = [];
  for (const { id } of rows) {
    const stream = await transaction.lock(runDecider, id);
    const state = stream.state();
    if (state.status === 'Absent' || !isActiveStatus(state.status)) continue;
    if (mayBePublished(state) && !evenPublishing) continue;
    await stream.append(cause, decideCancel(state, reason, { evenPublishing }));
    cancelled.push(id);
  }
  return cancelled;
}
