import { filesOf, type ExistingRun } from '../domain/run.ts';
import type { RangeContext } from './range_context.ts';
import { writeRejectedFile } from './rejected_file.ts';
import { formatInterval, rowRangeOf } from './row_range.ts';

/** How often a run exports its interval again because of late rows. After that the re-checks take over. */
const maxLateGenerations = 2;

/** Recorded as the encoder of an interval without rows, which has no file. */
export const noEncoder = 'none';

/**
 * Finishes the export of an interval whose ranges are in files: writes the file of rejected rows and compares the exported
 * rows with a fresh count. If they differ, the interval is exported again under the next generation, and the returned run
 * is not finished.
 */
export async function finishExport(context: RangeContext, run: ExistingRun): Promise<ExistingRun> {
  const { dependencies, runId, selection, signal } = context;
  const { recorder, source } = dependencies;
  // Resuming one of them may have started a new generation.
  if (run.ranges.some(({ finished }) => !finished)) return run;
  const files = filesOf(run);
  const rejected = files.reduce((sum, file) => sum + file.rejected, 0);
  const counted = rejected > 0 ? await writeRejectedFile(context, run) : run;
  if (counted.generation !== run.generation) return counted;
  const source_rows = await source.countRows(rowRangeOf(run.spec, selection), signal);
  const exported = files.reduce((sum, { rows }) => sum + rows, 0) + (counted.rejected_file?.rows ?? 0);
  // Persons are mutable: one that changed meanwhile has moved to a later interval, which is no difference.
  if (exported !== source_rows && run.spec.model === 'events') {
    const again = run.late_generations < maxLateGenerations;
    await recorder.log(
      run,
      runId,
      'WARNING',
      `Source has ${source_rows} rows for ${formatInterval(run)}, ${exported} were exported: rows arrived late or were deleted. ${again ? 'Exporting the interval again.' : 'A later re-check counts them again.'}`,
    );
    if (again) return recorder.reserveForLateRows(runId, run.generation);
  }
  return recorder.finishExport(runId, run.generation, {
    source_rows,
    encoder: run.encoder ?? noEncoder,
  });
}
