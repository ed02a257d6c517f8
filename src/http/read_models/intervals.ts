import type { LiveBatchExport, SkipReason } from '../../domain/batch_export.ts';
import { undecidedRanges } from '../../domain/due_ranges.ts';
import { countIntervals } from '../../domain/interval_ranges.ts';
import type { Pool } from '../../journal/database.ts';
import { partsWithoutEntry, skipStatusOf } from '../../projections/intervals/interval_rows.ts';
import { notFound } from '../api_error.ts';
import type { IntervalResponse, IntervalsQuery, IntervalStatus } from '../schemas/interval.ts';
import { decodeIntervalCursor, encodeIntervalCursor } from './interval_cursor.ts';

/** An entry of the ledger as read from the database. */
type IntervalRow = Omit<IntervalResponse, 'intervals' | 'run_ids'> & {
  readonly run_ids: string[] | null;
};

/** A page of the interval ledger. */
export interface IntervalPage {
  readonly count: number;
  readonly intervals: IntervalResponse[];
  /** Cursors of the adjacent pages, or null. */
  readonly next: string | null;
  readonly previous: string | null;
}

/** A range about which the schedule has recorded nothing yet; its status depends on the clock. */
interface OpenRange {
  readonly start: string;
  readonly end: string;
  readonly status: IntervalStatus;
  readonly reason: SkipReason | null;
}

const columns = [
  'data_interval_start',
  'data_interval_end',
  'status',
  'reason',
  'run_id',
  'manifest_run_id',
  'generation',
  'rows',
  'rejected_rows',
  'bytes',
  'files',
  'kept_files',
  'earlier_files',
  'source_fingerprint',
  'bucket_fingerprint',
  'settled',
  'settling_outcome',
  'completed_at',
  'expires_at',
  'held',
  'taken_keys',
] as const;

/** SQL: when the bucket deletes the first object of the manifest; $6 is the export's `retention_days`. */
const expiresAt = 'least(expires_at, completed_at + make_interval(days => $6))';

/** The columns that depend on the clock or the definition. */
const derivedColumns: Partial<Record<(typeof columns)[number], string>> = {
  status: `case when status in ('exported', 'unsettled') and ${expiresAt} <= statement_timestamp() then 'expired'
    else status end`,
  expires_at: expiresAt,
};

/** The columns that the parts of an open range have; the others are null. */
const openColumns: Partial<Record<(typeof columns)[number], string>> = {
  data_interval_start: 'part.starts',
  data_interval_end: 'part.ends',
  status: 'open.status',
  reason: 'open.reason',
  taken_keys: '0',
};

/** SQL: the ledger of export $1, with the parts of the open ranges $2 to $5 that have no interval of their own. */
const entries = `
  select ${columns.map((column) => `${derivedColumns[column] ?? column} as ${column}`).join(', ')}
  from exportd.intervals where batch_export_id = $1
  union all
  select ${columns.map((column) => `${openColumns[column] ?? 'null'} as ${column}`).join(', ')}
  from unnest($2::timestamptz[], $3::timestamptz[], $4::text[], $5::text[]) as open (starts, ends, status, reason)
  cross join lateral (${partsWithoutEntry('$1', 'open.starts', 'open.ends')}) part`;

/** SQL: the last comparison of the current manifest, or null. */
const comparison = `case when compared.run_id is not null then json_build_object(
  'compared_at', compared.last_compared_at, 'outcome', compared.outcome, 'bucket_rows', compared.bucket_rows,
  'source_rows', compared.source_rows, 'added_rows', compared.added_rows, 'missing_rows', compared.missing_rows) end`;

/** Reads a page of an export's interval ledger, newest first, with keyset pagination. */
export async function readIntervalPage(
  pool: Pool,
  batchExportId: string,
  query: Omit<IntervalsQuery, 'status'> & { readonly statuses: readonly IntervalStatus[] | undefined },
): Promise<IntervalPage> {
  const cursor = query.cursor === undefined ? undefined : decodeIntervalCursor(query.cursor);
  const backwards = cursor?.backwards ?? false;
  const { live, ranges } = await readOpenRanges(pool, batchExportId);
  const values: unknown[] = [
    batchExportId,
    ranges.map(({ start }) => start),
    ranges.map(({ end }) => end),
    ranges.map(({ status }) => status),
    ranges.map(({ reason }) => reason),
    live.definition.retention_days,
  ];
  const conditions = ['true'];
  const where = (condition: string, value: unknown) => {
    values.push(value);
    conditions.push(`${condition} $${values.length}`);
  };
  if (query.statuses) {
    values.push(query.statuses);
    conditions.push(`status = any($${values.length})`);
  }
  if (query.after) where('data_interval_end >', query.after);
  if (query.before) where('data_interval_start <', query.before);
  const counted = await pool.query<{ count: number }>(
    `select count(*) as count from (${entries}) entry where ${conditions.join(' and ')}`,
    values,
  );
  if (cursor) where(`data_interval_start ${backwards ? '>' : '<'}`, cursor.start);
  values.push(query.limit + 1);
  const { rows } = await pool.query<IntervalRow>(
    `select page.*, newest.latest_error, runs.ids as run_ids, ${comparison} as comparison
     from (select * from (${entries}) entry where ${conditions.join(' and ')}
       order by data_interval_start ${backwards ? 'asc' : 'desc'} limit $${values.length}) page
     left join exportd.batch_export_runs newest on newest.id = page.run_id
     left join exportd.interval_comparisons compared
       on compared.run_id = page.manifest_run_id and compared.last_compared_at is not null
     left join lateral (
       select array_agg(id order by position desc) as ids from (
         select id, position from exportd.batch_export_runs run
         where run.batch_export_id = $1 and run.data_interval_start = page.data_interval_start
           and run.data_interval_end = page.data_interval_end
         order by position desc limit 10) newest_runs
     ) runs on page.run_id is not null
     order by page.data_interval_start ${backwards ? 'asc' : 'desc'}`,
    values,
  );
  const hasMore = rows.length > query.limit;
  const page = rows.slice(0, query.limit);
  if (backwards) page.reverse();
  const first = page[0];
  const last = page.at(-1);
  const hasNext = backwards || hasMore;
  const hasPrevious = backwards ? hasMore : cursor !== undefined;
  return {
    count: counted.rows[0]?.count ?? 0,
    intervals: page.map((row) => toIntervalResponse(row, live)),
    next: hasNext && last ? encodeIntervalCursor(last.data_interval_start, false) : null,
    previous: hasPrevious && first ? encodeIntervalCursor(first.data_interval_start, true) : null,
  };
}

/** Reads the ranges of an export's schedule that the ledger has no rows for. @throws ApiError 404 if it was deleted */
async function readOpenRanges(
  pool: Pool,
  batchExportId: string,
): Promise<{ readonly live: LiveBatchExport; readonly ranges: readonly OpenRange[] }> {
  const { rows } = await pool.query<{ state: LiveBatchExport; now: string }>(
    `select state, statement_timestamp() as now from exportd.stream_states
     where stream_type = 'batch_export' and stream_id = $1 and state->>'status' = 'live'`,
    [batchExportId],
  );
  const [row] = rows;
  if (!row) throw notFound();
  const ranges = undecidedRanges(row.state, new Date(row.now)).map(({ start, end, reason }) => ({
    start,
    end,
    reason,
    status: reason === null ? ('due' as const) : skipStatusOf(reason),
  }));
  return { live: row.state, ranges };
}

const toIntervalResponse = (row: IntervalRow, { revisions }: LiveBatchExport): IntervalResponse => {
  const { data_interval_start: start, data_interval_end: end } = row;
  return {
    data_interval_start: start,
    data_interval_end: end,
    intervals: row.run_id === null ? countIntervals(revisions, { start, end }) : 1,
    status: row.status,
    reason: row.reason,
    latest_error: row.latest_error,
    run_id: row.run_id,
    manifest_run_id: row.manifest_run_id,
    run_ids: row.run_ids ?? [],
    generation: row.generation,
    rows: row.rows,
    rejected_rows: row.rejected_rows,
    bytes: row.bytes,
    files: row.files,
    kept_files: row.kept_files,
    earlier_files: row.earlier_files,
    source_fingerprint: row.source_fingerprint,
    bucket_fingerprint: row.bucket_fingerprint,
    settled: row.settled,
    settling_outcome: row.settling_outcome,
    completed_at: row.completed_at,
    expires_at: row.expires_at,
    comparison: row.comparison && {
      ...row.comparison,
      compared_at: new Date(row.comparison.compared_at).toISOString(),
    },
    held: row.held,
    taken_keys: row.taken_keys,
  };
};
