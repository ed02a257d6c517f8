import type { Settings } from '../config/settings.ts';
import { countStep, emptyStep, isUntouched, type PreparedRun } from '../decisions/deferred_steps.ts';
import type { RunRecorder } from '../decisions/run_recorder.ts';
import type { ReadSelection } from '../destination/config_versions.ts';
import {
  bucketInterval,
  bucketsOf,
  type Fingerprint,
  type FingerprintHash,
  rowsOfFingerprint,
} from '../domain/fingerprint.ts';
import type { SortKey } from '../domain/sort_key.ts';
import type { BarrierCheck, RowRange, Source } from '../source/source.ts';
import { describeStrayRows } from '../source/stray_rows.ts';
import type { BarrierState, UnsettledBarrier } from '../domain/barrier.ts';
import type { BackfillBarriers } from './backfill_barriers.ts';
import { noEncoder } from './export_context.ts';
import { rowRangeOf } from './run_interval.ts';
import { type SmallRun, smallRunRows } from './small_run.ts';
import { beginExport, keepsUnchanged, needsCheck } from './check_replacement.ts';

/** Dependencies of counting. */
export interface CountDependencies {
  readonly recorder: RunRecorder;
  readonly source: Source;
  readonly readSelection: ReadSelection;
  readonly settings: Pick<Settings, 'EXPORTD_PARALLEL_RANGES' | 'EXPORTD_RANGE_ROWS'>;
}

/** Dependencies of the wait for open transactions, and of counting. */
interface BarrierDependencies extends CountDependencies {
  readonly barriers: BackfillBarriers;
}

/** How many rows a run's interval has, and into how many ranges it is split. */
export interface CountedRows {
  readonly rows: number;
  readonly ranges: number;
  /** Whether to try `completeSmallRun`. */
  readonly is_small: boolean;
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
  /** Why rows may appear that the barrier cannot see; it is open then, and not settled. */
  readonly unseen?: readonly string[];
}

/** The result of one check; `counted` when the barrier is open. */
export type RunBarrierCheck = BarrierCheck & { readonly counted?: CountedRows };

/** Whether the count of a small run is left to the step that completes it. Nothing outside depends on it before that. */
interface CountOptions {
  readonly defers?: boolean;
}

/** How many blocking transactions are named in a workflow's history; the rest are only counted. */
const maxNamedBlockers = 5;

/**
 * Checks once whether an open transaction of the source may still add rows to the run's interval. When none may, it counts
 * the rows at once: most runs pass their first check, and this saves them a workflow step. The intervals of a backfill wait
 * once: what may add rows to them was open when the first of its runs was created.
 */
export async function checkRunBarrier(
  dependencies: BarrierDependencies,
  { run_id, state }: { readonly run_id: string; readonly state: BarrierState },
  signal: AbortSignal,
  options: CountOptions = {},
): Promise<RunBarrierCheck & { readonly small?: SmallRun }> {
  const { recorder, source, barriers } = dependencies;
  const found = await recorder.readActiveAmongOthers(run_id);
  const { run } = found;
  const shared = await barriers.of(run);
  // A standby that replays up to a position of one run has replayed what was open before.
  const isOpen = shared?.isOpen === true && state.phase !== 'replaying';
  const check = await source.checkBarrier(
    shared?.cutoff ?? run.spec.data_interval_end,
    isOpen ? { phase: 'open' } : state,
    signal,
  );
  if (shared && check.state.phase === 'open') shared.isOpen = true;
  const unnamed = check.blocked_by.length - maxNamedBlockers;
  const blocked_by =
    unnamed <= 0 ? check.blocked_by : [...check.blocked_by.slice(0, maxNamedBlockers), `${unnamed} more`];
  // Logged once, when the wait starts, so that the export's log explains why the run makes no progress.
  if (state.phase === 'settling' && blocked_by.length > 0)
    await recorder.log(
      run,
      run_id,
      'INFO',
      `Waiting for open transactions of the source to end: ${blocked_by.join('; ')}.`,
    );
  if (check.state.phase !== 'open') return { ...check, blocked_by };
  const { unseen = [] } = check;
  const settled = unseen.length === 0;
  const input = { run_id, settled, blocked_by, unseen };
  const counted = await countExistingRun(dependencies, input, found, signal, options);
  return { ...check, blocked_by, ...counted };
}

/** Loads a run and counts the rows of its interval. @throws RunEnded */
export const countRows = async (
  dependencies: CountDependencies,
  input: CountInput,
  signal: AbortSignal,
): Promise<CountedRows> => {
  const found = await dependencies.recorder.readActiveAmongOthers(input.run_id);
  return (await countExistingRun(dependencies, input, found, signal)).counted;
};

/**
 * Reads which rows a run's interval has and records that; a retry returns what was recorded. An interval without rows
 * gets a generation without files, so that only publishing remains. An interval of many rows is split into ranges, which
 * several workers, and several connections of one, can export at the same time.
 * @returns `small`: if the count is deferred, or might have been
 */
export async function countExistingRun(
  { recorder, source, readSelection, settings }: CountDependencies,
  input: CountInput,
  { run: loaded, others, deferred }: PreparedRun,
  signal: AbortSignal,
  { defers = false }: CountOptions = {},
): Promise<{ readonly counted: CountedRows; readonly small?: SmallRun }> {
  const { run_id, settled, barrier } = input;
  const settling = { settled, ...(barrier && { barrier }) };
  const recorded = loaded.records_total_count;
  const range = rowRangeOf(loaded.spec, await readSelection(loaded.spec));
  const fingerprint = loaded.source_fingerprint ?? (await source.fingerprint(range, signal));
  // Rows are counted separately only where their selection depends on persons.
  const rows =
    recorded ??
    (fingerprint.all_events ? await source.countRows(range, signal) : rowsOfFingerprint(fingerprint));
  // Files inherited from a failed run keep its ranges.
  const canSplit = recorded === null && loaded.generation === 0;
  const size = rangeSizeOf(rows, settings);
  const split_keys = canSplit ? await splitInterval(source, range, fingerprint, size, signal) : [];
  const empty =
    rows === 0 && !(others.mayReplace && keepsUnchanged(loaded))
      ? { fingerprint, ...settling, encoder: noEncoder }
      : null;
  const facts = { records_total_count: rows, fingerprint, ...settling, split_keys };
  const canComplete = !others.mayReplace && isUntouched(loaded) && rows <= smallRunRows;
  const count =
    defers && canComplete && settled && recorded === null
      ? empty
        ? emptyStep(empty, others)
        : countStep(facts)
      : null;
  const run = count
    ? await deferred.add(run_id, loaded, count)
    : empty
      ? await recorder.recordEmpty(run_id, empty, others)
      : await recorder.recordCount(run_id, facts);
  if (recorded === null && !settled)
    await recorder.log(
      run,
      run_id,
      'WARNING',
      input.unseen
        ? `The open transactions of the source do not show all rows that may still appear: ${input.unseen.join('; ')}. Later comparisons find those that are missing from this run.`
        : `Stopped waiting for open transactions of the source (${input.blocked_by.join('; ')}). Rows that they commit later are missing from this run. When they have ended, the interval is checked again.`,
    );
  // Once for an export: the index that finds them costs a page of the source.
  if (recorded === null && others.isFirstOfExport)
    for (const { message } of (await source.strayRows(range, signal)).flatMap(describeStrayRows))
      await recorder.log(run, run_id, 'WARNING', `The source has ${message}`);
  const check_replacement =
    others.mayReplace && (await needsCheck({ recorder, readSelection }, run_id, run, fingerprint));
  // Reserved here, so that ranges which start at the same time write the same generation.
  const isReserved = !(check_replacement && keepsUnchanged(run));
  const begun = isReserved ? await beginExport(recorder, run_id, run) : run;
  const is_small = rows === 0 || canComplete;
  const counted = { rows, ranges: run.ranges.length, is_small, check_replacement };
  return {
    counted,
    ...(defers && is_small && !check_replacement && { small: { run: begun, others, deferred, count } }),
  };
}

/**
 * Records the count of a small run that could not be completed, unless a step had it that was recorded: the steps that follow,
 * in any process, rely on it.
 */
export async function recordDeferredCount(
  { recorder }: Pick<CountDependencies, 'recorder'>,
  runId: string,
  { count }: SmallRun,
): Promise<void> {
  if (!count) return;
  const { records_total_count: rows } = await recorder.readActive(runId);
  if (rows === null) await recorder.recordDeferred(runId, [count]);
}

/** How an interval is split. */
interface RangeSize {
  /** About how many rows a range has. */
  readonly rows: number;
  /** Whether a bucket with more rows is split as well, for which its rows are read. */
  readonly splitsBuckets: boolean;
}

/** An interval with more rows than 64 ranges of the usual size gets larger ranges. */
const maxRanges = 64;
/** A range costs an activity, steps of the journal and a request to S3. Not measured; see README.md. */
const minParallelRows = 250_000;
/** Parallel ranges may be larger than equal ones, so that the last one is not a small rest. */
const parallelTolerance = 1.1;

/** How an interval of so many rows is split; null if it is not. */
export function rangeSizeOf(
  rows: number,
  settings: Pick<Settings, 'EXPORTD_PARALLEL_RANGES' | 'EXPORTD_RANGE_ROWS'>,
): RangeSize | null {
  const { EXPORTD_PARALLEL_RANGES: maxParallel, EXPORTD_RANGE_ROWS: rangeRows } = settings;
  if (rows > rangeRows)
    return { rows: Math.max(rangeRows, Math.ceil(rows / maxRanges)), splitsBuckets: true };
  const ranges = Math.min(maxParallel, Math.floor(rows / minParallelRows));
  if (ranges < 2) return null;
  return { rows: Math.ceil((rows / ranges) * parallelTolerance), splitsBuckets: false };
}

/** A cut before a bucket, or several inside one that has more rows than a range. */
type PlannedCut =
  | { readonly before: number }
  | {
      readonly inside: number;
      /** After how many rows each. */
      readonly every: number;
    };

/** A bucket with up to this many times the rows of a range becomes one, because cutting it means to read its rows. */
const bucketTolerance = 1.5;

/** Plans where to cut an interval into ranges of about `every` rows, mostly between the buckets of its fingerprint. */
export function planCuts(
  fingerprint: Pick<Fingerprint, 'encoded_buckets'>,
  { rows: every, splitsBuckets }: RangeSize,
): PlannedCut[] {
  const cuts: PlannedCut[] = [];
  let rowsInRange = 0;
  for (const { index, rows } of bucketsOf(fingerprint)) {
    if (rowsInRange > 0 && rowsInRange + rows > every) {
      cuts.push({ before: index });
      rowsInRange = 0;
    }
    const isSplit = splitsBuckets && rowsInRange === 0 && rows > bucketTolerance * every;
    const subranges = isSplit ? Math.ceil(rows / every) : 1;
    if (subranges > 1) cuts.push({ inside: index, every: Math.ceil(rows / subranges) });
    // The last subrange ends with its bucket, so that the next range starts with the next bucket.
    rowsInRange += rows;
  }
  return cuts;
}

/**
 * Keys that split a range into key ranges of about a size. Only a bucket with more rows than a range is read for
 * it, so a large interval is split at once.
 */
export async function splitInterval(
  source: Pick<Source, 'splitKeys'>,
  range: RowRange,
  fingerprint: Fingerprint,
  size: RangeSize | null,
  signal: AbortSignal,
): Promise<readonly SortKey[]> {
  if (!size) return [];
  // The buckets do not have the selected rows.
  if (fingerprint.all_events) return size.splitsBuckets ? source.splitKeys(range, size.rows, signal) : [];
  const keys: SortKey[] = [];
  for (const cut of planCuts(fingerprint, size)) {
    if ('before' in cut) {
      const { start } = bucketInterval(range.interval, fingerprint, cut.before);
      keys.push(firstKeyAt(start, fingerprint.hash));
    } else {
      const interval = bucketInterval(range.interval, fingerprint, cut.inside);
      keys.push(...(await source.splitKeys({ ...range, interval }, cut.every, signal)));
    }
  }
  return keys;
}

/** A key that precedes the rows of an instant, except one with the lowest id there is. */
const firstKeyAt = (time: string, hash: FingerprintHash): SortKey => ({
  inserted_at: new Date(time).toISOString().replace('Z', '000Z'),
  id: lowestIds[hash],
});

const lowestIds: Readonly<Record<FingerprintHash, string>> = {
  'uuid_hash_extended/0': '00000000-0000-0000-0000-000000000000',
  'hashtextextended/0': '',
};
