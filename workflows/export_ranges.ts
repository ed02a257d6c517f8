import { CancellationScope } from '@temporalio/workflow';
import type { createExportActivities } from '../activities/export.ts';
import { rangesAtOnce } from './policies.ts';

export type ExportActivities = ReturnType<typeof createExportActivities>;

/**
 * Exports the ranges of an interval side by side, on whichever workers are free, until a fresh count agrees with them.
 * The first failure cancels the others and is thrown when all have let go.
 * @returns false when one of them sent the parts of one execution and has rows left.
 */
export async function exportRanges(
  data: Pick<ExportActivities, 'exportRange' | 'finishExport'>,
  run_id: string,
  ranges: number,
): Promise<boolean> {
  for (;;) {
    if (!(await exportEach(data, run_id, ranges))) return false;
    const { finished } = await data.finishExport({ run_id });
    if (finished) return true;
  }
}

async function exportEach(
  data: Pick<ExportActivities, 'exportRange'>,
  run_id: string,
  ranges: number,
): Promise<boolean> {
  const waiting = Array.from({ length: ranges }, (_, range) => range);
  const handedOver: number[] = [];
  const failures: unknown[] = [];
  const scope = new CancellationScope();
  /** Takes one range after another. Once one handed over or failed, no further range begins. */
  const takeRanges = async (): Promise<void> => {
    while (handedOver.length === 0 && failures.length === 0) {
      const range = waiting.shift();
      if (range === undefined) return;
      const { finished } = await data.exportRange({ run_id, range });
      if (!finished) handedOver.push(range);
    }
  };
  await scope.run(() =>
    Promise.all(
      Array.from({ length: Math.min(rangesAtOnce, ranges) }, () =>
        takeRanges().catch((error: unknown) => {
          failures.push(error);
          scope.cancel();
        }),
      ),
    ),
  );
  if (failures.length > 0) throw failures[0];
  return handedOver.length === 0;
}
