import { CancellationScope } from '@temporalio/workflow';
import type { createExportActivities } from '../activities/export.ts';

export type ExportActivities = ReturnType<typeof createExportActivities>;

/**
 * Exports the ranges of an interval concurrently, on any free workers, until a new count matches the exported rows.
 * The first failure cancels the other ranges and is thrown once all of them have stopped.
 * @param atOnce how many of them at the same time: enough for several workers, and no queue ahead of other runs
 * @returns false when a range has sent this execution's share of parts and has rows left
 */
export async function exportRanges(
  data: Pick<ExportActivities, 'exportRange' | 'finishExport'>,
  run_id: string,
  ranges: number,
  atOnce: number,
): Promise<boolean> {
  for (;;) {
    if (!(await exportEach(data, run_id, ranges, atOnce))) return false;
    const { finished } = await data.finishExport({ run_id });
    if (finished) return true;
  }
}

async function exportEach(
  data: Pick<ExportActivities, 'exportRange'>,
  run_id: string,
  ranges: number,
  atOnce: number,
): Promise<boolean> {
  const waiting = Array.from({ length: ranges }, (_, range) => range);
  const unfinished: number[] = [];
  const failures: unknown[] = [];
  const scope = new CancellationScope();
  /** Exports one range after another. Starts none after a range failed or was left unfinished. */
  const exportNextRanges = async (): Promise<void> => {
    while (unfinished.length === 0 && failures.length === 0) {
      const range = waiting.shift();
      if (range === undefined) return;
      const { finished } = await data.exportRange({ run_id, range });
      if (!finished) unfinished.push(range);
    }
  };
  await scope.run(() =>
    Promise.all(
      Array.from({ length: Math.min(atOnce, ranges) }, () =>
        exportNextRanges().catch((error: unknown) => {
          failures.push(error);
          scope.cancel();
        }),
      ),
    ),
  );
  if (failures.length > 0) throw failures[0];
  return unfinished.length === 0;
}
