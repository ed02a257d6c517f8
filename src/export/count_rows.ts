import type { Settings } from '../config/settings.ts';
import type { RunRecorder } from '../decisions/run_recorder.ts';
import type { ExistingRun } from '../domain/run.ts';
import type { SelectionOf } from '../destination/row_selections.ts';
import type { Source } from '../source/source.ts';
import { noEncoder } from './finish_export.ts';
import { rowRangeOf } from './row_range.ts';

/** What counting works with. */
export interface CountDependencies {
  readonly recorder: RunRecorder;
  readonly source: Source;
  readonly selectionOf: SelectionOf;
  readonly settings: Pick<Settings, 'EXPORTD_RANGE_ROWS'>;
}

/** An interval is cut into no more ranges than this; each is larger then. */
const rangesMaximum = 64;

/** How many rows a run's interval has, and in how many ranges they are exported. */
export interface CountedRows {
  readonly rows: number;
  readonly ranges: number;
  /** Whether to try `publishEmpty`. */
  readonly publish_empty: boolean;
}

/** What to count, and how the wait for open transactions ended. */
export interface CountInput {
  readonly run_id: string;
  /** False when the wait timed out; `blocked_by` describes the transactions that were still open. */
  readonly settled: boolean;
  readonly blocked_by: readonly string[];
}

/** Loads a run and counts its rows. @throws RunEnded */
export const countRows = async (
  dependencies: CountDependencies,
  input: CountInput,
  signal: AbortSignal,
): Promise<CountedRows> =>
  countExistingRun(dependencies, input, await dependencies.recorder.readActive(input.run_id), signal);

/**
 * Counts the rows of a run's interval and records the number. An interval without rows is finished with that: it gets
 * a generation without files, so that publishing is all that is left to do. A very large one is cut into ranges, which
 * several workers can export at the same time. A repeat finds what was recorded.
 */
export async function countExistingRun(
  { recorder, source, selectionOf, settings }: CountDependencies,
  input: CountInput,
  loaded: ExistingRun,
  signal: AbortSignal,
): Promise<CountedRows> {
  const { run_id, settled } = input;
  const recorded = loaded.records_total_count;
  const range = rowRangeOf(loaded.spec, await selectionOf(loaded.spec));
  const rows = recorded ?? (await source.countRows(range, signal));
  // What a failed run left behind was cut then.
  const cuttable = recorded === null && loaded.generation === 0 && rows > settings.EXPORTD_RANGE_ROWS;
  const every = Math.max(settings.EXPORTD_RANGE_ROWS, Math.ceil(rows / rangesMaximum));
  const cuts = cuttable ? await source.splitKeys(range, every, signal) : [];
  const run =
    rows === 0
      ? await recorder.recordEmpty(run_id, { settled, encoder: noEncoder })
      : await recorder.recordCount(run_id, { records_total_count: rows, settled, split_keys: cuts });
  if (recorded === null && !settled)
    await recorder.log(
      run,
      run_id,
      'WARNING',
      `Gave up waiting for open transactions of the source (${input.blocked_by.join(', ')}); rows that they commit later are missing from this run.`,
    );
  const counted = { rows, ranges: run.ranges.length, publish_empty: rows === 0 };
  // Ranges that begin at the same time find the generation reserved.
  if (counted.ranges > 1 && !run.finished && run.generation === 0) await recorder.reserveGeneration(run_id);
  return counted;
}
