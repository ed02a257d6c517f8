import { readDueRechecks, recordRecheck } from '../decisions/due_rechecks.ts';
import { rowRangeOf } from '../export/row_range.ts';
import type { MaintenanceDependencies } from './maintenance_dependencies.ts';

/** The result of a re-check, which is stored in the workflow's history. */
export interface RecheckOutcome {
  readonly counted: number;
  /** Intervals with late rows, which are exported again. */
  readonly differing: number;
  /** Whether more intervals are due. */
  readonly has_more: boolean;
}

/** Intervals in one call. */
const batchSize = 100;
/** After this time a call starts no further interval, so that other exports get their turn. */
const turnMs = 45_000;

/** Compares the rows of an export's current manifests with fresh counts of the source, one interval after another. */
export async function recheckRuns(
  { journal, policies, source, readSelection, schedules, logger }: MaintenanceDependencies,
  batchExportId: string,
  signal: AbortSignal,
): Promise<RecheckOutcome> {
  const due = await readDueRechecks(journal.pool, policies.maintenance, batchExportId, batchSize);
  const turnEnd = performance.now() + turnMs;
  let counted = 0;
  let differing = 0;
  for (const recheck of due) {
    if (performance.now() > turnEnd) break;
    const range = rowRangeOf(recheck, await readSelection(recheck));
    const outcome = await recordRecheck(journal, recheck, await source.countRows(range, signal));
    counted += 1;
    if (outcome.result !== 'exported again') continue;
    differing += 1;
    const command = { batch_export_id: batchExportId, name: 'retry', id: outcome.command_id };
    await schedules.signal(command).catch((error: unknown) => {
      // The command is stored, so the schedule finds it, at the latest when the reconciler signals it.
      logger.warn(
        { err: error, batch_export_id: batchExportId },
        'A schedule could not be signalled that rows arrived late. The reconciler will signal it.',
      );
    });
  }
  return { counted, differing, has_more: counted < due.length || due.length === batchSize };
}
