import type { Destination } from '../destination/destination.ts';
import type { ExistingRun } from '../domain/run.ts';
import type { RowSelection } from '../source/row_selection.ts';
import type { ExportDependencies } from './export_dependencies.ts';
import { exportRows } from './export_rows.ts';
import { summarizeParts } from './file_summary.ts';
import type { ResumedFile } from './file_writer.ts';
import { nextKey, rangeAt, type ExportAttempt } from './range_attempt.ts';
import { formatInterval } from './row_range.ts';
import { resumeRange } from './resume.ts';

/** What an attempt at a range is made with, the destination opened. */
export interface RangeWork {
  readonly dependencies: ExportDependencies;
  readonly runId: string;
  readonly destination: Destination;
  readonly selection: RowSelection;
  readonly progress: { rows: number };
  readonly signal: AbortSignal;
}

/**
 * One attempt at exporting the rows of one range of a run's interval. It goes on where the attempt before it stopped,
 * as far as the destination has what the journal says.
 * @returns the run, and whether every row of the range is in its files.
 */
export async function exportRange(
  work: RangeWork,
  position: number,
  loaded: ExistingRun,
): Promise<{ readonly run: ExistingRun; readonly done: boolean }> {
  const { dependencies, runId, destination } = work;
  const { recorder, source, encoders } = dependencies;
  if (loaded.ranges[position]?.finished) return { run: loaded, done: true };
  const begun = await recorder.startExport(runId, position);
  const columns = source.columns(begun.spec.model, work.selection);
  const encoder = encoders.fileEncoder(destination.encoding, columns);
  const attempt = { ...work, position, encoder };
  const { run, resumed } = await resumeRange(attempt, begun);
  await logBeginning(attempt, run, resumed);
  return exportRows(attempt, run, resumed);
}

async function logBeginning(
  attempt: ExportAttempt,
  run: ExistingRun,
  resumed: ResumedFile | null,
): Promise<void> {
  const { dependencies, runId, destination, position, progress } = attempt;
  const { files } = rangeAt(attempt, run);
  const key = resumed?.upload.key ?? nextKey(attempt, run);
  progress.rows = [...files, summarizeParts(key, resumed?.parts ?? [])].reduce(
    (sum, { rows }) => sum + rows,
    0,
  );
  const part = run.ranges.length > 1 ? `part ${position + 1} of ${run.ranges.length} of ` : '';
  const message =
    progress.rows > 0
      ? `Going on with ${part}${formatInterval(run)} after ${progress.rows} records, with ${destination.nameOf(key)}.`
      : `Exporting ${part}${formatInterval(run)} to ${destination.nameOf(key)}.`;
  await dependencies.recorder.log(run, runId, 'INFO', message);
}
