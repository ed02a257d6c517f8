import type { ExistingRun } from '../domain/run.ts';
import { exportRows } from './export_rows.ts';
import type { ResumedFile } from './file_writer.ts';
import { nextKey, rangeAt, type ExportAttempt } from './range_attempt.ts';
import type { RangeContext } from './range_context.ts';
import { formatInterval } from './row_range.ts';
import { resumeRange } from './resume.ts';

/**
 * One attempt at exporting one range of a run's interval. It resumes where the previous attempt stopped, as far as the
 * destination holds what the journal recorded.
 * @returns the run, and whether every row of the range is in its files
 */
export async function exportRange(
  context: RangeContext,
  position: number,
  existing: ExistingRun,
): Promise<{ readonly run: ExistingRun; readonly done: boolean }> {
  const { dependencies, runId, destination } = context;
  const { recorder, source, encoders } = dependencies;
  if (existing.ranges[position]?.finished) return { run: existing, done: true };
  const started = await recorder.startExport(runId, position);
  const columns = source.columns(started.spec.model, context.selection);
  const encoder = encoders.fileEncoder(destination.encoding, columns);
  const attempt = { ...context, position, encoder };
  const { run, resumed } = await resumeRange(attempt, started);
  await logStart(attempt, run, resumed);
  return exportRows(attempt, run, resumed);
}

async function logStart(
  attempt: ExportAttempt,
  run: ExistingRun,
  resumed: ResumedFile | null,
): Promise<void> {
  const { dependencies, runId, destination, position, progress } = attempt;
  const { files } = rangeAt(attempt, run);
  // The mark of a new key is not known yet.
  const key = resumed?.upload.key ?? nextKey(attempt, run, destination.marksKeys ? '…' : null);
  progress.rows = [files, ...(resumed?.parts ?? [])].reduce((sum, { rows }) => sum + rows, 0);
  const range = run.ranges.length > 1 ? `range ${position + 1} of ${run.ranges.length} of ` : '';
  const message =
    progress.rows > 0
      ? `Resuming ${range}${formatInterval(run)} after ${progress.rows} rows, in ${destination.nameOf(key)}.`
      : `Exporting ${range}${formatInterval(run)} to ${destination.nameOf(key)}.`;
  await dependencies.recorder.log(run, runId, 'INFO', message);
}
