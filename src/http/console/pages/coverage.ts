import { undecidedRanges } from '../../../domain/batch_export.ts';
import { countIntervals, type DataInterval, intervalContaining } from '../../../domain/intervals.ts';
import type { Pool } from '../../../journal/database.ts';
import { readScheduleWithHoles, type ScheduleWithHoles } from '../../../projections/export_conditions.ts';
import { skipStatusOf } from '../../../projections/intervals.ts';
import { allRows } from '../../../source/row_selection.ts';
import { ApiError } from '../../api_error.ts';
import type { DryRunService } from '../../backfills/dry_run.ts';
import { backfillsPath } from '../../backfills/schema.ts';
import { type BatchExportRow, requireBatchExport } from '../../batch_exports/read_model.ts';
import { disconnectSignal, readsExports, teamOf } from '../../requests.ts';
import { type ProjectRoutes } from '../../route_context.ts';
import { sourceError } from '../../plugins/errors.ts';
import { unreadable } from '../../paging.ts';
import { errorResponses } from '../../schemas.ts';
import { nextRunAt } from './overview.ts';
import {
  type CoverageKind,
  coverageSchema,
  type CoverageSegment,
  type FirstRowResponse,
  firstRowSchema,
} from './schema.ts';

/** A range of one kind. Milliseconds since 1970. */
interface CoverageRange {
  readonly start: number;
  readonly end: number;
  readonly kind: CoverageKind;
}

/** The same with times in ISO 8601. */
type KnownRange = DataInterval & Pick<CoverageRange, 'kind'>;

/** What the ledger and the schedule say of an export, of which the later parts win over the earlier ones. */
interface CoverageFacts {
  /** From the first to the last exported interval; null without one. */
  readonly exported: DataInterval | null;
  readonly holes: readonly DataInterval[];
  /** What unfinished backfills still export. */
  readonly backfills: readonly DataInterval[];
  /** What the schedule has not decided about. */
  readonly open: readonly KnownRange[];
  /** Of the ledger: all that is not exported, and what is within `open` and `backfills`. */
  readonly stored: readonly KnownRange[];
}

/** Ranges of the ledger that are read. More of them are thinner than a pixel. */
const maxRanges = 200;

/**
 * Divides the time from the first known interval to `until` into adjacent ranges. Of the ledger only intervals that are not
 * exported are needed: between the first and the last exported one, all others are, except in holes.
 */
export function coverageOf(facts: CoverageFacts, until: string): CoverageRange[] {
  const { exported, holes, backfills, open, stored } = facts;
  const layers = [
    ...(exported ? [{ ...exported, kind: 'exported' as const }] : []),
    ...holes.map((hole) => ({ ...hole, kind: 'missing' as const })),
    ...open,
    ...backfills.map((backfill) => ({ ...backfill, kind: 'owed' as const })),
    ...stored,
  ].map(({ start, end, kind }) => ({ start: Date.parse(start), end: Date.parse(end), kind }));
  const end = Date.parse(until);
  const start = Math.min(end, ...layers.map((layer) => layer.start));
  const ranges = layers.reduce(paint, start < end ? [{ start, end, kind: 'missing' }] : []);
  return merge(ranges.toSorted((one, other) => one.start - other.start));
}

/** Puts a range over others, as far as these reach. */
function paint(ranges: readonly CoverageRange[], added: CoverageRange): CoverageRange[] {
  const first = ranges.reduce((least, { start }) => Math.min(least, start), Number.POSITIVE_INFINITY);
  const last = ranges.reduce((most, { end }) => Math.max(most, end), 0);
  const within = { ...added, start: Math.max(first, added.start), end: Math.min(last, added.end) };
  if (within.start >= within.end) return [...ranges];
  return [
    ...ranges.flatMap((range) =>
      range.end <= within.start || range.start >= within.end
        ? [range]
        : [
            { ...range, end: within.start },
            { ...range, start: within.end },
          ].filter(({ start, end }) => start < end),
    ),
    within,
  ];
}

const merge = (ranges: readonly CoverageRange[]): CoverageRange[] =>
  ranges.reduce<CoverageRange[]>((merged, range) => {
    const last = merged.at(-1);
    if (last?.kind === range.kind && last.end === range.start)
      return [...merged.slice(0, -1), { ...last, end: range.end }];
    return [...merged, range];
  }, []);

/** SQL: the kind of an entry of the ledger. */
const kindOfStatus = `case status when 'unsettled' then 'exported' when 'running' then 'owed' when 'gap' then 'failed'
  else status end`;

/** Exported intervals that are read of ranges that are being exported. Older ones of a longer range are shown as owed. */
const maxExported = 100_000;

/** SQL: adjacent entries of the same kind as one, the newest first. $2 and $3: ranges of which exported entries are read. */
const storedRanges = `with entry as (
    select data_interval_start as starts, data_interval_end as ends, ${kindOfStatus} as kind
    from exportd.intervals where batch_export_id = $1 and status <> 'exported'
    -- Ranges can overlap.
    union (
      select entry.data_interval_start, entry.data_interval_end, 'exported'
      from unnest($2::timestamptz[], $3::timestamptz[]) as wanted (starts, ends)
      join exportd.intervals entry on entry.batch_export_id = $1 and entry.status = 'exported'
        and entry.data_interval_start >= wanted.starts and entry.data_interval_end <= wanted.ends
      order by 1 desc limit ${maxExported})
  ), marked as (
    select *, (lag(ends) over (order by starts) = starts and lag(kind) over (order by starts) = kind) is not true as is_first
    from entry
  ), numbered as (select *, count(*) filter (where is_first) over (order by starts) as number from marked)
  select min(starts) as start, max(ends) as end, kind from numbered group by number, kind
  order by 1 desc limit ${maxRanges + 1}`;

interface LedgerRow {
  readonly exported: DataInterval | null;
  readonly backfills: readonly DataInterval[];
  readonly backfill_seconds: number | null;
  readonly seconds: number | null;
}

/** What is read of the ledger, the backfills and the newest runs of an export besides `storedRanges`. */
const ledger = `select
    (select json_build_object('start', min(data_interval_start), 'end', (
       select data_interval_end from exportd.intervals where batch_export_id = $1 and manifest_run_id is not null
       order by data_interval_start desc limit 1))
     from (select data_interval_start from exportd.intervals where batch_export_id = $1 and manifest_run_id is not null
       order by data_interval_start limit 1) oldest having count(*) > 0) as exported,
    (select coalesce(json_agg(json_build_object('start', start_at, 'end', end_at)), '[]') from (
       select start_at, end_at from exportd.backfills
       where batch_export_id = $1 and finished_at is null and kind in ('range', 'retry')
       order by start_at desc limit ${maxRanges}) backfill) as backfills,
    pace.*
  from (
    select percentile_cont(0.5) within group (order by seconds) filter (where backfill_id is not null) as backfill_seconds,
      percentile_cont(0.5) within group (order by seconds) as seconds
    from (select backfill_id, extract(epoch from finished_at - created_at)::float8 as seconds
      from exportd.batch_export_runs where batch_export_id = $1 and status = 'Completed'
      order by position desc limit 200) newest) pace`;

/** Reads what is exported of an export's time. */
async function readCoverage(
  pool: Pool,
  id: string,
  { state, holes }: ScheduleWithHoles,
  until: string,
  now: Date,
) {
  const undecided = undecidedRanges(state, now);
  const { rows: found } = await pool.query<LedgerRow>(ledger, [id]);
  const row = found[0];
  const backfills = row?.backfills ?? [];
  const wanted = [...undecided, ...backfills];
  const { rows: stored } = await pool.query<KnownRange>(storedRanges, [
    id,
    wanted.map(({ start }) => start),
    wanted.map(({ end }) => end),
  ]);
  const facts = {
    exported: row?.exported ?? null,
    backfills,
    holes: holes.slice(0, maxRanges),
    open: undecided.map(({ start, end, reason }) => ({
      start,
      end,
      kind: reason === null ? ('owed' as const) : skipStatusOf(reason),
    })),
    stored: stored.slice(0, maxRanges),
  };
  // Of what is older, not all is known.
  const oldest = [stored[maxRanges]?.end, holes[maxRanges]?.end]
    .map((end) => Date.parse(end ?? ''))
    .filter((end) => end > 0);
  const from = Math.max(0, ...oldest);
  const ranges = coverageOf(facts, until)
    .filter(({ end }) => end > from)
    .map((range) => ({ ...range, start: Math.max(range.start, from) }));
  return {
    is_complete: from === 0,
    run_seconds: row?.backfill_seconds ?? row?.seconds ?? null,
    segments: ranges.map(({ start, end, kind }): CoverageSegment => {
      const range = { start: new Date(start).toISOString(), end: new Date(end).toISOString() };
      return { ...range, kind, intervals: countIntervals(state.revisions, range) };
    }),
  };
}

const firstRowTimeoutMs = 3_000;

/** Reads when the first row of an export's model was inserted, by the index of the source. Says why it is not known. */
async function readFirstRow(
  { source, logger }: Pick<DryRunService, 'source' | 'logger'>,
  { model, team_id }: Pick<BatchExportRow, 'model' | 'team_id'>,
  signal: AbortSignal,
): Promise<FirstRowResponse> {
  const interval = { start: '1970-01-01T00:00:00.000Z', end: new Date().toISOString() };
  const range = { model, team_id, interval, selection: allRows };
  const timeout = AbortSignal.timeout(firstRowTimeoutMs);
  try {
    const sample = { rows: 1, cutsValues: true, signal: AbortSignal.any([signal, timeout]) };
    const block = await source.sample(range, sample);
    return { at: block && new Date(block.first.inserted_at).toISOString(), detail: null };
  } catch (error) {
    if (signal.aborted) throw error;
    logger.warn({ err: error }, 'Could not read the first row of the source.');
    if (timeout.aborted)
      return {
        at: null,
        detail: `The source did not return its first row within ${firstRowTimeoutMs / 1_000} seconds.`,
      };
    const known = sourceError(error);
    if (!(known instanceof ApiError)) throw error;
    return { at: null, detail: known.message };
  }
}

/** How much of the source's time an export covers. */
export const coverageRoutes: ProjectRoutes = (app, context) => {
  const { pool, settings, shares, exportLink } = context;

  app.get(
    '/console/batch_exports/:batch_export_id/coverage',
    {
      ...readsExports,
      schema: { hide: true, params: backfillsPath, response: { 200: coverageSchema, ...errorResponses } },
    },
    async (request) => {
      const { batch_export_id: id } = request.params;
      await requireBatchExport(pool, teamOf(request), id);
      const schedule = await readScheduleWithHoles(pool, id);
      if (!schedule) throw unreadable('batch export', id);
      const { revisions } = schedule.state;
      const now = new Date(schedule.now);
      const { start: until } = intervalContaining(revisions, now);
      return {
        now: schedule.now,
        ...(await readCoverage(pool, id, schedule, until, now)),
        newest_interval: intervalContaining(revisions, new Date(Date.parse(until) - 1)),
        next_run_at: nextRunAt(schedule.state, now),
        concurrent_runs: settings.EXPORTD_BACKFILL_CONCURRENCY,
        temporal_ui: exportLink(id),
      };
    },
  );

  app.get(
    '/console/batch_exports/:batch_export_id/first_row',
    {
      ...readsExports,
      schema: { hide: true, params: backfillsPath, response: { 200: firstRowSchema, ...errorResponses } },
    },
    async (request, reply) => {
      const batchExport = await requireBatchExport(pool, teamOf(request), request.params.batch_export_id);
      const signal = disconnectSignal(reply);
      return shares.previews(request, signal, () => readFirstRow(context, batchExport, signal));
    },
  );
};
