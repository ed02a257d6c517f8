import {
  chargeComparisonBudget,
  type ComparisonBatch,
  type ComparisonGroup,
  type ComparisonResult,
  delayComparisons,
  type DoneComparison,
  findComparison,
  type IntervalComparison,
  isChanged,
  lastComparison,
  readDueBatch,
  recordComparison,
  recordUnchanged,
} from '../decisions/comparisons.ts';
import { readDecision } from '../decisions/interval_decisions.ts';
import { compareFingerprints, type Comparison, rowsToCompare } from '../domain/comparison.ts';
import { expectedRows } from '../domain/difference.ts';
import { type Fingerprint, haveSameRows, rowsOfFingerprint } from '../domain/fingerprint.ts';
import { keptRows } from '../domain/kept_rows.ts';
import { runDecider } from '../domain/run.ts';
import { type ExistingRun, exportedFingerprint } from '../domain/run_state.ts';
import { intervalOf } from '../export/run_interval.ts';
import { createSourceRowReader } from '../export/exported_keys.ts';
import { readState } from '../journal/journal.ts';
import type { MaintenanceDependencies } from './maintenance_dependencies.ts';
import { findDifferingKeys, findLatePersons, maxMergedRows } from './differing_keys.ts';
import { startBackfill } from './start_backfill.ts';

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

/** A comparison that was made. */
interface RowsCompared {
  /** Null if the rows are not comparable. */
  readonly comparison: Comparison | null;
  /** Whether late rows among more deleted ones would have been found. */
  readonly keys_compared: boolean;
  /** Whether all persons are in files; see `DoneComparison`. */
  readonly is_complete: boolean;
}

const notComparable: RowsCompared = { comparison: null, keys_compared: false, is_complete: false };

/** A comparison that was made and recorded now. */
interface IntervalCompared extends RowsCompared {
  readonly result: ComparisonResult['result'];
}

/**
 * Compares the interval of a run's manifest now, whether it is due or not, and requests a retry if rows arrived late.
 * Keys are compared even if an earlier comparison has examined the same rows, because it may have failed to read them.
 * @returns undefined if the run's manifest is not current
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
  const compared = await compareRows(dependencies, { interval, source }, signal);
  const { comparison, is_complete } = compared;
  const done = { interval, comparison, source, at: interval.at, is_complete };
  if (isChanged(done)) return { result: await recordChange(dependencies, done), ...compared };
  await recordUnchanged(journal.pool, policies.maintenance.comparisons, [done]);
  return { result: 'unchanged', ...compared };
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
    const { comparison, is_complete } = isExamined
      ? { comparison: lastComparison(interval), is_complete: false }
      : await compareRows(dependencies, { interval, source }, signal);
    const done = { interval, comparison, source, at, is_complete };
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
export async function readSource(
  { source, readSelection }: Pick<MaintenanceDependencies, 'source' | 'readSelection'>,
  intervals: readonly IntervalComparison[],
  signal: AbortSignal,
): Promise<readonly Fingerprint[]> {
  const [first] = intervals;
  if (!first) return [];
  return source.fingerprints(
    { model: first.model, team_id: first.team_id, selection: await readSelection(first) },
    intervals.map(({ data_interval_start: start, data_interval_end: end }) => ({ start, end })),
    signal,
  );
}

/**
 * Compares the manifest of an interval with what the source has: by fingerprint, and by key where rows of events are missing,
 * or persons have changed since the last comparison.
 */
async function compareRows(
  dependencies: MaintenanceDependencies,
  { interval, source }: Pick<DoneComparison, 'interval' | 'source'>,
  signal: AbortSignal,
): Promise<RowsCompared> {
  const run = await readState(dependencies.journal, runDecider, interval.run_id);
  if (run.status === 'Absent') return notComparable;
  if (interval.model === 'persons') return comparePersons(dependencies, { interval, source }, run, signal);
  const files = rowsToCompare(run, source);
  if (!files) return notComparable;
  const kept_rows = await findKeptRows(dependencies, { run, interval }, { files, source }, signal);
  const published = expectedRows(files, kept_rows);
  const comparison = { ...compareFingerprints(published, source), bucket_rows: rowsOfFingerprint(files) };
  const keys =
    comparison.outcome === 'rows_missing' && interval.bucket_rows <= maxMergedRows
      ? await findDifferingKeys(
          dependencies,
          { run, interval: { ...interval, kept_rows } },
          { published, now: source },
          { signal },
        )
      : null;
  if (!keys) return { ...notComparable, comparison };
  const outcome = keys.added_rows > 0 ? 'both' : 'rows_missing';
  return { comparison: { ...comparison, ...keys, outcome }, keys_compared: true, is_complete: false };
}

/** Compares the manifest of an interval of persons with the states that the source has left. */
async function comparePersons(
  dependencies: MaintenanceDependencies,
  { interval, source }: Pick<DoneComparison, 'interval' | 'source'>,
  run: ExistingRun,
  signal: AbortSignal,
): Promise<RowsCompared> {
  const published = exportedFingerprint(run);
  const late = await findLatePersons(dependencies, { run, interval }, { published, now: source }, signal);
  const { added_rows, is_exact } = late;
  if (added_rows === 0 && !is_exact) return notComparable;
  const numbers = { bucket_rows: rowsOfFingerprint(published), source_rows: rowsOfFingerprint(source) };
  const outcome = added_rows > 0 ? 'rows_added' : 'equal';
  return {
    comparison: { outcome, ...numbers, added_rows, missing_rows: 0 },
    keys_compared: is_exact,
    is_complete: added_rows === 0,
  };
}

/** The rows that a person has kept and the source still lacks. */
async function findKeptRows(
  { journal, source, readSelection }: Pick<MaintenanceDependencies, 'journal' | 'source' | 'readSelection'>,
  { run, interval }: { readonly run: ExistingRun; readonly interval: IntervalComparison },
  rows: { readonly files: Fingerprint; readonly source: Fingerprint },
  signal: AbortSignal,
): Promise<Fingerprint | null> {
  const { batch_export_id, team_id, model, kept_rows: kept } = interval;
  if (!kept) return null;
  const dataInterval = intervalOf(run.spec);
  const range = { model, team_id, selection: await readSelection(interval), interval: dataInterval };
  return keptRows(kept, rows, {
    hashes: async () => {
      // Keys of larger intervals are not read, as when they are merged.
      if (interval.bucket_rows > maxMergedRows) return null;
      const decision = await readDecision(journal.pool, { batch_export_id, ...dataInterval });
      // Another decision may have followed.
      return decision?.missing && haveSameRows(decision.missing, kept) ? decision.missing_hashes : null;
    },
    sourceRows: createSourceRowReader({ source, signal }, range, rows.files),
  });
}

/** Records a new outcome and starts the repair if the interval is exported again. */
async function recordChange(
  dependencies: MaintenanceDependencies,
  done: Parameters<typeof recordComparison>[2],
): Promise<ComparisonResult['result']> {
  const { journal, policies } = dependencies;
  const recorded = await recordComparison(journal, policies.maintenance.comparisons, done);
  if (recorded.result === 'exported again') await startBackfill(dependencies, recorded.repair_id);
  return recorded.result;
}
