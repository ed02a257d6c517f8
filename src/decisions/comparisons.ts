import { batchExportDecider, type Model } from '../domain/batch_export.ts';
import {
  areEqualComparisons,
  type Comparison,
  type ComparisonOutcome,
  type ComparisonSchedule,
  maxEarlyMs,
  nextComparisonMs,
} from '../domain/comparison.ts';
import { type Fingerprint, haveSameRows } from '../domain/fingerprint.ts';
import { runDecider } from '../domain/run.ts';
import type { ExistingRun } from '../domain/run_state.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { type Journal, type PendingWrite, readState, writeLogLine } from '../journal/journal.ts';
import { endRepairs, requestRepair } from './repairs.ts';
import { findActiveRun, hasActiveRun } from './active_runs.ts';
import { isExpiredInterval } from './expired_intervals.ts';
import { ledgerRowOf } from './interval_decisions.ts';
import type { MaintenancePolicy } from './policies.ts';

/** An exported interval, and how it last compared with the source. */
export interface IntervalComparison {
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly model: Model;
  readonly config_version: number;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  /** The run of the current manifest. */
  readonly run_id: string;
  readonly bucket_rows: number;
  readonly compared_from: string;
  readonly comparisons: number;
  readonly outcome: ComparisonOutcome | null;
  readonly source_rows: number | null;
  readonly added_rows: number | null;
  readonly missing_rows: number | null;
  /**
   * The source whose differences were examined last: exported again, held or logged. Of persons the last one of which every
   * state is in a file.
   */
  readonly examined: Fingerprint | null;
  /** Rows that the files have and the source lacks, as a person has decided; null if there are none. */
  readonly kept_rows: Fingerprint | null;
  readonly next_due_at: string | null;
}

/** Intervals of a project whose configs select the same rows of a model. They are compared together. */
export interface ComparisonGroup {
  readonly team_id: number;
  readonly selection_hash: string;
}

/** The columns of an IntervalComparison. */
const comparisonColumns = `comparison.batch_export_id, comparison.team_id, comparison.model, comparison.config_version,
  comparison.data_interval_start, comparison.data_interval_end, comparison.run_id, comparison.bucket_rows,
  comparison.compared_from, comparison.comparisons, comparison.outcome, comparison.source_rows, comparison.added_rows,
  comparison.missing_rows, comparison.examined, comparison.next_due_at,
  (select case when ledger.decision->>'decision' = 'keep' then nullif(ledger.decision->'missing', 'null') end
   from ${ledgerRowOf('comparison')}) as kept_rows`;

/** The last comparison of an interval, with numbers; null before the first. */
export function lastComparison(interval: IntervalComparison): Comparison | null {
  const { outcome, bucket_rows, source_rows, added_rows, missing_rows } = interval;
  if (outcome === null || source_rows === null || added_rows === null || missing_rows === null) return null;
  return { outcome, bucket_rows, source_rows, added_rows, missing_rows };
}

/**
 * SQL condition: an interval may be compared when its time comes. Those of paused exports wait, and of exports that were
 * changed to another model, whose runs would export that one. One with an active run waits, because that run counts too. What
 * the bucket's own rules deleted is not compared.
 */
const isComparable = `(comparison.retry_at is null or comparison.retry_at <= statement_timestamp())
  and not ${isExpiredInterval('comparison')}
  and exists (select from exportd.batch_exports export
    where export.id = comparison.batch_export_id and not export.paused and not export.deleted
      and export.model = comparison.model)
  and not ${hasActiveRun('comparison')}`;

/**
 * SQL condition: a comparison is due. $1 is the delay of the first comparison in milliseconds. PostgreSQL does not use an
 * index for `clock_timestamp()`, which changes within a statement.
 */
const isDue = `comparison.next_due_at <= statement_timestamp()
  and (comparison.comparisons > 0
    or comparison.next_due_at <= statement_timestamp() - make_interval(secs => $1::double precision / 1000))
  and ${isComparable}`;

/**
 * What starts the comparisons of a run that has completed, and ends those of the manifest that it replaces.
 * @param bucketRows rows of the manifest, with the rejected ones
 */
export function comparisonsWrite(
  runId: string,
  { spec, replacement }: Pick<ExistingRun, 'spec' | 'replacement'>,
  bucketRows: number,
): PendingWrite {
  const { batch_export_id, data_interval_start: start, data_interval_end: end } = spec;
  return {
    target: 'exportd.interval_comparisons',
    words: ['comparisons'],
    text: (first) => {
      const value = (number: number): string => `$${first + number - 1}`;
      return `insert into exportd.interval_comparisons (batch_export_id, data_interval_start, data_interval_end, run_id, team_id,
         model, config_version, selection_hash, bucket_rows, compared_from, next_due_at)
       select ${value(1)}::uuid, ${value(2)}::timestamptz, ${value(3)}::timestamptz, ${value(4)}::uuid, ${value(5)}::int, ${value(8)}, ${value(6)}::int,
         ${value(9)} || coalesce(selection_hash, ${value(1)}::uuid::text), ${value(7)}::bigint, due.at,
         due.at - case when ${value(10)}::boolean then interval '10 years' else interval '0' end
       from (select greatest(${value(3)}::timestamptz, clock_timestamp()) as at) as due
       left join exportd.destination_configs on batch_export_id = ${value(1)}::uuid and version = ${value(6)}::int
       on conflict (batch_export_id, data_interval_start, data_interval_end) do update set
         run_id = excluded.run_id, team_id = excluded.team_id, model = excluded.model,
         config_version = excluded.config_version, selection_hash = excluded.selection_hash,
         bucket_rows = excluded.bucket_rows, compared_from = excluded.compared_from, next_due_at = excluded.next_due_at,
         comparisons = 0, last_compared_at = null, outcome = null, source_rows = null, added_rows = null,
         missing_rows = null, examined = null, kept = false, early_at = null, failures = 0, retry_at = null`;
    },
    values: [
      batch_export_id,
      start,
      end,
      runId,
      spec.team_id,
      spec.config_version,
      bucketRows,
      spec.model,
      spec.model === 'events' ? '' : `${spec.model} `,
      // Late rows that the run had no room for are added by the next one, at once.
      replacement?.base?.has_more ?? false,
    ],
  };
}

/** Ends the comparisons of an export that is deleted. */
export const endComparisons = async (connection: Connection, batchExportId: string): Promise<void> => {
  await connection.query('delete from exportd.interval_comparisons where batch_export_id = $1', [
    batchExportId,
  ]);
  await endRepairs(connection, batchExportId);
};

/** Reads the groups with due comparisons, longest overdue first; none while the budget is used up. */
export async function readDueGroups(
  pool: Pool,
  { comparisons }: MaintenancePolicy,
  excluded: readonly ComparisonGroup[],
  limit: number,
): Promise<ComparisonGroup[]> {
  if (comparisons.firstMs === 0) return [];
  // Those of intervals that have expired end, so that they are not read again and again.
  await pool.query(
    `update exportd.interval_comparisons comparison set next_due_at = null, early_at = null
     where next_due_at <= statement_timestamp() and ${isExpiredInterval('comparison')}`,
  );
  const { rows } = await pool.query<ComparisonGroup>(
    `select comparison.team_id, comparison.selection_hash from exportd.interval_comparisons comparison
     where ${isDue}
       and (comparison.team_id, comparison.selection_hash) not in (select * from unnest($2::int[], $3::text[]))
       and not exists (select from exportd.comparison_budget where available_at > clock_timestamp())
     group by 1, 2 order by min(comparison.next_due_at) limit $4`,
    [
      comparisons.firstMs,
      excluded.map(({ team_id }) => team_id),
      excluded.map(({ selection_hash }) => selection_hash),
      limit,
    ],
  );
  return rows;
}

/** Intervals that one statement compares: neighbours of equal length, in order, each of one or more exports. */
export interface ComparisonBatch {
  /** The time of the database clock at which the batch was read. */
  readonly at: string;
  readonly intervals: readonly (readonly IntervalComparison[])[];
}

/** Limits of one batch, unless a single interval exceeds them. */
const batchLimits = { rows: 1_000_000, intervals: 64, comparisons: 500 };

/**
 * Reads the longest overdue interval of a group with its neighbours that are due, or nearly. Undefined if none is due.
 */
export async function readDueBatch(
  pool: Pool,
  { comparisons }: Pick<MaintenancePolicy, 'comparisons'>,
  { team_id, selection_hash }: ComparisonGroup,
): Promise<ComparisonBatch | undefined> {
  const { rows: overdue } = await pool.query<IntervalComparison>(
    `select ${comparisonColumns} from exportd.interval_comparisons comparison
     where ${isDue} and comparison.team_id = $2 and comparison.selection_hash = $3
     order by comparison.next_due_at limit 1`,
    [comparisons.firstMs, team_id, selection_hash],
  );
  const [first] = overdue;
  if (!first) return undefined;
  const { rows } = await pool.query<IntervalComparison & { at: string }>(
    `with overdue as (
       select $4::timestamptz as start, $5::timestamptz - $4::timestamptz as length)
     select ${comparisonColumns}, clock_timestamp() as at
     from exportd.interval_comparisons comparison cross join overdue
     where comparison.team_id = $2 and comparison.selection_hash = $3 and comparison.next_due_at is not null
       and comparison.data_interval_start between overdue.start - $6 * overdue.length
         and overdue.start + $6 * overdue.length
       and comparison.data_interval_end - comparison.data_interval_start = overdue.length
       and (comparison.early_at <= statement_timestamp() and ${isComparable} or ${isDue})
     order by comparison.next_due_at limit $7`,
    [
      comparisons.firstMs,
      team_id,
      selection_hash,
      first.data_interval_start,
      first.data_interval_end,
      batchLimits.intervals - 1,
      batchLimits.comparisons,
    ],
  );
  const [read] = rows;
  return read && { at: read.at, intervals: adjacentIntervals(rows, first) };
}

/** The intervals that lie next to `first` without gaps, in order, within the limits of a batch. */
function adjacentIntervals(
  rows: readonly IntervalComparison[],
  first: IntervalComparison,
): IntervalComparison[][] {
  const byStart = Map.groupBy(rows, ({ data_interval_start }) => data_interval_start);
  const byEnd = new Map(
    [...byStart.values()].map((exports) => [exports[0]?.data_interval_end ?? '', exports] as const),
  );
  const own = byStart.get(first.data_interval_start) ?? [first];
  const intervals = [own];
  let total = maxRowsOf(own);
  const add = (exports: IntervalComparison[] | undefined, at: 'push' | 'unshift'): boolean => {
    if (!exports || intervals.length === batchLimits.intervals) return false;
    total += maxRowsOf(exports);
    if (total > batchLimits.rows) return false;
    intervals[at](exports);
    return true;
  };
  while (add(byStart.get(intervals.at(-1)?.[0]?.data_interval_end ?? ''), 'push'));
  while (add(byEnd.get(intervals[0]?.[0]?.data_interval_start ?? ''), 'unshift'));
  return intervals;
}

const maxRowsOf = (exports: readonly IntervalComparison[]): number =>
  Math.max(...exports.map(({ bucket_rows }) => bucket_rows));

/** Reads the comparisons of the interval whose current manifest a run wrote; undefined if the run wrote none. */
export async function findComparison(
  pool: Pool,
  runId: string,
): Promise<(IntervalComparison & { readonly at: string }) | undefined> {
  const { rows } = await pool.query<IntervalComparison & { at: string }>(
    `select ${comparisonColumns}, clock_timestamp() as at from exportd.interval_comparisons comparison
     where run_id = $1`,
    [runId],
  );
  return rows[0];
}

/** Delays the intervals of a failed statement, longer after each failure: from one minute to an hour. */
export async function delayComparisons(pool: Pool, intervals: readonly IntervalComparison[]): Promise<void> {
  await pool.query(
    `update exportd.interval_comparisons set failures = failures + 1,
       retry_at = clock_timestamp() + least(interval '1 hour', interval '1 minute' * power(2, least(failures, 10)))
     where run_id = any($1)`,
    [intervals.map(({ run_id }) => run_id)],
  );
}

/** How many seconds of the budget comparisons may use at once after a pause. */
const burstSeconds = 60;

/** Charges rows that were read. @returns whether the budget allows to read more now */
export async function chargeComparisonBudget(
  pool: Pool,
  { comparisonRowsPerSecond }: Pick<MaintenancePolicy, 'comparisonRowsPerSecond'>,
  rows: number,
): Promise<boolean> {
  const { rows: charged } = await pool.query<{ is_free: boolean }>(
    `insert into exportd.comparison_budget as budget (available_at)
     values (clock_timestamp() - make_interval(secs => ${burstSeconds}) + make_interval(secs => $1))
     on conflict (singleton) do update set available_at = make_interval(secs => $1)
       + greatest(budget.available_at, clock_timestamp() - make_interval(secs => ${burstSeconds}))
     returning available_at <= clock_timestamp() as is_free`,
    [rows / comparisonRowsPerSecond],
  );
  return charged[0]?.is_free === true;
}

/** A comparison that was done and is not recorded yet. */
export interface DoneComparison {
  readonly interval: IntervalComparison;
  /** Null if the rows of the manifest are not comparable with those that the source has now. */
  readonly comparison: Comparison | null;
  /** What the source had. */
  readonly source: Fingerprint;
  /** The time of the database clock before the source was read. */
  readonly at: string;
  /** Whether every state of persons that the source has was found in a file. */
  readonly is_complete?: boolean;
}

/** What followed from a comparison. `not recorded` means that the state has changed. */
export type ComparisonResult =
  | { readonly result: 'unchanged' | 'changed' | 'not recorded' }
  | { readonly result: 'exported again'; readonly repair_id: string };

/** A comparison with a new outcome. */
type ChangedComparison = DoneComparison & { readonly comparison: Comparison };

/** Whether a comparison has a new outcome, or one that needs another attempt. */
export function isChanged(done: DoneComparison): done is ChangedComparison {
  const { interval, comparison, source } = done;
  if (comparison === null) return false;
  const last = lastComparison(interval);
  const isSame = last !== null && areEqualComparisons(last, comparison);
  // Persons leave an interval, so their numbers always change.
  if (comparison.outcome === 'equal') return last !== null && last.outcome !== 'equal';
  return !isSame || interval.examined === null || !haveSameRows(interval.examined, source);
}

/** Records comparisons without changes, which are not appended to the journal. */
export const recordUnchanged = (
  pool: Pool,
  schedule: ComparisonSchedule,
  done: readonly DoneComparison[],
): Promise<void> =>
  storeComparisons(
    pool,
    schedule,
    done.map((one) => ({ ...one, ...(one.is_complete && { examined: one.source }) })),
  );

/**
 * Records a comparison with a new outcome. More rows than in the manifest add the interval to the export's repair. Fewer
 * rows are only logged: rows deleted from the source stay in the bucket. Nothing is recorded if the interval has an active
 * run or the export was paused, changed to another model or deleted.
 */
export async function recordComparison(
  journal: Journal,
  schedule: ComparisonSchedule,
  done: ChangedComparison,
): Promise<ComparisonResult> {
  const { interval, comparison, source } = done;
  const { run_id, batch_export_id, data_interval_start: start, data_interval_end: end } = interval;
  const held = await findHeldSource(journal, interval);
  return journal.transaction(async (transaction): Promise<ComparisonResult> => {
    const { connection } = transaction;
    const batchExport = (await transaction.lock(batchExportDecider, batch_export_id)).state();
    const mayRetry =
      batchExport.status === 'live' && !batchExport.paused && batchExport.definition.model === interval.model;
    if (!mayRetry || (await findActiveRun(connection, batch_export_id, { start, end })) !== null)
      return { result: 'not recorded' };
    if (!(await isCurrent(connection, interval))) return { result: 'not recorded' };
    const hasLateRows = comparison.outcome === 'rows_added' || comparison.outcome === 'both';
    // A held run would be held again by the same rows of the source.
    const isHeld = held !== null && haveSameRows(held, source);
    const retries = hasLateRows && !isHeld;
    // Before the run is locked: locks are taken in one order.
    const repair_id = retries
      ? await requestRepair(transaction, batch_export_id, { ...interval, start, end })
      : null;
    const run = await transaction.lock(runDecider, run_id);
    const last = lastComparison(interval);
    if (last === null || !areEqualComparisons(last, comparison))
      await run.append(`compared:${interval.comparisons}`, [{ type: 'IntervalCompared', data: comparison }]);
    const message = messageOf(done, isHeld);
    if (
      message !== null &&
      !(comparison.outcome === 'source_expired' && (await hasExpiredToday(connection, interval)))
    )
      await writeLogLine(connection, {
        team_id: interval.team_id,
        batch_export_id,
        run_id,
        level: 'WARNING',
        message,
      });
    await storeComparisons(connection, schedule, [{ ...done, examined: retries ? null : source }]);
    return repair_id === null ? { result: 'changed' } : { result: 'exported again', repair_id };
  });
}

/** What the export's log says about a new outcome; null for nothing. */
function messageOf({ interval, comparison }: ChangedComparison, isHeld: boolean): string | null {
  const { outcome, bucket_rows, source_rows, added_rows, missing_rows } = comparison;
  const range = `${interval.data_interval_start} to ${interval.data_interval_end}`;
  const counts = `source has ${source_rows} rows for ${range}, ${bucket_rows} were exported`;
  if (interval.model === 'persons')
    return outcome === 'rows_added'
      ? `${added_rows} persons of ${range} arrived late: ${source_rows} are still in the source, ${bucket_rows} were exported. Exporting the interval again.`
      : null;
  const added = `${added_rows} late rows`;
  const missing = `${missing_rows} rows were deleted from the source`;
  switch (outcome) {
    case 'equal':
      return null;
    case 'rows_missing':
      return `${missing}: ${counts}. The exported files are unchanged.`;
    case 'source_expired':
      return `The source has no rows left for ${range}, ${bucket_rows} were exported. The exported files are unchanged, and the interval is not compared again. Further intervals that expire today are not logged.`;
    case 'rows_added':
    case 'both': {
      const difference =
        outcome === 'both'
          ? `At least ${added}, and at least ${missing}: ${counts}.`
          : `${added}: ${counts}.`;
      return isHeld
        ? `${difference} The last run of the interval was held because of these rows, so it is not exported again until the source changes.`
        : `${difference} Exporting the interval again.`;
    }
  }
}

/** What the source had when the interval's newest run was held; null if that run was not held. */
async function findHeldSource(
  journal: Journal,
  { batch_export_id, data_interval_start, data_interval_end }: IntervalComparison,
): Promise<Fingerprint | null> {
  const { rows } = await journal.pool.query<{ id: string }>(
    `select id from exportd.batch_export_runs
     where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3
     order by position desc limit 1`,
    [batch_export_id, data_interval_start, data_interval_end],
  );
  const [newest] = rows;
  if (!newest) return null;
  const run = await readState(journal, runDecider, newest.id);
  const isHeld = run.status === 'Failed' && run.replacement?.outcome === 'rows_missing';
  return isHeld ? (run.replacement.source ?? run.source_fingerprint) : null;
}

/** Whether the interval still has the manifest that was compared, and no other worker has compared it since. */
async function isCurrent(
  connection: Connection,
  { run_id, comparisons }: IntervalComparison,
): Promise<boolean> {
  const { rows } = await connection.query(
    'select from exportd.interval_comparisons where run_id = $1 and comparisons = $2 for update',
    [run_id, comparisons],
  );
  return rows.length > 0;
}

/** Whether another interval of the export has expired today, in UTC. */
async function hasExpiredToday(
  connection: Connection,
  { batch_export_id }: IntervalComparison,
): Promise<boolean> {
  const { rows } = await connection.query(
    `select from exportd.interval_comparisons where batch_export_id = $1 and outcome = 'source_expired'
       and last_compared_at >= date_trunc('day', clock_timestamp(), 'UTC') limit 1`,
    [batch_export_id],
  );
  return rows.length > 0;
}

/**
 * Stores the numbers of comparisons and when each interval is compared next. Where rows were not comparable, the last
 * comparison stays the last one.
 * @param done with the source whose differences were examined, if it changes: null if they cause a retry
 */
async function storeComparisons(
  database: Pool | Connection,
  schedule: ComparisonSchedule,
  done: readonly (DoneComparison & { readonly examined?: Fingerprint | null })[],
): Promise<void> {
  if (done.length === 0) return;
  const next = done.map((one) => nextTimes(schedule, one));
  await database.query(
    `update exportd.interval_comparisons comparison set comparisons = comparison.comparisons + 1,
       last_compared_at = case when done.outcome is null then comparison.last_compared_at else done.at end,
       outcome = coalesce(done.outcome, comparison.outcome),
       source_rows = coalesce(done.source_rows, comparison.source_rows),
       added_rows = coalesce(done.added_rows, comparison.added_rows),
       missing_rows = coalesce(done.missing_rows, comparison.missing_rows),
       examined = case when done.examines then done.examined else comparison.examined end,
       kept = comparison.kept and (done.outcome is null or (done.outcome, done.added_rows, done.missing_rows)
         is not distinct from (comparison.outcome, comparison.added_rows, comparison.missing_rows)
         and (not done.examines or done.examined is not distinct from comparison.examined)),
       next_due_at = done.due, early_at = done.early, failures = 0, retry_at = null
     from unnest($1::uuid[], $2::int[], $3::timestamptz[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
       $8::timestamptz[], $9::timestamptz[], $10::boolean[], $11::jsonb[])
       as done (run_id, comparisons, at, outcome, source_rows, added_rows, missing_rows, due, early, examines, examined)
     where comparison.run_id = done.run_id and comparison.comparisons = done.comparisons`,
    [
      done.map(({ interval }) => interval.run_id),
      done.map(({ interval }) => interval.comparisons),
      done.map(({ at }) => at),
      done.map(({ comparison }) => comparison?.outcome ?? null),
      done.map(({ comparison }) => comparison?.source_rows ?? null),
      done.map(({ comparison }) => comparison?.added_rows ?? null),
      done.map(({ comparison }) => comparison?.missing_rows ?? null),
      next.map(({ due }) => due),
      next.map(({ early }) => early),
      done.map(({ examined }) => examined !== undefined),
      done.map(({ examined }) => (examined ? JSON.stringify(examined) : null)),
    ],
  );
}

/** When an interval is compared next, and how early it may be together with a neighbour; null if never. */
function nextTimes(
  schedule: ComparisonSchedule,
  { interval, comparison, at }: DoneComparison,
): { readonly due: string | null; readonly early: string | null } {
  if (comparison?.outcome === 'source_expired') return { due: null, early: null };
  const from = Date.parse(interval.compared_from);
  const now = Date.parse(at);
  // A comparison that came early replaces the one that was due.
  const since = Math.max(now, Date.parse(interval.next_due_at ?? at));
  const due = from + nextComparisonMs(schedule, since - from);
  return {
    due: new Date(due).toISOString(),
    early: new Date(due - maxEarlyMs(now, due)).toISOString(),
  };
}
