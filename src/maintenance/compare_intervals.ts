import {
  chargeComparisonBudget,
  type ComparisonBatch,
  type ComparisonGroup,
  delayComparisons,
  findComparison,
  type IntervalComparison,
  lastComparison,
  readDueBatch,
} from '../decisions/due_comparisons.ts';
import { readFiles } from '../decisions/record_files.ts';
import {
  type ComparisonResult,
  type DoneComparison,
  isChanged,
  recordComparison,
  recordUnchanged,
} from '../decisions/record_comparison.ts';
import { compareFingerprints, type Comparison, rowsToCompare } from '../domain/comparison.ts';
import type { SortKey } from '../domain/exported_files.ts';
import {
  bucketInterval,
  differingBuckets,
  type Fingerprint,
  haveSameRows,
  rowsOfFingerprint,
} from '../domain/fingerprint.ts';
import { runDecider } from '../domain/run.ts';
import type { ExistingRun } from '../domain/run_state.ts';
import { intervalOf } from '../export/export_context.ts';
import { areKeysUnreadable, KeysUnreadable, mergeKeys, readExportedKeys } from '../export/exported_keys.ts';
import { readState } from '../journal/journal.ts';
import { filesHaveKeys } from '../source/read_ranges.ts';
import type { MaintenanceDependencies } from './maintenance_dependencies.ts';

/** How many rows are only in the source, and only in the bucket. */
interface DifferingKeys {
  readonly added_rows: number;
  readonly missing_rows: number;
}

/** An interval with more rows is not merged: that takes longer than a call may. */
const maxRows = 5_000_000;

/**
 * Merges the keys of the buckets in which the source and the files of a manifest differ. A bucket with fewer rows can
 * have late ones, which its fingerprint does not show.
 * @returns null if keys cannot be read, or are too many
 */
async function findDifferingKeys(
  {
    journal,
    source,
    readSelection,
    openLocation,
  }: Pick<MaintenanceDependencies, 'journal' | 'source' | 'readSelection' | 'openLocation'>,
  { run, interval }: { readonly run: ExistingRun; readonly interval: IntervalComparison },
  { published, now }: { readonly published: Fingerprint; readonly now: Fingerprint },
  signal: AbortSignal,
): Promise<DifferingKeys | null> {
  const selection = await readSelection(interval);
  // All events of the project say nothing about the files, which have only the selected ones.
  if (now.all_events || interval.bucket_rows > maxRows || !filesHaveKeys(selection)) return null;
  const ranges = differingBuckets(published, now).map(({ index }) =>
    bucketInterval(intervalOf(run.spec), now, index),
  );
  const counts = { published: 0, source: 0 };
  async function* publishedKeys(keys: AsyncIterable<SortKey>): AsyncGenerator<SortKey> {
    for await (const key of keys) {
      counts.published += 1;
      yield key;
    }
  }
  async function* sourceKeys(): AsyncGenerator<SortKey> {
    const rows = { model: run.spec.model, team_id: interval.team_id, selection };
    for (const range of ranges) yield* source.keys({ ...rows, interval: range }, signal);
  }
  try {
    const location = await openLocation(interval);
    try {
      const files = readExportedKeys(run, await readFiles(journal.pool, interval.run_id, run), {
        location,
        ranges,
        onRow: () => undefined,
        // Its rows would pass for late ones.
        onAbsent: (key) => Promise.reject(new KeysUnreadable(`${key} no longer exists`)),
        signal,
      });
      const missing_rows = await mergeKeys(publishedKeys(files), sourceKeys(), () => {
        counts.source += 1;
      });
      return { added_rows: counts.source - (counts.published - missing_rows), missing_rows };
    } finally {
      location.close();
    }
  } catch (error) {
    if (areKeysUnreadable(error)) return null;
    throw error;
  }
}

/** The result of comparisons, which is stored in the workflow's history. */
export interface ComparisonsOutcome {
  /** Intervals compared. */
  readonly compared: number;
  /** Intervals that are exported again. */
  readonly differing: number;
  /** Whether more intervals are due, and may be compared now. */
  readonly has_more: boolean;
}

/** After this time a call starts no further statement, so that other groups get their turn. */
const turnMs = 45_000;
/** How many seconds of the budget one call uses, so that other groups get their share of it. */
const turnSeconds = 10;
/** After this many failed statements in a row the call fails: the source may be down. */
const maxFailures = 3;

/**
 * Compares due intervals of a project and selection with the source, longest overdue first: one statement for adjacent
 * intervals of all exports of the group. A statement that fails delays only its intervals.
 * @throws the error of the last statement, if several failed in a row
 */
export async function compareIntervals(
  dependencies: MaintenanceDependencies,
  group: ComparisonGroup,
  signal: AbortSignal,
): Promise<ComparisonsOutcome> {
  const { journal, policies } = dependencies;
  const policy = policies.maintenance;
  const turnEnd = performance.now() + turnMs;
  let compared = 0;
  let differing = 0;
  let rows = 0;
  let failures = 0;
  for (;;) {
    const batch = await readDueBatch(journal.pool, policy, group);
    if (!batch) return { compared, differing, has_more: false };
    const budget = { isFree: true };
    const error = await orDelay(dependencies, batch.intervals.flat(), signal, async () => {
      const results = await compareBatch(dependencies, batch, signal);
      compared += results.compared;
      differing += results.differing;
      rows += results.rows;
      budget.isFree = await chargeComparisonBudget(journal.pool, policy, results.rows);
    });
    failures = error === undefined ? 0 : failures + 1;
    if (failures === maxFailures) throw error;
    if (!budget.isFree) return { compared, differing, has_more: false };
    if (performance.now() > turnEnd || rows > turnSeconds * policy.comparisonRowsPerSecond)
      return { compared, differing, has_more: true };
  }
}

/** A comparison that was made and recorded now. */
interface IntervalCompared {
  readonly result: ComparisonResult['result'];
  /** Null if the rows are not comparable. */
  readonly comparison: Comparison | null;
  /** Whether late rows among more deleted ones would have been found. */
  readonly keys_compared: boolean;
}

/**
 * Compares the interval of a run's manifest now, whether it is due or not, and requests a retry if rows arrived late.
 * Keys are compared even if an earlier comparison has examined the same rows, because it may have failed to read them.
 * @returns undefined if the run's manifest is not current or not of events
 */
export async function compareInterval(
  dependencies: MaintenanceDependencies,
  runId: string,
  signal: AbortSignal,
): Promise<IntervalCompared | undefined> {
  const { journal, policies } = dependencies;
  const interval = await findComparison(journal.pool, runId);
  if (!interval) return undefined;
  const [source] = await readSource(dependencies, [interval], signal);
  if (!source) return undefined;
  await chargeComparisonBudget(journal.pool, policies.maintenance, costOf([source]));
  const { comparison, keys_compared } = await compareRows(dependencies, { interval, source }, signal);
  const done = { interval, comparison, source, at: interval.at };
  if (isChanged(done)) return { result: await recordChange(dependencies, done), comparison, keys_compared };
  await recordUnchanged(journal.pool, policies.maintenance.comparisons, [done]);
  return { result: 'unchanged', comparison, keys_compared };
}

async function compareBatch(
  dependencies: MaintenanceDependencies,
  { at, intervals }: ComparisonBatch,
  signal: AbortSignal,
): Promise<{ readonly compared: number; readonly differing: number; readonly rows: number }> {
  const { journal, policies } = dependencies;
  const sources = await readSource(
    dependencies,
    intervals.flatMap(([first]) => first ?? []),
    signal,
  );
  const unchanged: DoneComparison[] = [];
  let compared = 0;
  let differing = 0;
  const compareOne = async (interval: IntervalComparison, source: Fingerprint): Promise<void> => {
    // The manifest and the source are those of the last comparison.
    const isExamined = interval.examined !== null && haveSameRows(interval.examined, source);
    const comparison = isExamined
      ? lastComparison(interval)
      : (await compareRows(dependencies, { interval, source }, signal)).comparison;
    const done = { interval, comparison, source, at };
    compared += 1;
    if (!isChanged(done)) unchanged.push(done);
    else if ((await recordChange(dependencies, done)) === 'exported again') differing += 1;
  };
  for (const [position, exports] of intervals.entries())
    for (const interval of exports) {
      const source = sources[position];
      if (source) await orDelay(dependencies, [interval], signal, () => compareOne(interval, source));
    }
  await recordUnchanged(journal.pool, policies.maintenance.comparisons, unchanged);
  return { compared, differing, rows: costOf(sources) };
}

/** Delays intervals whose comparison fails. @returns the error, unless the comparison was cancelled */
async function orDelay(
  { journal, logger }: MaintenanceDependencies,
  intervals: readonly IntervalComparison[],
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<unknown> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (signal.aborted) throw error;
    await delayComparisons(journal.pool, intervals);
    logger.warn(
      { err: error, batch_export_id: intervals[0]?.batch_export_id },
      'Intervals could not be compared with the source. Trying later.',
    );
    return error;
  }
}

/** Rows of the budget for a statement without rows. */
const statementCost = 1_000;

const costOf = (sources: readonly Fingerprint[]): number =>
  statementCost + sources.reduce((sum, source) => sum + rowsOfFingerprint(source), 0);

/** What the source has of adjacent intervals. */
async function readSource(
  { source, readSelection }: MaintenanceDependencies,
  intervals: readonly IntervalComparison[],
  signal: AbortSignal,
): Promise<readonly Fingerprint[]> {
  const [first] = intervals;
  if (!first) return [];
  return source.fingerprints(
    { model: 'events', team_id: first.team_id, selection: await readSelection(first) },
    intervals.map(({ data_interval_start: start, data_interval_end: end }) => ({ start, end })),
    signal,
  );
}

/** Compares the manifest of an interval with what the source has: by fingerprint, and by key where rows are missing. */
async function compareRows(
  dependencies: MaintenanceDependencies,
  { interval, source }: Pick<DoneComparison, 'interval' | 'source'>,
  signal: AbortSignal,
): Promise<Omit<IntervalCompared, 'result'>> {
  const run = await readState(dependencies.journal, runDecider, interval.run_id);
  const published = run.status === 'Absent' ? null : rowsToCompare(run, source);
  if (run.status === 'Absent' || !published) return { comparison: null, keys_compared: false };
  const comparison = compareFingerprints(published, source);
  const keys =
    comparison.outcome === 'rows_missing'
      ? await findDifferingKeys(dependencies, { run, interval }, { published, now: source }, signal)
      : null;
  if (!keys) return { comparison, keys_compared: false };
  const outcome = keys.added_rows > 0 ? 'both' : 'rows_missing';
  return { comparison: { ...comparison, ...keys, outcome }, keys_compared: true };
}

/** Records a new outcome and signals the schedule if the interval is exported again. */
async function recordChange(
  dependencies: MaintenanceDependencies,
  done: Parameters<typeof recordComparison>[2],
): Promise<ComparisonResult['result']> {
  const { journal, policies } = dependencies;
  const recorded = await recordComparison(journal, policies.maintenance.comparisons, done);
  if (recorded.result === 'exported again')
    await signalRetry(
      dependencies,
      done.interval.batch_export_id,
      recorded.command_id,
      'that rows arrived late',
    );
  return recorded.result;
}

/**
 * Signals the stored command to export an interval again. A schedule that cannot be signalled is logged.
 * @param what completes the log line "A schedule could not be signalled …"
 */
export async function signalRetry(
  { schedules, logger }: Pick<MaintenanceDependencies, 'schedules' | 'logger'>,
  batch_export_id: string,
  id: string,
  what: string,
): Promise<void> {
  await schedules.signal({ batch_export_id, name: 'retry', id }).catch((error: unknown) => {
    // The command is stored, so the schedule finds it, at the latest when the reconciler signals it.
    logger.warn(
      { err: error, batch_export_id },
      `A schedule could not be signalled ${what}. The reconciler will signal it.`,
    );
  });
}
