import type { FileIdentity } from '../destination/destination.ts';
import type { FileEncoder } from '../encoding/encoder.ts';
import { attemptOf, rangeOf, type ExportRange, type ExistingRun, type RangeAttempt } from '../domain/run.ts';
import type { RangeContext } from './range_context.ts';

/** One attempt at exporting a range: the context of the range, and its encoder. */
export interface ExportAttempt extends RangeContext {
  /** Index of the range in the run. */
  readonly position: number;
  readonly encoder: FileEncoder;
}

/** The generation, range and attempt that the run has now: the fencing token of every step. */
export const currentAttempt = ({ position }: ExportAttempt, run: ExistingRun): RangeAttempt =>
  attemptOf(run, position);

/** The range as the run has it now. */
export const rangeAt = ({ position }: ExportAttempt, run: ExistingRun): ExportRange => rangeOf(run, position);

/** Whether the file names of the range have numbers; the only file of an interval has none. */
export const isNumbered = ({ destination }: ExportAttempt, run: ExistingRun): boolean =>
  destination.maxFileBytes !== null || run.ranges.length > 1;

/** The start of an upload token, as keys contain it. */
export const markOf = (upload_token: string): string => upload_token.slice(0, 8);

/** The range's next file. */
export function nextIdentity(attempt: ExportAttempt, run: ExistingRun): Omit<FileIdentity, 'mark'> {
  const { position } = attempt;
  const { next_file } = rangeAt(attempt, run);
  return {
    generation: run.generation,
    range: run.ranges.length > 1 ? position : null,
    // Without a maximum file size there is a second file only if the first has the maximum number of parts.
    file: isNumbered(attempt, run) || next_file > 0 ? next_file : null,
  };
}

/** The key of the range's next file. */
export function nextKey(attempt: ExportAttempt, run: ExistingRun, mark: string | null): string {
  const { destination, encoder } = attempt;
  return destination.fileKey(run.spec, { ...nextIdentity(attempt, run), mark }, encoder.extension);
}
