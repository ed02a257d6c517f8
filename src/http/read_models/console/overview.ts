import type { LiveBatchExport, Model } from '../../../domain/batch_export.ts';
import { undecidedRanges } from '../../../domain/due_ranges.ts';
import { firstIntervalEndingFrom } from '../../../domain/interval_ranges.ts';
import { intervalContaining, nominalLengthMs } from '../../../domain/intervals.ts';
import type { Pool } from '../../../journal/database.ts';
import type { Logger } from '../../../telemetry/logger.ts';
import {
  exportConditions,
  intervalLetters,
  type ExportCondition,
  type Overview,
  type OverviewItem,
} from '../../schemas/console_overview.ts';
import type { LagResponse } from '../../schemas/lag.ts';
import type { IntervalStatus } from '../../schemas/interval.ts';
import { lagsOf } from '../lag.ts';
import { newestIntervals, type LedgerEntry } from './newest_intervals.ts';

const maxCells = 48;
const hours = 24;
const hourMs = 3_600_000;

interface ExportRow {
  readonly id: string;
  readonly name: string;
  readonly model: Model;
  readonly interval: string;
  readonly destination: string;
  readonly paused: boolean;
  readonly retention_days: number | null;
  readonly state: LiveBatchExport;
  readonly now: string;
}

interface LedgerRow {
  readonly id: string;
  /** Entries of five words, separated by commas: fifty times cheaper to parse than rows. Null without one. */
  readonly entries: string | null;
}

/** An entry of the ledger with what its manifest has. */
interface VolumeEntry extends LedgerEntry {
  readonly rows: number;
  readonly bytes: number;
}

/** Rows and bytes of an hour, counted back from now. */
interface HourlyVolume {
  readonly hoursAgo: number;
  readonly rows: number;
  readonly bytes: number;
}

/** Reads every live export of a project for the page that lists them, with a fixed number of statements. */
export async function readOverview(
  { pool, logger }: { readonly pool: Pool; readonly logger: Logger },
  teamId: number,
): Promise<Overview> {
  const exports = await readExports(pool, teamId);
  const now = exports[0]?.now ?? new Date().toISOString();
  const [ledgers, volumes, lags, problems] = await Promise.all([
    readLedgers(pool, exports, now),
    readVolumes(pool, exports, now),
    lagsOf(pool, exports, (id, error) => {
      logger.error({ err: error, batch_export_id: id }, 'The lag of a batch export cannot be computed.');
    }),
    readProblems(pool, exports),
  ]);
  const time = new Date(now);
  const items = exports.map((row) => {
    const stored = parseEntries(ledgers.get(row.id) ?? null);
    return toItem(row, {
      stored,
      volumes: volumes.get(row.id) ?? stored.map((entry) => volumeOf(entry, time)),
      lag: lags.get(row.id) ?? null,
      problem: problems.get(row.id) ?? null,
      now: time,
    });
  });
  return { now, exports: items.sort(byAttention) };
}

const readExports = async (pool: Pool, teamId: number): Promise<ExportRow[]> =>
  (
    await pool.query<ExportRow>(
      `select export.id, export.name, export.model, export.interval, export.paused, export.retention_days,
         concat_ws(' ', export.destination_type, version.config->>'bucket_name') as destination,
         stream.state, statement_timestamp() as now
       from exportd.batch_exports export
       join exportd.stream_states stream on stream.stream_type = 'batch_export' and stream.stream_id = export.id
       join exportd.destination_configs version
         on version.batch_export_id = export.id and version.version = export.config_version
       where export.team_id = $1 and not export.deleted and stream.state->>'status' = 'live'`,
      [teamId],
    )
  ).rows;

/** Reads the newest entries of each ledger. */
async function readLedgers(
  pool: Pool,
  exports: readonly ExportRow[],
  now: string,
): Promise<ReadonlyMap<string, string | null>> {
  const { rows } = await pool.query<LedgerRow>(
    `select export.id, newest.entries from unnest($1::uuid[], $2::int[]) as export (id, retention_days)
     cross join lateral (
       select string_agg(concat_ws(' ', date_part('epoch', data_interval_start)::bigint,
           date_part('epoch', data_interval_end)::bigint,
           case when status in ('exported', 'unsettled') and least(expires_at,
             completed_at + make_interval(days => export.retention_days)) <= $3::timestamptz
             then 'expired' else status end, coalesce(rows, 0), coalesce(bytes, 0)), ',') as entries
       from (select * from exportd.intervals where batch_export_id = export.id
         order by data_interval_start desc limit ${maxCells}) entry
     ) newest`,
    [exports.map(({ id }) => id), exports.map(({ retention_days }) => retention_days), now],
  );
  return new Map(rows.map(({ id, entries }) => [id, entries]));
}

/** Reads the rows and bytes of the last day, by hour, of exports whose newest entries do not reach back a day. */
async function readVolumes(
  pool: Pool,
  exports: readonly ExportRow[],
  now: string,
): Promise<ReadonlyMap<string, HourlyVolume[]>> {
  const frequent = exports.filter(({ interval }) => nominalLengthMs(interval) * maxCells < hours * hourMs);
  if (frequent.length === 0) return new Map();
  const { rows } = await pool.query<{ id: string; hours_ago: number; rows: number; bytes: number }>(
    `select batch_export_id as id, floor(date_part('epoch', $2::timestamptz - data_interval_end) / 3600)::int as hours_ago,
       sum(rows)::bigint as rows, sum(bytes)::bigint as bytes
     from exportd.intervals
     where batch_export_id = any($1) and rows is not null
       and data_interval_start > $2::timestamptz - make_interval(hours => ${hours + 1})
       and data_interval_end <= $2::timestamptz
     group by 1, 2`,
    [frequent.map(({ id }) => id), now],
  );
  const volumes = new Map(frequent.map(({ id }) => [id, [] as HourlyVolume[]]));
  for (const row of rows)
    volumes.get(row.id)?.push({ hoursAgo: row.hours_ago, rows: row.rows, bytes: row.bytes });
  return volumes;
}

/** The latest error of each export that has an interval which failed or is held. */
async function readProblems(
  pool: Pool,
  exports: readonly ExportRow[],
): Promise<ReadonlyMap<string, string | null>> {
  const { rows } = await pool.query<{ id: string; problem: string | null }>(
    `select export.id, newest.latest_error as problem from unnest($1::uuid[]) as export (id)
     cross join lateral (
       select run.latest_error from exportd.intervals interval
       join exportd.batch_export_runs run on run.id = interval.run_id
       where interval.batch_export_id = export.id and interval.status <> 'exported'
         and interval.status in ('failed', 'gap', 'held')
       order by interval.data_interval_start desc limit 1
     ) newest`,
    [exports.map(({ id }) => id)],
  );
  return new Map(rows.map(({ id, problem }) => [id, problem]));
}

interface ItemFacts {
  readonly stored: readonly VolumeEntry[];
  readonly volumes: readonly HourlyVolume[];
  readonly lag: LagResponse | null;
  readonly problem: string | null;
  readonly now: Date;
}

function toItem(row: ExportRow, { stored, volumes, lag, problem, now }: ItemFacts): OverviewItem {
  // Without a lag, this version cannot read the schedule.
  const intervals =
    lag === null
      ? stored.toReversed()
      : newestIntervals(row.state.revisions, stored, undecidedRanges(row.state, now), maxCells);
  const condition = conditionOf(row, intervals, lag);
  return {
    id: row.id,
    name: row.name,
    model: row.model,
    interval: row.interval,
    destination: row.destination,
    paused: row.paused,
    condition,
    problem: condition === 'failing' || condition === 'gap' || condition === 'held' ? problem : null,
    behind_intervals: lag?.intervals ?? null,
    fresh_until: lag?.last_completed_interval_end ?? null,
    next_run_at: lag === null ? null : nextRunAt(row.state, now),
    cells: toCells(intervals),
    ...toBuckets(volumes),
  };
}

const parseEntries = (entries: string | null): VolumeEntry[] =>
  (entries?.split(',') ?? []).map((entry) => {
    const [start, end, status = '', rows, bytes] = entry.split(' ');
    return {
      start: Number(start) * 1_000,
      end: Number(end) * 1_000,
      status: status as IntervalStatus,
      rows: Number(rows),
      bytes: Number(bytes),
    };
  });

const volumeOf = ({ end, rows, bytes }: VolumeEntry, now: Date): HourlyVolume => ({
  hoursAgo: Math.floor((now.getTime() - end) / hourMs),
  rows,
  bytes,
});

/** A newest interval that failed says more than a pause: exportd pauses exports that fail. */
function conditionOf(
  { paused }: ExportRow,
  intervals: readonly LedgerEntry[],
  lag: LagResponse | null,
): ExportCondition {
  const has = (status: IntervalStatus) => intervals.some((interval) => interval.status === status);
  const newestEnded = intervals.findLast(
    ({ status }) => status !== 'running' && status !== 'due' && status !== 'paused' && status !== 'excluded',
  );
  if (newestEnded?.status === 'failed' || newestEnded?.status === 'gap') return 'failing';
  if ((lag?.gaps.length ?? 0) > 0) return 'gap';
  if (has('held')) return 'held';
  if (paused) return 'paused';
  // One interval is missing from its end until its run has completed.
  if ((lag?.intervals ?? 0) > 1) return 'behind';
  return has('unsettled') ? 'unsettled' : 'active';
}

/** When the next interval ends; its run starts after that and the jitter. */
function nextRunAt({ paused, definition, revisions }: LiveBatchExport, now: Date): string | null {
  if (paused) return null;
  const { start_at, end_at } = definition;
  const current = intervalContaining(revisions, now).end;
  const first = start_at === null ? current : firstIntervalEndingFrom(revisions, start_at).end;
  const next = Date.parse(first) > Date.parse(current) ? first : current;
  return end_at !== null && Date.parse(next) > Date.parse(end_at) ? null : next;
}

function toCells(intervals: readonly LedgerEntry[]): OverviewItem['cells'] {
  const lengths: [number, number][] = [];
  for (const { start, end } of intervals) {
    const seconds = (end - start) / 1_000;
    const last = lengths.at(-1);
    if (last?.[0] === seconds) last[1] += 1;
    else lengths.push([seconds, 1]);
  }
  const [oldest] = intervals;
  return {
    start: oldest ? new Date(oldest.start).toISOString() : null,
    statuses: intervals.map(({ status }) => intervalLetters[status]).join(''),
    lengths,
  };
}

function toBuckets(volumes: readonly HourlyVolume[]): Pick<OverviewItem, 'rows_by_hour' | 'bytes_by_hour'> {
  const rows_by_hour = Array<number>(hours).fill(0);
  const bytes_by_hour = Array<number>(hours).fill(0);
  for (const { hoursAgo, rows, bytes } of volumes) {
    const index = hours - 1 - hoursAgo;
    if (!(index in rows_by_hour)) continue;
    rows_by_hour[index] = (rows_by_hour[index] ?? 0) + rows;
    bytes_by_hour[index] = (bytes_by_hour[index] ?? 0) + bytes;
  }
  return { rows_by_hour, bytes_by_hour };
}

const rankOf = (condition: ExportCondition): number => exportConditions.indexOf(condition);

/** Those that need attention first, then the least fresh, then by name. */
const byAttention = (one: OverviewItem, other: OverviewItem): number =>
  rankOf(one.condition) - rankOf(other.condition) ||
  (other.behind_intervals ?? 0) - (one.behind_intervals ?? 0) ||
  one.name.localeCompare(other.name) ||
  one.id.localeCompare(other.id);
