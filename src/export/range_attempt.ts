import type { Destination } from '../destination/destination.ts';
import type { FileEncoder } from '../encoding/encoder.ts';
import { attemptOf, rangeOf, type ExportRange, type ExistingRun, type RangeAttempt } from '../domain/run.ts';
import type { RowSelection } from '../source/row_selection.ts';
import type { ExportDependencies } from './export_dependencies.ts';

/** One attempt at the export of a range, with what it works with. */
export interface ExportAttempt {
  readonly dependencies: ExportDependencies;
  readonly runId: string;
  /** Position of the range among those of the run. */
  readonly position: number;
  readonly destination: Destination;
  readonly encoder: FileEncoder;
  readonly selection: RowSelection;
  /** Told with every heartbeat. */
  readonly progress: { rows: number };
  readonly signal: AbortSignal;
}

/** Names the attempt to the journal, as the run stands. */
export const currentAttempt = ({ position }: ExportAttempt, run: ExistingRun): RangeAttempt =>
  attemptOf(run, position);

/** The range as the run stands. */
export const rangeAt = ({ position }: ExportAttempt, run: ExistingRun): ExportRange => rangeOf(run, position);

/** Whether the names of the range's files carry numbers: an only file's name is plain. */
export const isNumbered = ({ destination }: ExportAttempt, run: ExistingRun): boolean =>
  destination.maxFileBytes !== null || run.ranges.length > 1;

/** The key of the range's next file. */
export function nextKey(attempt: ExportAttempt, run: ExistingRun): string {
  const { destination, encoder, position } = attempt;
  const { next_file } = rangeAt(attempt, run);
  const place = {
    generation: run.generation,
    range: run.ranges.length > 1 ? position : null,
    // A second file of an export without a largest size: the first one had as many parts as an upload can have.
    file: isNumbered(attempt, run) || next_file > 0 ? next_file : null,
  };
  return destination.fileKey(run.spec, place, encoder.extension);
}
