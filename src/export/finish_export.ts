import { haveSameRows, rowsOfFingerprint, type Fingerprint } from '../domain/fingerprint.ts';
import { exportedFingerprint, filesOf, type ExistingRun } from '../domain/run.ts';
import type { RangeContext } from './range_context.ts';
import { writeRejectedFile } from './rejected_file.ts';
import { formatInterval, rowRangeOf } from './row_range.ts';

/** How often a run exports its interval again because of late rows. After that comparisons find them. */
const maxLateGenerations = 2;

/** Recorded as the encoder of an interval without rows, which has no file. */
export const noEncoder = 'none';

/**
 * Finishes the export of an interval whose ranges are in files: writes the file of rejected rows and compares the exported
 * rows with those that the source has now. If they differ, the interval is exported again under the next generation, and
 * the returned run is not finished.
 */
export async function finishExport(context: RangeContext, run: ExistingRun): Promise<ExistingRun> {
  const { dependencies, runId, selection, signal } = context;
  const { recorder, source } = dependencies;
  // Resuming one of them may have started a new generation.
  if (run.ranges.some(({ finished }) => !finished)) return run;
  const { rejected } = filesOf(run);
  const counted = rejected > 0 ? await writeRejectedFile(context, run) : run;
  if (counted.generation !== run.generation) return counted;
  const now = await source.fingerprint(rowRangeOf(run.spec, selection), signal);
  const exported = exportedFingerprint(counted);
  const expected = now.all_events ? counted.read_since : exported;
  // Persons are mutable: one that changed meanwhile has moved to a later interval, which is no difference.
  if (run.spec.model === 'events' && !(expected && haveSameRows(expected, now))) {
    const again = run.late_generations < maxLateGenerations;
    await recorder.log(
      run,
      runId,
      'WARNING',
      `${describeDifference(expected, now, formatInterval(run))}: rows arrived late or were deleted. ${again ? 'Exporting the interval again.' : 'A later comparison checks them again.'}`,
    );
    if (again) return recorder.reserveForLateRows(runId, run.generation, now);
  }
  return recorder.finishExport(runId, run.generation, {
    // How many are selected changes with their persons, so the rows that were read are reported.
    source_rows: rowsOfFingerprint(now.all_events ? exported : now),
    fingerprint: now,
    encoder: run.encoder ?? noEncoder,
  });
}

function describeDifference(expected: Fingerprint | null, now: Fingerprint, interval: string): string {
  const [before, after] = [expected ? rowsOfFingerprint(expected) : 0, rowsOfFingerprint(now)];
  if (now.all_events)
    return `Project has ${after} events in the source for ${interval}, ${before} when reading started`;
  return before === after
    ? `Source has ${after} rows for ${interval}, and not all of them are the ${before} that were exported`
    : `Source has ${after} rows for ${interval}, ${before} were exported`;
}
