import type { LiveBatchExport, Model } from '../../../domain/batch_export.ts';
import { undecidedRanges } from '../../../domain/due_intervals.ts';
import { firstIntervalEndingFrom, intervalContaining } from '../../../domain/intervals.ts';
import type { Pool } from '../../../journal/database.ts';
import type { Logger } from '../../../telemetry/logger.ts';
import {
  calmConditions,
  exportConditions,
  intervalLetters,
  type ExportCondition,
  type Overview,
  type OverviewItem,
  type OverviewQuery,
} from '../../schemas/console_overview.ts';
import type { LagResponse } from '../../schemas/lag.ts';
import { lagsOf } from '../lag.ts';
import { conditionOf, readLedgerSummaries } from './export_conditions.ts';
import {
  maxCells,
  readNewestEntries,
  readVolumes,
  toBuckets,
  volumeOf,
  type HourlyVolume,
  type VolumeEntry,
} from './newest_entries.ts';
import { newestIntervals, type LedgerEntry } from './newest_intervals.ts';

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

/** An export with what decides its place in the list. */
interface RankedExport extends ExportRow {
  readonly condition: ExportCondition;
  /** Null if this version cannot read the schedule. */
  readonly lag: LagResponse | null;
}

/**
 * Reads the live exports of a project for the page that lists them, with a fixed number of statements. Intervals and
 * volumes, the larger part by far, are read only of those that are shown.
 */
export async function readOverview(
  { pool, logger }: { readonly pool: Pool; readonly logger: Logger },
  teamId: number,
  { limit, search }: OverviewQuery,
): Promise<Overview> {
  const exports = await readExports(pool, teamId);
  const now = exports[0]?.now ?? new Date().toISOString();
  const [summaries, lags] = await Promise.all([
    readLedgerSummaries(pool, exports, now),
    lagsOf(pool, exports, (id, error) => {
      logger.error({ err: error, batch_export_id: id }, 'The lag of a batch export cannot be computed.');
    }),
  ]);
  const ranked = exports.map((row): RankedExport => {
    const lag = lags.get(row.id) ?? null;
    return { ...row, lag, condition: conditionOf(row.paused, summaries.get(row.id), lag) };
  });
  const found = ranked.filter(matches(search)).sort(byAttention);
  return {
    now,
    count: exports.length,
    needing_attention: ranked.filter(({ condition }) => !calmConditions.has(condition)).length,
    found: found.length,
    exports: await toItems(pool, found.slice(0, limit), now),
  };
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

/** Whether an export has the text in its name, its destination or its id. */
const matches = (search: string): ((row: ExportRow) => boolean) => {
  const wanted = search.trim().toLowerCase();
  return ({ name, destination, id }) => `${name} ${destination} ${id}`.toLowerCase().includes(wanted);
};

async function toItems(pool: Pool, shown: readonly RankedExport[], now: string): Promise<OverviewItem[]> {
  const [entries, volumes, problems] = await Promise.all([
    readNewestEntries(pool, shown, now),
    readVolumes(pool, shown, now),
    readProblems(pool, shown),
  ]);
  const time = new Date(now);
  return shown.map((row) => {
    const stored = entries.get(row.id) ?? [];
    return toItem(row, {
      stored,
      volumes: volumes.get(row.id) ?? stored.map((entry) => volumeOf(entry, time)),
      problem: problems.get(row.id) ?? null,
      now: time,
    });
  });
}

/** The latest error of each export with a condition that one explains. */
async function readProblems(
  pool: Pool,
  exports: readonly RankedExport[],
): Promise<ReadonlyMap<string, string | null>> {
  const troubled = exports.filter(({ condition }) => ['failing', 'gap', 'held'].includes(condition));
  if (troubled.length === 0) return new Map();
  const { rows } = await pool.query<{ id: string; problem: string | null }>(
    `select export.id, newest.latest_error as problem from unnest($1::uuid[]) as export (id)
     cross join lateral (
       select run.latest_error from exportd.intervals interval
       join exportd.batch_export_runs run on run.id = interval.run_id
       where interval.batch_export_id = export.id and interval.status <> 'exported'
         and interval.status in ('failed', 'gap', 'held')
       order by interval.data_interval_start desc limit 1
     ) newest`,
    [troubled.map(({ id }) => id)],
  );
  return new Map(rows.map(({ id, problem }) => [id, problem]));
}

interface ItemFacts {
  readonly stored: readonly VolumeEntry[];
  readonly volumes: readonly HourlyVolume[];
  readonly problem: string | null;
  readonly now: Date;
}

function toItem(row: RankedExport, { stored, volumes, problem, now }: ItemFacts): OverviewItem {
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
    problem,
    behind_intervals: lag?.intervals ?? null,
    fresh_until: lag?.last_completed_interval_end ?? null,
    next_run_at: lag === null ? null : nextRunAt(row.state, now),
    cells: toCells(intervals),
    ...toBuckets(volumes),
  };
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

const rankOf = (condition: ExportCondition): number => exportConditions.indexOf(condition);

/** Those that need attention first, then the least fresh, then by name. */
const byAttention = (one: RankedExport, other: RankedExport): number =>
  rankOf(one.condition) - rankOf(other.condition) ||
  (other.lag?.intervals ?? 0) - (one.lag?.intervals ?? 0) ||
  one.name.localeCompare(other.name) ||
  one.id.localeCompare(other.id);
