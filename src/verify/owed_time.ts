import { backfillDecider, type BackfillEvent, type BackfillStatus, rangeOfPlan } from '../domain/backfill.ts';
import {
  batchExportDecider,
  type BatchExportEvent,
  type BatchExportState,
  type LiveBatchExport,
  type SkipReason,
} from '../domain/batch_export.ts';
import type { Recorded } from '../domain/event.ts';
import { type DataInterval, intervalContaining, type ScheduleRevision } from '../domain/intervals.ts';
import type { Pool } from '../journal/database.ts';

// Sets of time: half-open ranges that are sorted, disjoint and not adjacent.

const at = (time: string): number => Date.parse(time);

/** The time that is in any of the ranges. */
export function union(ranges: readonly DataInterval[]): DataInterval[] {
  const joined: DataInterval[] = [];
  const sorted = ranges
    .filter(({ start, end }) => at(start) < at(end))
    .toSorted((one, other) => at(one.start) - at(other.start));
  for (const range of sorted) {
    const last = joined.at(-1);
    if (!last || at(range.start) > at(last.end)) joined.push(range);
    else if (at(range.end) > at(last.end)) joined[joined.length - 1] = { start: last.start, end: range.end };
  }
  return joined;
}

/** The time that is in any of the ranges and in none of the others. */
export function subtract(
  ranges: readonly DataInterval[],
  ...others: readonly (readonly DataInterval[])[]
): DataInterval[] {
  const removed = union(others.flat());
  const left: DataInterval[] = [];
  let next = 0;
  for (const range of union(ranges)) {
    let { start } = range;
    // A removed range may reach into the following ranges, so it is passed only when it has ended.
    for (; next < removed.length; next += 1) {
      const gap = removed[next];
      if (!gap || at(gap.start) >= at(range.end)) break;
      if (at(gap.start) > at(start)) left.push({ start, end: gap.start });
      if (at(gap.end) > at(start)) start = gap.end;
      if (at(gap.end) >= at(range.end)) break;
    }
    if (at(start) < at(range.end)) left.push({ start, end: range.end });
  }
  return left;
}

/** The time that is in both. */
export const intersect = (ranges: readonly DataInterval[], others: readonly DataInterval[]): DataInterval[] =>
  subtract(ranges, subtract(ranges, others));

/** Why an export owes no manifest of a range of intervals, or not yet. */
export type NotOwedReason = SkipReason | 'deleted' | 'pending' | 'backfill paused' | 'backfill cancelled';

/** A range of intervals without an owed manifest. */
interface NotOwedRange extends DataInterval {
  readonly reason: NotOwedReason;
}

/** What people requested of an export, without what became of it. */
interface ExportHistory {
  /** The events of the export in order, without `IntervalScheduled`, of which there may be millions. */
  readonly events: readonly Recorded<BatchExportEvent>[];
  /** The end of the newest interval that the schedule created a run for; null if there is none. */
  readonly scheduledUntil: string | null;
  readonly backfills: readonly BackfillHistory[];
  /** The time of which only the ledger knows that it was exported: its runs and backfills were collapsed. */
  readonly collapsed?: readonly DataInterval[];
}

/** A backfill, as far as it reached. */
export interface BackfillHistory {
  /** The time that it exports. */
  readonly whole: DataInterval;
  readonly status: BackfillStatus;
  /** The part of it without runs; null if all intervals have one. */
  readonly remaining: DataInterval | null;
  /** The intervals of the runs that it waits for, or waited for when it was cancelled. */
  readonly active: readonly DataInterval[];
  readonly lastEventAt: string;
}

/** The time of the check, and how long after its end an interval may lack a manifest. */
interface OwedOptions {
  readonly now: Date;
  readonly graceMs: (interval: DataInterval) => number;
}

/** The time of which an export owes manifests. Its ranges consist of whole intervals. */
export interface OwedTime {
  readonly owed: readonly DataInterval[];
  /** All other time between the creation and now, and of backfills. The ranges are disjoint and sorted. */
  readonly notOwed: readonly NotOwedRange[];
  readonly revisions: readonly ScheduleRevision[];
}

/**
 * Derives what an export owes from what people requested: the intervals of its schedule since its creation, and those
 * of its backfills. Time that the schedule says it skipped counts as skipped only if its reason held then.
 */
export function owedTime(history: ExportHistory, options: OwedOptions): OwedTime {
  const schedule = foldSchedule(history.events);
  const scheduled = owedBySchedule(schedule, history.scheduledUntil, options);
  const backfilled = history.backfills.map((backfill) =>
    owedByBackfill(backfill, schedule.deletedAt !== null, options),
  );
  const all = [scheduled, ...backfilled];
  const owed = union([...all.flatMap((one) => one.owed), ...(history.collapsed ?? [])]);
  const notOwed: NotOwedRange[] = [];
  for (const { reason, ...range } of all.flatMap((one) => one.notOwed))
    notOwed.push(...subtract([range], owed, notOwed).map((left) => ({ ...left, reason })));
  return {
    owed,
    notOwed: notOwed.toSorted((one, other) => Date.parse(one.start) - Date.parse(other.start)),
    revisions: schedule.live.revisions,
  };
}

type Owed = Pick<OwedTime, 'owed' | 'notOwed'>;

interface FoldedSchedule {
  readonly first: string;
  /** The newest state; of a deleted export the one before. */
  readonly live: LiveBatchExport;
  readonly skipped: readonly NotOwedRange[];
  readonly deletedAt: Date | null;
}

function foldSchedule(events: readonly Recorded<BatchExportEvent>[]): FoldedSchedule {
  let state: BatchExportState = batchExportDecider.initialState;
  let folded: FoldedSchedule | undefined;
  for (const event of events) {
    if (event.type === 'BatchExportDeleted' && folded)
      folded = { ...folded, deletedAt: new Date(event.recorded_at) };
    if (event.type === 'IntervalsSkipped' && folded) {
      const { reason } = event.data;
      const justified = timeToSkip(folded.live, reason, new Date(event.recorded_at));
      const ranges = intersect([event.data], justified).map((range) => ({ ...range, reason }));
      folded = { ...folded, skipped: [...folded.skipped, ...ranges] };
    }
    state = batchExportDecider.evolve(state, event);
    if (state.status !== 'live') continue;
    folded = folded
      ? { ...folded, live: state }
      : { first: state.scheduled_until, live: state, skipped: [], deletedAt: null };
  }
  if (!folded) throw new RangeError('An export starts with its creation.');
  return folded;
}

/** All time, for ranges that are open on one side. */
const [earliest, latest] = ['0001-01-01T00:00:00.000Z', '9999-01-01T00:00:00.000Z'];

/** The time that a schedule skips for a reason, decided at an instant. */
function timeToSkip(live: LiveBatchExport, reason: SkipReason, at: Date): DataInterval[] {
  const { revisions, definition, paused, paused_recorded_at } = live;
  const startOf = (instant: Date) => intervalContaining(revisions, instant).start;
  switch (reason) {
    case 'paused':
      // Intervals that ended before the pause stay due.
      return paused_recorded_at === null
        ? []
        : [{ start: startOf(new Date(paused_recorded_at)), end: paused ? latest : startOf(at) }];
    case 'before start_at':
      return definition.start_at === null
        ? []
        : // The interval that ends at start_at is exported; it contains the millisecond before.
          [{ start: earliest, end: startOf(new Date(Date.parse(definition.start_at) - 1)) }];
    case 'after end_at':
      return definition.end_at === null ? [] : [{ start: startOf(new Date(definition.end_at)), end: latest }];
  }
}

/** Why a schedule will skip intervals that it has not decided about. */
const skipReasons = ({ paused }: LiveBatchExport): SkipReason[] => [
  ...(paused ? (['paused'] as const) : []),
  'before start_at',
  'after end_at',
];

function owedBySchedule(
  { first, live, skipped, deletedAt }: FoldedSchedule,
  scheduledUntil: string | null,
  { now, graceMs }: OwedOptions,
): Owed {
  const { revisions } = live;
  const until = deletedAt ?? now;
  const ended = intervalContaining(revisions, until).start;
  const undecided = [{ start: scheduledUntil ?? first, end: ended }];
  const young = { start: firstWithinGrace(revisions, until, graceMs), end: ended };
  const notOwed: NotOwedRange[] = [
    ...skipped,
    ...skipReasons(live).flatMap((reason) =>
      intersect(undecided, timeToSkip(live, reason, until)).map((range) => ({ ...range, reason })),
    ),
    ...(deletedAt
      ? // Deleting an export cancels its runs.
        [{ start: young.start, end: intervalContaining(revisions, now).start, reason: 'deleted' as const }]
      : [{ ...young, reason: 'pending' as const }]),
  ].flatMap(({ reason, ...range }) =>
    intersect([range], [{ start: first, end: latest }]).map((left) => ({ ...left, reason })),
  );
  return { owed: subtract([{ start: first, end: ended }], notOwed), notOwed };
}

/** The start of the first interval whose grace period has not passed. */
function firstWithinGrace(
  revisions: readonly ScheduleRevision[],
  until: Date,
  graceMs: OwedOptions['graceMs'],
): string {
  let { start } = intervalContaining(revisions, until);
  for (;;) {
    const previous = intervalContaining(revisions, new Date(Date.parse(start) - 1));
    if (Date.parse(previous.end) + graceMs(previous) <= until.getTime()) return start;
    start = previous.start;
  }
}

function owedByBackfill(
  { whole, status, remaining, active, lastEventAt }: BackfillHistory,
  isDeleted: boolean,
  { now, graceMs }: OwedOptions,
): Owed {
  const without = (reason: NotOwedReason): Owed => {
    const unreached = union([...(remaining ? [remaining] : []), ...active]);
    return {
      owed: subtract([whole], unreached),
      notOwed: unreached.map((range) => ({ ...range, reason })),
    };
  };
  if (status === 'Completed') return { owed: union([whole]), notOwed: [] };
  if (status === 'Cancelled') return without('backfill cancelled');
  if (isDeleted) return without('deleted');
  if (status === 'Paused') return without('backfill paused');
  // A backfill that makes no progress owes everything.
  const [oldest = whole] = active;
  const isMoving = Date.parse(lastEventAt) + graceMs(oldest) > now.getTime();
  return isMoving ? without('pending') : { owed: union([whole]), notOwed: [] };
}

/** Reads what was requested of an export from the journal, and the time of the database clock. */
export async function readHistory(
  pool: Pool,
  batchExportId: string,
): Promise<ExportHistory & { readonly now: Date }> {
  const { rows: events } = await pool.query<Recorded<BatchExportEvent>>(
    `select event_type as type, data, recorded_at from exportd.journal_events
     where stream_type = 'batch_export' and stream_id = $1
       and event_type not in ('IntervalScheduled', 'HistoryCollapsed')
     order by stream_version`,
    [batchExportId],
  );
  const { rows: scheduled } = await pool.query<{ now: string; until: string | null }>(
    `select clock_timestamp() as now, max((data->>'end')::timestamptz) as until from exportd.journal_events
     where stream_type = 'batch_export' and stream_id = $1 and event_type = 'IntervalScheduled'`,
    [batchExportId],
  );
  return {
    events,
    scheduledUntil: scheduled[0]?.until ?? null,
    now: new Date(scheduled[0]?.now ?? Number.NaN),
    backfills: await readBackfills(pool, batchExportId),
    collapsed: await readCollapsed(pool, batchExportId),
  };
}

async function readCollapsed(pool: Pool, batchExportId: string): Promise<DataInterval[]> {
  const { rows } = await pool.query<DataInterval>(
    `select lower(part) as start, upper(part) as end from (
       select unnest(range_agg(tstzrange(data_interval_start, data_interval_end))) as part
       from exportd.intervals where batch_export_id = $1 and collapsed_generation is not null) exported`,
    [batchExportId],
  );
  return rows;
}

/** The backfills of an export, retries included. */
async function readBackfills(pool: Pool, batchExportId: string): Promise<BackfillHistory[]> {
  const { rows } = await pool.query<Recorded<BackfillEvent> & { stream_id: string }>(
    `select stream_id, event_type as type, data, recorded_at from exportd.journal_events
     where stream_type = 'backfill' and stream_id in (
       select (data->>'backfill_id')::uuid from exportd.journal_events
       where stream_type = 'batch_export' and stream_id = $1
         and event_type in ('BackfillRequested', 'RunRetryRequested'))
     order by stream_id, stream_version`,
    [batchExportId],
  );
  const streams = Map.groupBy(rows, ({ stream_id }) => stream_id);
  return [...streams.values()].flatMap(foldBackfill);
}

function foldBackfill(events: readonly Recorded<BackfillEvent>[]): BackfillHistory[] {
  const intervals = new Map<string, DataInterval>();
  let state = backfillDecider.initialState;
  for (const event of events) {
    if (event.type === 'BackfillRunCreated') intervals.set(event.data.run_id, event.data);
    if (event.type === 'BackfillRunContinued') {
      const continued = intervals.get(event.data.run_id);
      if (continued) intervals.set(event.data.next_run_id, continued);
    }
    state = backfillDecider.evolve(state, event);
    // What happens after the cancellation does not change what the backfill reached.
    if (state.status === 'Cancelled') break;
  }
  if (state.status === 'Absent') return [];
  const whole = rangeOfPlan(state.spec.plan);
  // No person requested a repair.
  if (!whole) return [];
  return [
    {
      whole,
      status: state.status,
      remaining: state.remaining,
      active: state.active.flatMap((id) => intervals.get(id) ?? []),
      lastEventAt: events.at(-1)?.recorded_at ?? '',
    },
  ];
}
