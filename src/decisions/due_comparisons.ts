import type { Model } from '../domain/batch_export.ts';
import type { Comparison, ComparisonOutcome } from '../domain/comparison.ts';
import type { Fingerprint } from '../domain/fingerprint.ts';
import type { ExistingRun } from '../domain/run_state.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { activeStatuses } from '../projections/runs.ts';
import { isExpiredInterval, type MaintenancePolicy } from './create_run.ts';

/** SQL condition: the interval of a row has an active run. */
export const hasActiveRun = (row: string): string => `exists (
  select from exportd.batch_export_runs active
  where active.batch_export_id = ${row}.batch_export_id and active.data_interval_start = ${row}.data_interval_start
    and active.status in (${activeStatuses}))`;

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
  comparison.missing_rows, comparison.examined, comparison.next_due_at`;

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

/** Starts the comparisons of an interval that a run has completed. They replace those of its former manifest. */
export async function startComparisons(
  connection: Connection,
  runId: string,
  { spec, replacement }: Pick<ExistingRun, 'spec' | 'replacement'>,
  bucketRows: number,
): Promise<void> {
  const { batch_export_id, data_interval_start: start, data_interval_end: end } = spec;
  await connection.query(
    `delete from exportd.interval_comparisons
     where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3`,
    [batch_export_id, start, end],
  );
  await connection.query(
    `insert into exportd.interval_comparisons (batch_export_id, data_interval_start, data_interval_end, run_id, team_id,
       model, config_version, selection_hash, bucket_rows, compared_from, next_due_at)
     select $1, $2, $3, $4, $5, $8, $6, $9 || coalesce(selection_hash, $1::text), $7, due.at,
       due.at - case when $10 then interval '10 years' else interval '0' end
     from (select greatest($3::timestamptz, clock_timestamp()) as at) as due
     left join exportd.destination_configs on batch_export_id = $1::uuid and version = $6::int`,
    [
      ...[batch_export_id, start, end, runId, spec.team_id, spec.config_version, bucketRows, spec.model],
      spec.model === 'events' ? '' : `${spec.model} `,
      // Late rows that the run had no room for are added by the next one, at once.
      replacement?.base?.has_more ?? false,
    ],
  );
}

/** Ends the comparisons of an export that is deleted. */
export const endComparisons = async (connection: Connection, batchExportId: string): Promise<void> => {
  await connection.query('delete from exportd.interval_comparisons where batch_export_id = $1', [
    batchExportId,
  ]);
  await endRepairs(connection, batchExportId);
};

/** Empties the queue of an export's repair. */
export const endRepairs = (connection: Connection, batchExportId: string): Promise<unknown> =>
  connection.query('delete from exportd.interval_repairs where batch_export_id = $1', [batchExportId]);

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
