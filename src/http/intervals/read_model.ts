import * as z from 'zod';
import { manifestKey } from '../../destination/keys.ts';
import {
  type LiveBatchExport,
  type Model,
  type UndecidedRange,
  undecidedRanges,
} from '../../domain/batch_export.ts';
import { countIntervals } from '../../domain/intervals.ts';
import type { Pool } from '../../journal/database.ts';
import { skipStatusOf } from '../../projections/intervals.ts';
import { notFound } from '../api_error.ts';
import { countRows, cursorTime, decodeCursor, encodeCursor, pageOf } from '../paging.ts';
import { describeWait, waitColumns, type WaitColumns } from '../runs/read_model.ts';
import type {
  IntervalResponse,
  IntervalsQuery,
  IntervalStatus,
  manifestSchema,
  ManifestsQuery,
} from './schema.ts';
import { unreadable } from '../readable_responses.ts';

type ManifestResponse = z.infer<typeof manifestSchema>;

/** The start of an interval, after which a page begins, and whether the page is read backwards from there. */
const cursorSchema = z.tuple([cursorTime, z.boolean()]);

/** An entry of the ledger as read from the database. */
type IntervalRow = Omit<IntervalResponse, 'intervals' | 'run_ids'> &
  WaitColumns & {
    readonly run_ids: string[] | null;
  };

/** A page of the interval ledger. */
interface IntervalPage {
  readonly count: number;
  readonly intervals: IntervalResponse[];
  /** Cursors of the adjacent pages, or null. */
  readonly next: string | null;
  readonly previous: string | null;
}

/** A range about which the schedule has recorded nothing yet; its status depends on the clock. */
type OpenRange = UndecidedRange & { readonly status: IntervalStatus };

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
  'decision',
  'taken_keys',
  'history_collapsed',
] as const;

/** SQL: when the bucket deletes the first object of the manifest; $6 is the export's `retention_days`. */
const expiresAt = 'least(expires_at, completed_at + make_interval(days => $6))';

/** SQL: the status of a row of the ledger, which depends on the clock. */
const statusNow = `case when status in ('exported', 'unsettled') and ${expiresAt} <= statement_timestamp() then 'expired'
  else status end`;

/** The columns of the ledger that depend on the clock or the definition. */
const derivedColumns: Partial<Record<(typeof columns)[number], string>> = {
  status: statusNow,
  expires_at: expiresAt,
  decision: `case when decision is not null then jsonb_build_object('decision', decision->'decision', 'rows', decision->'rows',
    'reason', decision->'reason', 'at', decision->'at',
    'by', (select email from exportd.users where id = (decision->>'user_id')::integer)) end`,
  history_collapsed: '(collapsed_generation is not null)',
};

/** The columns that the parts of an open range have; the others are null. */
const openColumns: Partial<Record<(typeof columns)[number], string>> = {
  data_interval_start: 'part.starts',
  data_interval_end: 'part.ends',
  status: 'open.status',
  reason: 'open.reason',
  taken_keys: '0',
  history_collapsed: 'false',
};

/** The statuses of rows that the index of intervals that are not exported lacks. */
const indexlessStatuses = new Set<IntervalStatus>(['exported', 'expired']);

/** SQL: the entries of export $1 that have a row. */
const storedEntries = `select ${columns.map((column) => `${derivedColumns[column] ?? column} as ${column}`).join(', ')}
  from exportd.intervals where batch_export_id = $1`;

/** SQL: null, of the type of a column of the ledger. */
const nullOf = (column: string): string => `(null::exportd.intervals).${column}`;

/**
 * SQL: the parts of a range between the intervals of the ledger that lie in it, as `starts` and `ends`. The arguments are
 * expressions of the export's id and of the bounds.
 */
const partsWithoutEntry = (batchExportId: string, start: string, end: string): string => `
  select hole.starts, hole.ends from (
    select lag(inside.data_interval_end, 1, ${start}) over (order by inside.data_interval_start) as starts,
      inside.data_interval_start as ends
    from (
      select data_interval_start, data_interval_end from exportd.intervals
      where batch_export_id = ${batchExportId} and data_interval_start >= ${start} and data_interval_end <= ${end}
      -- Ends the last hole.
      union all select ${end}, ${end}
    ) inside
  ) hole where hole.starts < hole.ends`;

/** SQL: the parts of the open ranges $2 to $5 in which export $1 has no row. */
const openEntries = `select * from (
    select ${columns.map((column) => `${openColumns[column] ?? nullOf(column)} as ${column}`).join(', ')}
    from unnest($2::timestamptz[], $3::timestamptz[], $4::text[], $5::text[]) as open (starts, ends, status, reason)
    cross join lateral (${partsWithoutEntry('$1', 'open.starts', 'open.ends')}) part) entry
  where true`;

/** SQL: the last comparison of the current manifest, or null. */
const comparison = `case when compared.run_id is not null then json_build_object(
  'compared_at', compared.last_compared_at, 'outcome', compared.outcome, 'bucket_rows', compared.bucket_rows,
  'source_rows', compared.source_rows, 'added_rows', compared.added_rows, 'missing_rows', compared.missing_rows,
  'kept', compared.kept) end`;

/** Reads a page of an export's interval ledger, newest first, with keyset pagination. */
export async function readIntervalPage(
  pool: Pool,
  batchExportId: string,
  query: Omit<IntervalsQuery, 'status'> & { readonly statuses: readonly IntervalStatus[] | undefined },
): Promise<IntervalPage> {
  const [cursor, backwards = false] =
    query.cursor === undefined ? [] : decodeCursor(query.cursor, cursorSchema);
  const { live, ranges } = await readOpenRanges(pool, batchExportId);
  const values: unknown[] = [
    batchExportId,
    ranges.map(({ start }) => start),
    ranges.map(({ end }) => end),
    ranges.map(({ status }) => status),
    ranges.map(({ reason }) => reason),
    live.definition.retention_days,
  ];
  const conditions: ((status: string) => string)[] = [];
  const parameter = (value: unknown): string => `$${values.push(value)}`;
  if (query.statuses) {
    const statuses = parameter(query.statuses);
    conditions.push((status) => `${status} = any(${statuses})`);
    // Lets PostgreSQL use a partial index.
    if (!query.statuses.some((status) => indexlessStatuses.has(status)))
      conditions.push(() => `status <> 'exported'`);
  }
  const bound = (condition: string, value: string | undefined) => {
    if (value === undefined) return;
    const compared = `${condition} ${parameter(value)}`;
    conditions.push(() => compared);
  };
  bound('data_interval_end >', query.after);
  bound('data_interval_start <', query.before);
  /** Both kinds of entries; each is limited by itself, so that PostgreSQL reads the ledger in the order of its key. */
  const entries = (rest: string): [string, string] => [
    `${[storedEntries, ...conditions.map((condition) => condition(statusNow))].join(' and ')} ${rest}`,
    `${[openEntries, ...conditions.map((condition) => condition('status'))].join(' and ')} ${rest}`,
  ];
  const [stored, open] = entries('');
  const count = await countRows(
    pool,
    `from (select from (${stored}) stored union all select from (${open}) open) entry`,
    values,
  );
  bound(`data_interval_start ${backwards ? '>' : '<'}`, cursor);
  const order = `order by data_interval_start ${backwards ? 'asc' : 'desc'}`;
  const limited = `${order} limit ${parameter(query.limit + 1)}`;
  const { rows } = await pool.query<IntervalRow>(
    `select page.*, newest.latest_error, ${waitColumns('newest')}, runs.ids as run_ids, ${comparison} as comparison
     from (select * from (
       ${entries(limited)
         .map((entry) => `(${entry})`)
         .join(' union all ')}) entry ${limited}) page
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
  const { page, next, previous } = pageOf(rows, query.limit, { backwards, continued: cursor !== undefined });
  return {
    count,
    intervals: page.map((row) => toIntervalResponse(row, live)),
    next: next && encodeCursor(next.data_interval_start, false),
    previous: previous && encodeCursor(previous.data_interval_start, true),
  };
}

/** A completed interval, and where a config of the export put its manifest. */
interface ManifestRow extends Omit<z.infer<typeof manifestSchema>, 'key'> {
  readonly prefix: string;
}

/** The time and interval after which a page begins. */
const manifestCursor = z.tuple([cursorTime, cursorTime]);

/** Reads a page of an export's current manifests in the order of their completion, with keyset pagination. */
export async function readManifestPage(
  pool: Pool,
  { id, model }: { readonly id: string; readonly model: Model },
  { since, cursor, limit }: ManifestsQuery,
): Promise<{ readonly count: number; readonly next: string | null; readonly manifests: ManifestResponse[] }> {
  const completed = `date_trunc('milliseconds', entry.completed_at)`;
  const rest = `from exportd.intervals entry join exportd.batch_exports export on export.id = entry.batch_export_id
    where entry.batch_export_id = $1 and entry.manifest_run_id is not null
      and ($2::timestamptz is null or entry.completed_at >= $2)
      and coalesce(least(entry.expires_at, entry.completed_at + make_interval(days => export.retention_days))
        > statement_timestamp(), true)`;
  const values = [id, since ?? null];
  const [afterTime = null, afterStart = null] =
    cursor === undefined ? [] : decodeCursor(cursor, manifestCursor);
  const [count, { rows }] = await Promise.all([
    countRows(pool, rest, values),
    pool.query<ManifestRow>(
      `select page.data_interval_start, page.data_interval_end, config.config->>'bucket_name' as bucket_name,
         config.config->>'prefix' as prefix, page.generation, page.manifest_run_id as run_id, page.rows, page.bytes, page.files,
         page.earlier_files, page.completed_at
       from (select entry.* ${rest}
         and ($3::timestamptz is null or (${completed}, entry.data_interval_start) > ($3, $4))
         order by ${completed}, entry.data_interval_start limit $5) page
       left join exportd.batch_export_runs run on run.id = page.manifest_run_id
       join exportd.destination_configs config on config.batch_export_id = page.batch_export_id
         and config.version = coalesce(page.collapsed_config_version, run.config_version)
       order by ${completed.replace('entry', 'page')}, page.data_interval_start`,
      [...values, afterTime, afterStart, limit + 1],
    ),
  ]);
  const { page, next } = pageOf(rows, limit, { backwards: false, continued: false });
  return {
    count,
    next: next && encodeCursor(next.completed_at, next.data_interval_start),
    manifests: page.map(({ prefix, ...row }) => ({
      ...row,
      key: manifestKey(prefix, { ...row, batch_export_id: id, model }),
    })),
  };
}

/** Reads the ranges of an export's schedule that the ledger has no rows for. @throws ApiError 404 if it was deleted, 500 */
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
  let undecided: readonly UndecidedRange[];
  try {
    undecided = undecidedRanges(row.state, new Date(row.now));
  } catch {
    throw unreadable('batch export', batchExportId);
  }
  const ranges = undecided.map((range) => ({
    ...range,
    status: range.reason === null ? ('due' as const) : skipStatusOf(range.reason),
  }));
  return { live: row.state, ranges };
}

const toIntervalResponse = (row: IntervalRow, { revisions }: LiveBatchExport): IntervalResponse => {
  const { open_circuit, operator_fault, ...entry } = row;
  const { data_interval_start: start, data_interval_end: end, comparison } = entry;
  return {
    ...entry,
    intervals: entry.run_id === null ? countIntervals(revisions, { start, end }) : 1,
    latest_error: describeWait({ open_circuit, operator_fault }) ?? entry.latest_error,
    run_ids: entry.run_ids ?? [],
    comparison: comparison && {
      ...comparison,
      compared_at: new Date(comparison.compared_at).toISOString(),
    },
  };
};
