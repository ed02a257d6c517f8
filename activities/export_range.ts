import type { Destination } from '../src/destination/destination.ts';
import type { OpenedRun } from '../src/domain/run.ts';
import type { RowSelection } from '../src/source/row_selection.ts';
import type { ExportDependencies } from './export_dependencies.ts';
import { exportRows } from './export_rows.ts';
import { fileOf } from './file_parts.ts';
import type { ResumedFile } from './file_writer.ts';
import { nextKey, rangeAt, type ExportAttempt } from './range_attempt.ts';
import { intervalOf } from './run_range.ts';
import { takeUp } from './take_up.ts';

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
  loaded: OpenedRun,
): Promise<{ readonly run: OpenedRun; readonly done: boolean }> {
  const { dependencies, runId, destination } = work;
  const { runSteps, source, encoders } = dependencies;
  if (loaded.ranges[position]?.finished) return { run: loaded, done: true };
  const begun = await runSteps.beginExport(runId, position);
  const columns = source.columns(begun.subject.model, work.selection);
  const encoder = encoders.fileEncoder(destination.encoding, columns);
  const attempt = { ...work, position, encoder };
  const { run, resumed } = await takeUp(attempt, begun);
  await logBeginning(attempt, run, resumed);
  return exportRows(attempt, run, resumed);
}

async function logBeginning(
  attempt: ExportAttempt,
  run: OpenedRun,
  resumed: ResumedFile | null,
): Promise<void> {
  const { dependencies, runId, destination, position, progress } = attempt;
  const { files } = rangeAt(attempt, run);
  const key = resumed?.upload.key ?? nextKey(attempt, run);
  progress.rows = [...files, fileOf(key, resumed?.parts ?? [])].reduce((sum, { rows }) => sum + rows, 0);
  const part = run.ranges.length > 1 ? `part ${position + 1} of ${run.ranges.length} of ` : '';
  const message =
    progress.rows > 0
      ? `Going on with ${part}${intervalOf(run)} after ${progress.rows} records, with ${destination.nameOf(key)}.`
      : `Exporting ${part}${intervalOf(run)} to ${destination.nameOf(key)}.`;
  await dependencies.runSteps.log(run, runId, 'INFO', message);
}
