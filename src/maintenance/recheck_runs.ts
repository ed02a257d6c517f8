import { readDueRechecks, recordRecheck } from '../decisions/due_rechecks.ts';
import { rowRangeOf } from '../export/row_range.ts';
import type { MaintenanceDependencies } from './maintenance_dependencies.ts';

/** What of counting again travels through a history. */
export interface RecheckOutcome {
  readonly counted: number;
  /** Intervals that are exported again, since rows came late. */
  readonly differing: number;
  /** Whether there is more to count at once. */
  readonly more: boolean;
}

/** Intervals of one call, and the time after which it begins no further one: other exports wait for their turn. */
const intervalsAtOnce = 100;
const turnMs = 45_000;

/** Compares what the current manifests of an export hold with a fresh count of the source, one interval after another. */
export async function recheckRuns(
  { journal, policies, source, selectionOf, schedules, logger }: MaintenanceDependencies,
  batchExportId: string,
  signal: AbortSignal,
): Promise<RecheckOutcome> {
  const due = await readDueRechecks(journal.pool, policies.maintenance, batchExportId, intervalsAtOnce);
  const turnEnd = performance.now() + turnMs;
  let counted = 0;
  let differing = 0;
  for (const recheck of due) {
    if (performance.now() > turnEnd) break;
    const range = rowRangeOf(recheck, await selectionOf(recheck));
    const outcome = await recordRecheck(journal, recheck, await source.countRows(range, signal));
    counted += 1;
    if (outcome.result !== 'exported again') continue;
    differing += 1;
    const command = { batch_export_id: batchExportId, name: 'retry', id: outcome.command_id };
    await schedules.signal(command).catch((error: unknown) => {
      // It is stored: the schedule finds it, at the latest when the reconciler passes by.
      logger.warn(
        { err: error, batch_export_id: batchExportId },
        'A schedule could not be told of late rows.',
      );
    });
  }
  return { counted, differing, more: counted < due.length || due.length === intervalsAtOnce };
}
