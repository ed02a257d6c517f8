import { bounds } from '../../config/bounds.ts';
import { defaultFields } from '../../destination/config.ts';
import {
  type BatchExportDefinition,
  type LiveBatchExport,
  type Model,
  supportsDayOffset,
  supportsOffsets,
} from '../../domain/batch_export.ts';
import { dueRanges } from '../../domain/due_intervals.ts';
import { countIntervals, type DataInterval } from '../../domain/intervals.ts';
import type { Connection, Pool } from '../../journal/database.ts';
import type { RowQuery } from '../../source/row_selection.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { notFound } from '../api_error.ts';
import { countRows, toReadableResponses } from '../paging.ts';
import { latestRuns, type RunLink, toRunResponse } from '../runs/read_model.ts';
import { runSchema } from '../runs/schema.ts';
import { type BatchExportResponse, batchExportSchema, type LagResponse } from './schema.ts';

/** The number of gaps in a response; the newest are kept. */
const maxGaps = 100;

/** The ended intervals of an export for which the schedule has not created runs yet. */
interface IntervalsWithoutRun {
  readonly id: string;
  readonly ranges: readonly DataInterval[];
  readonly intervals: number;
}

interface IntervalsWithRun {
  readonly id: string;
  /** Intervals of the schedule with a run and without a manifest, and the gaps of backfills. */
  readonly intervals: number;
  readonly seconds: number;
  /** Intervals that a backfill completed before the schedule reached them. */
  readonly completed_ahead: number;
  readonly completed_ahead_seconds: number;
  readonly last_completed_interval_end: string | null;
  readonly gaps: LagResponse['gaps'];
}

/**
 * The lag of each live export, by id; null if this version cannot read its schedule, which `onUnreadable` reports. Needs
 * two statements for any number of exports and intervals: intervals without runs are counted from the schedule's state and
 * the database's clock. Without new events, the lag changes only when an interval ends.
 */
export async function readLags(
  pool: Pool,
  exports: readonly { readonly id: string }[],
  onUnreadable: (id: string, error: unknown) => void,
): Promise<ReadonlyMap<string, LagResponse | null>> {
  const { rows } = await pool.query<ScheduleState>(
    `select stream_id as id, state, statement_timestamp() as now from exportd.stream_states
     where stream_type = 'batch_export' and stream_id = any($1) and state->>'status' = 'live'`,
    [exports.map(({ id }) => id)],
  );
  return lagsOf(pool, rows, onUnreadable);
}

/** The state of an export's schedule, and when it was read. */
interface ScheduleState {
  readonly id: string;
  readonly state: LiveBatchExport;
  readonly now: string;
}

/** The same for states that the caller has read, with one statement. */
export async function lagsOf(
  pool: Pool,
  states: readonly ScheduleState[],
  onUnreadable: (id: string, error: unknown) => void,
): Promise<ReadonlyMap<string, LagResponse | null>> {
  const unreadable: string[] = [];
  const withoutRun = intervalsWithoutRun(states, (id, error) => {
    unreadable.push(id);
    onUnreadable(id, error);
  });
  const withRun = new Map(
    (await readIntervalsWithRun(pool, withoutRun)).map((one) => [one.id, one] as const),
  );
  return new Map<string, LagResponse | null>([
    ...unreadable.map((id) => [id, null] as const),
    ...withoutRun.flatMap(({ id, ranges, intervals }) => {
      const found = withRun.get(id);
      if (!found) return [];
      const lag = {
        intervals: found.intervals + intervals - found.completed_ahead,
        seconds: found.seconds + sum(ranges.map(secondsOf)) - found.completed_ahead_seconds,
        last_completed_interval_end: found.last_completed_interval_end,
        gaps: found.gaps.map((gap) => ({
          data_interval_start: new Date(gap.data_interval_start).toISOString(),
          data_interval_end: new Date(gap.data_interval_end).toISOString(),
          run_id: gap.run_id,
          status: gap.status,
        })),
      };
      return [[id, lag] as const];
    }),
  ]);
}

const intervalsWithoutRun = (
  states: readonly ScheduleState[],
  onUnreadable: (id: string, error: unknown) => void,
): IntervalsWithoutRun[] =>
  states.flatMap(({ id, state, now }) => {
    try {
      const ranges = dueRanges(state, new Date(now));
      const intervals = sum(ranges.map((range) => countIntervals(state.revisions, range)));
      return [{ id, ranges, intervals }];
    } catch (error) {
      onUnreadable(id, error);
      return [];
    }
  });

/**
 * Reads the intervals without a manifest from the ledger. Those in a range without runs are counted with the range: the
 * schedule may have created their runs after `withoutRun` was read, and a backfill's may have failed there.
 */
async function readIntervalsWithRun(
  pool: Pool,
  withoutRun: readonly IntervalsWithoutRun[],
): Promise<IntervalsWithRun[]> {
  const ranges = withoutRun.flatMap(({ id, ranges }) => ranges.map((range) => ({ id, ...range })));
  const { rows } = await pool.query<IntervalsWithRun>(
    `with due as (
       select * from unnest($2::uuid[], $3::timestamptz[], $4::timestamptz[]) as due (id, range_start, range_end)
     )
     select export.id, with_run.intervals, with_run.seconds, with_run.gaps,
       coalesce(ahead.intervals, 0) as completed_ahead, coalesce(ahead.seconds, 0) as completed_ahead_seconds,
       completed.last_completed_interval_end
     from unnest($1::uuid[]) as export (id)
     cross join lateral (
       with without_manifest as (
         select interval.data_interval_start, interval.data_interval_end, interval.run_id, interval.status,
           interval.reason, interval.is_scheduled
         from exportd.intervals interval
         where interval.batch_export_id = export.id and interval.status <> 'exported'
           and interval.manifest_run_id is null and interval.run_id is not null
       )
       select count(*) as intervals, ${totalSeconds} as seconds,
         (select coalesce(json_agg(gap), '[]') from (
            select data_interval_start, data_interval_end, run_id, reason as status from without_manifest
            where status = 'gap' order by data_interval_start desc limit $5) gap) as gaps
       from without_manifest interval
       where (is_scheduled or status = 'gap') and status <> 'held' and not exists (
         select from due where due.id = export.id
           and interval.data_interval_start >= due.range_start and interval.data_interval_end <= due.range_end)
     ) with_run
     left join (
       select due.id, count(*) as intervals, ${totalSeconds} as seconds
       from due join exportd.intervals interval on interval.batch_export_id = due.id
         and interval.manifest_run_id is not null
         and interval.data_interval_start >= due.range_start and interval.data_interval_end <= due.range_end
       group by due.id
     ) ahead on ahead.id = export.id
     left join lateral (
       select interval.data_interval_end as last_completed_interval_end from exportd.intervals interval
       where interval.batch_export_id = export.id and interval.manifest_run_id is not null
       order by interval.data_interval_start desc limit 1
     ) completed on true`,
    [
      withoutRun.map(({ id }) => id),
      ranges.map(({ id }) => id),
      ranges.map(({ start }) => start),
      ranges.map(({ end }) => end),
      maxGaps,
    ],
  );
  return rows;
}

const totalSeconds = 'coalesce(sum(extract(epoch from data_interval_end - data_interval_start)), 0)::float8';

const secondsOf = ({ start, end }: DataInterval): number => (Date.parse(end) - Date.parse(start)) / 1_000;

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** A live export as stored in the read model, with the public fields of its config. */
export interface BatchExportRow extends BatchExportDefinition {
  readonly id: string;
  readonly team_id: number;
  readonly model: Model;
  readonly paused: boolean;
  readonly created_at: string;
  readonly last_updated_at: string;
  readonly last_paused_at: string | null;
  readonly config: Record<string, unknown>;
  readonly row_query: RowQuery | null;
}

const maxLatestRuns = 10;

const selection = `
  select export.id, export.team_id, export.name, export.model, export.destination_type, export.config_version,
    export.interval, export.timezone, export.offset_hour, export.offset_day, export.start_at, export.end_at,
    export.dialect_query, export.retention_days, export.paused, export.created_at, export.last_updated_at, export.last_paused_at,
    version.config, version.row_query
  from exportd.batch_exports export
  join exportd.destination_configs version
    on version.batch_export_id = export.id and version.version = export.config_version
  where export.team_id = $1 and not export.deleted`;

/** A live export of the project. @throws ApiError 404 */
export async function requireBatchExport(
  database: Pool | Connection,
  teamId: number,
  id: string,
): Promise<BatchExportRow> {
  const { rows } = await database.query<BatchExportRow>(`${selection} and export.id = $2`, [teamId, id]);
  const [found] = rows;
  if (!found) throw notFound();
  return withDefaults(found);
}

/** Adds the defaults of config fields that the stored version lacks. A destination type may be unknown to this version. */
const withDefaults = (row: BatchExportRow): BatchExportRow => ({
  ...row,
  config: { ...defaultFields, ...row.config },
});

/** The size that a definition has in a response, which shows the query as given and as resolved. */
const definitionBytes = `octet_length(config::text) + coalesce(octet_length(to_jsonb(dialect_query)::text), 0)
  + coalesce(octet_length(row_query::text), 0)`;

/** A page of the project's live exports, newest first: one at least, and no more than fit into a response. */
export async function listBatchExports(
  pool: Pool,
  teamId: number,
  window: { readonly limit: number; readonly offset: number },
): Promise<{ count: number; rows: BatchExportRow[] }> {
  const count = await countRows(pool, 'from exportd.batch_exports where team_id = $1 and not deleted', [
    teamId,
  ]);
  const { rows } = await pool.query<BatchExportRow & { readonly place: number; readonly bytes: number }>(
    `select * from (
       select page.*, row_number() over newest_first as place, sum(${definitionBytes}) over newest_first as bytes
       from (${selection} order by export.created_at desc, export.id limit $2 offset $3) page
       window newest_first as (order by created_at desc, id rows unbounded preceding)
     ) measured where place = 1 or bytes <= $4 order by place`,
    [teamId, window.limit, window.offset, bounds.listedExports.max],
  );
  return { count, rows: rows.map(({ place: _place, bytes: _bytes, ...row }) => withDefaults(row)) };
}

/** What exports are converted to responses with. */
interface ResponseDependencies {
  readonly pool: Pool;
  readonly runLink: RunLink;
  readonly logger: Logger;
}

/** Converts exports to responses, each with its newest runs and its lag. Those that cannot be read are left out. */
export async function toBatchExportResponses(
  { pool, runLink, logger }: ResponseDependencies,
  rows: readonly BatchExportRow[],
): Promise<BatchExportResponse[]> {
  const ids = rows.map(({ id }) => id);
  const [runs, lags] = await Promise.all([
    latestRuns(pool, ids, maxLatestRuns),
    readLags(pool, rows, (id, error) => {
      logger.error({ err: error, batch_export_id: id }, 'The lag of a batch export cannot be computed.');
    }),
  ]);
  const toRuns = (batchExportId: string) =>
    toReadableResponses(
      runs.filter((run) => run.batch_export_id === batchExportId),
      { what: 'run', schema: runSchema, convert: (run) => toRunResponse(run, runLink), logger },
    );
  // An export without an entry was deleted since it was read.
  const existing = rows.filter(({ id }) => lags.has(id));
  return toReadableResponses(existing, {
    what: 'batch export',
    schema: batchExportSchema,
    logger,
    convert: ({ destination_type, config, row_query, ...row }) => ({
      ...row,
      destination: { type: destination_type, config },
      offset_hour: supportsOffsets(row.interval) ? row.offset_hour : null,
      offset_day: supportsDayOffset(row.interval) ? row.offset_day : null,
      latest_runs: toRuns(row.id),
      schema: row_query && schemaOf(row_query),
      lag: lags.get(row.id) ?? null,
    }),
  });
}

/** The columns that a query selects, as resolved. */
const schemaOf = ({ fields, printed }: RowQuery): BatchExportResponse['schema'] => ({
  fields: fields.map(({ name, type, expression }) => ({ alias: name, expression, type })),
  dialect_query: printed,
});
