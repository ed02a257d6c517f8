import { type Model, type UndecidedRange, undecidedRanges } from '../../../domain/batch_export.ts';
import { compareConditions, concernOf, incidentsOf } from '../../../domain/condition.ts';
import {
  type DataInterval,
  intervalContaining,
  nominalLengthMs,
  type ScheduleRevision,
} from '../../../domain/intervals.ts';
import type { Pool } from '../../../journal/database.ts';
import { type ExportStanding, readStandings } from '../../../projections/export_conditions.ts';
import { skipStatusOf } from '../../../projections/intervals.ts';
import type { Logger } from '../../../telemetry/logger.ts';
import type { IntervalStatus } from '../../intervals/schema.ts';
import { type HttpApp, type RouteContext } from '../../route_context.ts';
import { readsExports, teamOf } from '../../requests.ts';
import { errorResponses } from '../../schemas.ts';
import {
  intervalLetters,
  type Overview,
  type OverviewItem,
  type OverviewQuery,
  overviewQuery,
  overviewSchema,
} from './schema.ts';

/** An export whose ledger is read. */
interface LedgerExport {
  readonly id: string;
  readonly retention_days: number | null;
}

/**
 * SQL: whether the files of an interval are deleted at a time. `retentionDays` and `at` are SQL as well.
 */
const isExpired = (retentionDays: string, at: string): string =>
  `least(expires_at, completed_at + make_interval(days => ${retentionDays})) <= ${at}`;

/** How many intervals of an export are shown. */
const maxCells = 48;
const hours = 24;
const hourMs = 3_600_000;

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

/** Reads the newest entries of each ledger, newest first. */
async function readNewestEntries(
  pool: Pool,
  exports: readonly LedgerExport[],
  now: string,
): Promise<ReadonlyMap<string, readonly VolumeEntry[]>> {
  // Entries of five words, separated by commas: fifty times cheaper to parse than rows. Null without one.
  const { rows } = await pool.query<{ readonly id: string; readonly entries: string | null }>(
    `select export.id, newest.entries from unnest($1::uuid[], $2::int[]) as export (id, retention_days)
     cross join lateral (
       select string_agg(concat_ws(' ', date_part('epoch', data_interval_start)::bigint,
           date_part('epoch', data_interval_end)::bigint,
           case when status in ('exported', 'unsettled') and ${isExpired('export.retention_days', '$3::timestamptz')}
             then 'expired' else status end, coalesce(rows, 0), coalesce(bytes, 0)), ',') as entries
       from (select * from exportd.intervals where batch_export_id = export.id
         order by data_interval_start desc limit ${maxCells}) entry
     ) newest`,
    [exports.map(({ id }) => id), exports.map(({ retention_days }) => retention_days), now],
  );
  return new Map(rows.map(({ id, entries }) => [id, parseEntries(entries)]));
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

/** Reads the rows and bytes of the last day, by hour, of exports whose newest entries do not reach back a day. */
async function readVolumes(
  pool: Pool,
  exports: readonly { readonly id: string; readonly interval: string }[],
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

/** The hour in which an interval of the ledger ended. */
const volumeOf = ({ end, rows, bytes }: VolumeEntry, now: Date): HourlyVolume => ({
  hoursAgo: Math.floor((now.getTime() - end) / hourMs),
  rows,
  bytes,
});

/** Adds up volumes by hour, the oldest first. */
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

/** A row of the ledger: an interval, or a range of intervals that the schedule skipped. Milliseconds since 1970. */
interface LedgerEntry {
  readonly start: number;
  readonly end: number;
  readonly status: IntervalStatus;
}

/** An entry of the ledger, or an interval between two of them that nothing has exported. */
type ShownEntry = Omit<LedgerEntry, 'status'> & { readonly status: LedgerEntry['status'] | 'missing' };

/**
 * The newest intervals of an export, oldest first: those with a row in the ledger, those about which the schedule has recorded
 * nothing yet, and those between them that nothing has exported, since a reader of the bucket trips over them.
 */
export function newestIntervals(
  revisions: readonly ScheduleRevision[],
  stored: readonly LedgerEntry[],
  undecided: readonly UndecidedRange[],
  max: number,
): ShownEntry[] {
  const decided = stored.flatMap((entry) =>
    entry.status === 'paused' || entry.status === 'excluded' ? split(revisions, entry, max) : [entry],
  );
  const known = new Set(decided.map(({ start }) => start));
  const open = undecided.flatMap(({ start, end, reason }) => {
    const status = reason === null ? 'due' : skipStatusOf(reason);
    const intervals = split(revisions, { start: Date.parse(start), end: Date.parse(end), status }, max);
    return intervals.filter((interval) => !known.has(interval.start));
  });
  const newestFirst = [...decided, ...open].sort((one, other) => other.start - one.start);
  const shown: ShownEntry[] = [];
  for (const entry of newestFirst) {
    const newer = shown.at(-1);
    if (newer && entry.end < newer.start) {
      const hole = { start: entry.end, end: newer.start, status: 'missing' as const };
      shown.push(...split(revisions, hole, max - shown.length));
    }
    if (shown.length >= max) break;
    shown.push(entry);
  }
  return shown.slice(0, max).reverse();
}

/** The newest intervals of a range, newest first. A range of years has far more than anyone reads. */
function split<Entry extends ShownEntry>(
  revisions: readonly ScheduleRevision[],
  range: Entry,
  max: number,
): Entry[] {
  const intervals: Entry[] = [];
  let { end } = range;
  while (end > range.start && intervals.length < max) {
    const interval: DataInterval = intervalContaining(revisions, new Date(end - 1));
    const start = Math.max(Date.parse(interval.start), range.start);
    intervals.push({ ...range, start, end });
    end = start;
  }
  return intervals;
}

interface ExportRow {
  readonly id: string;
  readonly name: string;
  readonly model: Model;
  readonly interval: string;
  readonly destination: string;
  readonly paused: boolean;
  readonly retention_days: number | null;
}

/** An export with what decides its place in the list. */
type RankedExport = ExportRow & ExportStanding;

/**
 * Reads the live exports of a project for the page that lists them, with a fixed number of statements. Intervals and
 * volumes, the larger part by far, are read only of those that are shown.
 */
async function readOverview(
  { pool, logger }: { readonly pool: Pool; readonly logger: Logger },
  teamId: number,
  { limit, search }: OverviewQuery,
): Promise<Overview> {
  const exports = await readExports(pool, teamId);
  const standings = await readStandings(
    pool,
    exports.map(({ id }) => id),
    (id, error) => {
      logger.error({ err: error, batch_export_id: id }, 'The lag of a batch export cannot be computed.');
    },
  );
  const ranked = exports.flatMap((row): RankedExport[] => {
    const standing = standings.get(row.id);
    return standing ? [{ ...row, ...standing }] : [];
  });
  const now = ranked[0]?.now ?? new Date().toISOString();
  const found = ranked.filter(matches(search)).sort(byAttention);
  return {
    now,
    count: ranked.length,
    needing_attention: ranked.filter(({ condition }) => condition.severity !== 'ok').length,
    found: found.length,
    incidents: incidentsOf(ranked.map(({ condition }) => condition))
      .filter((one) => one.exports > 1)
      .map(({ id, summary, ...incident }) => ({ id, summary: `${summary} ${concernOf(incident)}.` })),
    exports: await toItems(pool, found.slice(0, limit), now),
  };
}

const readExports = async (pool: Pool, teamId: number): Promise<ExportRow[]> =>
  (
    await pool.query<ExportRow>(
      `select export.id, export.name, export.model, export.interval, export.paused, export.retention_days,
         concat_ws(' ', export.destination_type, version.config->>'bucket_name') as destination
       from exportd.batch_exports export
       join exportd.destination_configs version
         on version.batch_export_id = export.id and version.version = export.config_version
       where export.team_id = $1 and not export.deleted`,
      [teamId],
    )
  ).rows;

/** Whether an export has the text in its name, its destination or its id. */
const matches = (search: string): ((row: ExportRow) => boolean) => {
  const wanted = search.trim().toLowerCase();
  return ({ name, destination, id }) => `${name} ${destination} ${id}`.toLowerCase().includes(wanted);
};

async function toItems(pool: Pool, shown: readonly RankedExport[], now: string): Promise<OverviewItem[]> {
  const [entries, volumes] = await Promise.all([
    readNewestEntries(pool, shown, now),
    readVolumes(pool, shown, now),
  ]);
  const time = new Date(now);
  return shown.map((row) => {
    const stored = entries.get(row.id) ?? [];
    return toItem(row, {
      stored,
      volumes: volumes.get(row.id) ?? stored.map((entry) => volumeOf(entry, time)),
      now: time,
    });
  });
}

interface ItemFacts {
  readonly stored: readonly VolumeEntry[];
  readonly volumes: readonly HourlyVolume[];
  readonly now: Date;
}

function toItem(row: RankedExport, { stored, volumes, now }: ItemFacts): OverviewItem {
  const { lag } = row;
  const intervals =
    lag === null
      ? stored.toReversed()
      : newestIntervals(row.state.revisions, stored, undecidedRanges(row.state, now), maxCells);
  return {
    id: row.id,
    name: row.name,
    model: row.model,
    interval: row.interval,
    destination: row.destination,
    paused: row.paused,
    condition: row.condition,
    behind_intervals: lag?.intervals ?? null,
    fresh_until: lag?.last_completed_interval_end ?? null,
    next_run_at: row.coverage?.next_end ?? null,
    cells: toCells(intervals),
    ...toBuckets(volumes),
  };
}

function toCells(intervals: readonly ShownEntry[]): OverviewItem['cells'] {
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

/** Those that need attention first, then the least fresh, then by name. */
const byAttention = (one: RankedExport, other: RankedExport): number =>
  compareConditions(one.condition, other.condition) ||
  (other.lag?.intervals ?? 0) - (one.lag?.intervals ?? 0) ||
  one.name.localeCompare(other.name) ||
  one.id.localeCompare(other.id);

/** Lists the exports of the project for the console, those that need attention first. */
export function overviewRoutes(app: HttpApp, context: RouteContext): void {
  app.get(
    '/console/overview',
    {
      schema: {
        hide: true,
        querystring: overviewQuery,
        response: { 200: overviewSchema, ...errorResponses },
      },
      ...readsExports,
    },
    async (request, reply) => {
      const overview = await readOverview(context, teamOf(request), request.query);
      // As text, which is sent unchanged: checking many exports against the schema takes longer than reading them.
      return reply
        .type('application/json; charset=utf-8')
        .send(JSON.stringify(overview) as unknown as Overview);
    },
  );
}
