import { filesOf, type ExistingRun } from '../domain/run.ts';
import type { RangeWork } from './export_range.ts';
import { writeRejectedFile } from './rejected_file.ts';
import { formatInterval, rowRangeOf } from './row_range.ts';

/** How often a run exports its interval again because rows arrived late; after that the re-checks of later hours follow. */
const lateGenerationsMaximum = 2;

/** The encoder that an interval without rows names: it has no file. */
export const noEncoder = 'none';

/**
 * Ends the export of an interval whose ranges are all in files: writes the file of the rejected rows, and compares what
 * was exported with a fresh count. Other rows than before mean that all of them are exported again, under the next
 * generation: then the answer is a run that is not finished.
 */
export async function finishExport(work: RangeWork, run: ExistingRun): Promise<ExistingRun> {
  const { dependencies, runId, selection, signal } = work;
  const { recorder, source } = dependencies;
  // An attempt at one of them may have had to begin the generation anew.
  if (run.ranges.some(({ finished }) => !finished)) return run;
  const files = filesOf(run);
  const rejected = files.reduce((sum, file) => sum + file.rejected, 0);
  const counted = rejected > 0 ? await writeRejectedFile(work, run) : run;
  if (counted.generation !== run.generation) return counted;
  const source_rows = await source.countRows(rowRangeOf(run.spec, selection), signal);
  const exported = files.reduce((sum, { rows }) => sum + rows, 0) + (counted.rejected_file?.rows ?? 0);
  // Persons are mutable: one that changed since then belongs to a later interval, which is no difference.
  if (exported !== source_rows && run.spec.model === 'events') {
    const again = run.late_generations < lateGenerationsMaximum;
    await recorder.log(
      run,
      runId,
      'WARNING',
      `The source now has ${source_rows} records in ${formatInterval(run)}, but ${exported} were exported: rows arrived late or were deleted. ${again ? 'The interval is exported again.' : 'They are looked at again later.'}`,
    );
    if (again) return recorder.reserveForLateRows(runId, run.generation);
  }
  return recorder.finishExport(runId, run.generation, {
    source_rows,
    encoder: run.encoder ?? noEncoder,
  });
}
