import type { Settings } from '../config/settings.ts';
import type { RunRecorder } from '../decisions/run_recorder/index.ts';
import type { ExistingRun } from '../domain/run.ts';
import type { ReadSelection } from '../destination/row_selections.ts';
import type { RowRange, Source, UnsettledBarrier } from '../source/source.ts';
import { rowsOfFingerprint, type Fingerprint } from '../domain/fingerprint.ts';
import { noEncoder } from './finish_export.ts';
import { needsCheck } from './replacement/check_replacement.ts';
import { rowRangeOf } from './row_range.ts';
import { rangeSizeOf, splitInterval } from './split_interval.ts';

/** Dependencies of counting. */
export interface CountDependencies {
  readonly recorder: RunRecorder;
  readonly source: Source;
  readonly readSelection: ReadSelection;
  readonly settings: Pick<Settings, 'EXPORTD_PARALLEL_RANGES' | 'EXPORTD_RANGE_ROWS'>;
}

/** How many rows a run's interval has, and into how many ranges it is split. */
export interface CountedRows {
  readonly rows: number;
  readonly ranges: number;
  /** Whether to try `publishEmpty`. */
  readonly publish_empty: boolean;
  /** Whether the rows have to be compared with those of the manifest that the run replaces before anything is sent. */
  readonly check_replacement: boolean;
}

/** What to count, and how the wait for open transactions ended. */
export interface CountInput {
  readonly run_id: string;
  /** False when the wait timed out; `blocked_by` describes the transactions that were still open. */
  readonly settled: boolean;
  readonly blocked_by: readonly string[];
  /** The state of the barrier when the wait timed out. */
  readonly barrier?: UnsettledBarrier;
}

/** Loads a run and counts the rows of its interval. @throws RunEnded */
export const countRows = async (
  dependencies: CountDependencies,
  input: CountInput,
  signal: AbortSignal,
): Promise<CountedRows> =>
  countExistingRun(dependencies, input, await dependencies.recorder.readActive(input.run_id), signal);

/**
 * Reads which rows a run's interval has and records that; a retry returns what was recorded. An interval without rows
 * gets a generation without files, so that only publishing remains. An interval of many rows is split into ranges, which
 * several workers, and several connections of one, can export at the same time.
 */
export async function countExistingRun(
  { recorder, source, readSelection, settings }: CountDependencies,
  input: CountInput,
  loaded: ExistingRun,
  signal: AbortSignal,
): Promise<CountedRows> {
  const { run_id, settled, barrier } = input;
  const settling = { settled, ...(barrier && { barrier }) };
  const recorded = loaded.records_total_count;
  const range = rowRangeOf(loaded.spec, await readSelection(loaded.spec));
  const fingerprint = loaded.source_fingerprint ?? (await source.fingerprint(range, signal));
  const rows = recorded ?? (await countSelectedRows(source, range, fingerprint, signal));
  // Files inherited from a failed run keep its ranges.
  const canSplit = recorded === null && loaded.generation === 0;
  const size = rangeSizeOf(rows, settings);
  const split_keys = canSplit ? await splitInterval(source, range, fingerprint, size, signal) : [];
  const run =
    rows === 0
      ? await recorder.recordEmpty(run_id, { fingerprint, ...settling, encoder: noEncoder })
      : await recorder.recordCount(run_id, {
          records_total_count: rows,
          fingerprint,
          ...settling,
          split_keys,
        });
  if (recorded === null && !settled)
    await recorder.log(
      run,
      run_id,
      'WARNING',
      `Stopped waiting for open transactions of the source (${input.blocked_by.join('; ')}). Rows that they commit later are missing from this run. When they have ended, the interval is checked again.`,
    );
  const counted = {
    rows,
    ranges: run.ranges.length,
    publish_empty: rows === 0,
    check_replacement: await needsCheck({ recorder, readSelection }, run_id, run, fingerprint),
  };
  // Reserved here, so that ranges which start at the same time write the same generation.
  if (counted.ranges > 1 && !run.finished && run.generation === 0) await recorder.reserveGeneration(run_id);
  return counted;
}

/** The number of selected rows. Only where it depends on persons do they have to be counted separately. */
const countSelectedRows = async (
  source: Source,
  range: RowRange,
  fingerprint: Fingerprint,
  signal: AbortSignal,
): Promise<number> =>
  fingerprint.all_events ? source.countRows(range, signal) : rowsOfFingerprint(fingerprint);
