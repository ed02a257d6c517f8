import type { DecidedDifference } from './difference.ts';
import { CommandRejected, type FailureTime } from './errors.ts';
import type { Decider, JsonValue, Recorded } from './event.ts';
import {
  type DataInterval,
  firstIntervalEndingFrom,
  intervalContaining,
  parseInterval,
  previousBoundary,
  type ScheduleDefinition,
  type ScheduleRevision,
  withinBounds,
} from './intervals.ts';
import type { AutoPause } from './auto_pause.ts';

const maxOffsetDay: Readonly<Record<string, number>> = { week: 6, month: 27 };

/** Whether an interval can start at an hour other than midnight: day, week and month. */
export const supportsOffsets = (interval: string): boolean => {
  const unit = parseInterval(interval);
  return unit !== undefined && unit.name !== 'minutes';
};

/** Whether an interval can start on another day than its first: week and month. */
export const supportsDayOffset = (interval: string): boolean => interval in maxOffsetDay;

/**
 * Checks that the offsets fit the interval and that `start_at` is before `end_at`.
 * @param changes the fields that the command sets; an error about the bounds names one of them.
 * @throws CommandRejected with the invalid field.
 */
export function requireConsistent(
  {
    interval,
    offset_hour,
    offset_day,
    start_at,
    end_at,
  }: ScheduleDefinition & Pick<BatchExportDefinition, 'start_at' | 'end_at'>,
  changes: object,
): void {
  if (offset_hour !== 0 && !supportsOffsets(interval))
    throw invalidField(`offset_hour is not applicable to the interval '${interval}'.`, 'offset_hour');
  const max = maxOffsetDay[interval] ?? 0;
  if (offset_day !== 0 && max === 0)
    throw invalidField(`offset_day is not applicable to the interval '${interval}'.`, 'offset_day');
  if (offset_day > max) throw invalidField(`Must be at most ${max}.`, 'offset_day');
  if (start_at !== null && end_at !== null && new Date(start_at) >= new Date(end_at))
    throw 'end_at' in changes
      ? invalidField('`end_at` must be after `start_at`.', 'end_at')
      : invalidField('`start_at` must be before `end_at`.', 'start_at');
}

const invalidField = (detail: string, attr: string): CommandRejected =>
  new CommandRejected('invalid_input', detail, attr);

/** The data models that can be exported. */
export const models = ['events', 'persons'] as const;
export type Model = (typeof models)[number];

/** The user-defined part of a batch export. The destination's config is stored separately, in numbered versions. */
export interface BatchExportDefinition extends ScheduleDefinition {
  readonly name: string;
  readonly model: Model;
  readonly destination_type: string;
  /** The current version of the destination's config. */
  readonly config_version: number;
  /** ISO 8601 or null. Intervals that end before it get no run. */
  readonly start_at: string | null;
  /** ISO 8601 or null. Intervals that end after it get no run. */
  readonly end_at: string | null;
  readonly dialect_query: string | null;
  /**
   * The days after which rules of the bucket delete what was exported; null if they delete nothing. For rules of which
   * the bucket says nothing when an object is written, because they were added later.
   */
  readonly retention_days: number | null;
}

/** Why an interval gets no scheduled run. */
export type SkipReason = 'paused' | 'before start_at' | 'after end_at';

/** A range of whole intervals that get no scheduled run. */
export interface SkippedRange extends DataInterval {
  readonly reason: SkipReason;
}

export type BatchExportEvent =
  | {
      type: 'BatchExportCreated';
      data: { team_id: number; definition: BatchExportDefinition; scheduled_until: string; paused: boolean };
    }
  | {
      type: 'BatchExportUpdated';
      data: { changes: Partial<BatchExportDefinition>; schedule_effective_from: string | null };
    }
  | { type: 'BatchExportPaused'; data: { last_paused_at: string | null } & Partial<AutoPause> }
  /** A PATCH set the field directly. */
  | { type: 'BatchExportLastPausedAtSet'; data: { last_paused_at: string | null } }
  | { type: 'BatchExportUnpaused'; data: Record<string, never> }
  | { type: 'IntervalsSkipped'; data: SkippedRange }
  | {
      type: 'BackfillRequested';
      data: {
        backfill_id: string;
        start_at: string;
        end_at: string;
        allow_shrink: boolean;
        only?: 'missing';
        rewrite?: true;
      };
    }
  | {
      type: 'RunRetryRequested';
      data: {
        backfill_id: string;
        run_id: string;
      } & DataInterval;
    }
  /** A person has decided about rows of an interval that its files have and the source lacks. */
  | { type: 'DifferenceDecided'; data: DecidedDifference & DataInterval }
  /** The failed runs of these times are exported again, by a backfill of their intervals. */
  | {
      type: 'FailedRunsRetryRequested';
      data: { backfill_id: string; runs: number } & FailureTime;
    }
  | { type: 'IntervalScheduled'; data: { run_id: string } & DataInterval }
  | { type: 'BatchExportDeleted'; data: Record<string, never> }
  /** Replaces the streams of old runs and backfills. */
  | { type: 'HistoryCollapsed'; data: HistoryDigest };

/** What is left of old runs and backfills. */
export interface HistoryDigest {
  /** The rows of their intervals in the ledger, without null. Empty for a deleted export. */
  readonly intervals: readonly Readonly<Record<string, JsonValue>>[];
  readonly run_ids: readonly string[];
  readonly backfill_ids: readonly string[];
}

export type BatchExportState =
  | { readonly status: 'absent' }
  | { readonly status: 'deleted'; readonly team_id: number }
  | LiveBatchExport;

export interface LiveBatchExport {
  readonly status: 'live';
  readonly team_id: number;
  readonly definition: BatchExportDefinition;
  /** All revisions of the schedule, oldest first. */
  readonly revisions: readonly ScheduleRevision[];
  readonly paused: boolean;
  /** When the latest pause was recorded; null if it was never paused. */
  readonly paused_recorded_at: string | null;
  /** Each interval that ends at or before this boundary has a run or is skipped. */
  readonly scheduled_until: string;
  /** Skipped ranges after `scheduled_until`, oldest first. */
  readonly skips_ahead: readonly SkippedRange[];
}

/** Folds the stream of a batch export. */
export const batchExportDecider: Decider<BatchExportState, BatchExportEvent> = {
  streamType: 'batch_export',
  initialState: { status: 'absent' },
  evolve,
};

function evolve(state: BatchExportState, event: Recorded<BatchExportEvent>): BatchExportState {
  if (event.type === 'BatchExportCreated') {
    const { team_id, definition, scheduled_until, paused } = event.data;
    return {
      status: 'live',
      team_id,
      definition,
      revisions: [revisionOf(definition, null)],
      paused,
      paused_recorded_at: paused ? event.recorded_at : null,
      scheduled_until,
      skips_ahead: [],
    };
  }
  if (state.status !== 'live') return state;
  switch (event.type) {
    case 'BatchExportUpdated': {
      const definition = { ...state.definition, ...event.data.changes };
      const effectiveFrom = event.data.schedule_effective_from;
      // A second change before the first takes effect replaces it, because both take effect at the same boundary.
      const kept = state.revisions.filter(
        (revision) => revision.effective_from === null || revision.effective_from !== effectiveFrom,
      );
      return {
        ...state,
        definition,
        revisions:
          effectiveFrom === null ? state.revisions : [...kept, revisionOf(definition, effectiveFrom)],
      };
    }
    case 'BatchExportPaused':
      return { ...state, paused: true, paused_recorded_at: event.recorded_at };
    case 'BatchExportUnpaused':
      return { ...state, paused: false };
    case 'IntervalsSkipped':
      return advancePastSkips({ ...state, skips_ahead: oldestFirst([...state.skips_ahead, event.data]) });
    case 'IntervalScheduled':
      return advancePastSkips({ ...state, scheduled_until: event.data.end });
    case 'BatchExportDeleted':
      return { status: 'deleted', team_id: state.team_id };
    case 'BatchExportLastPausedAtSet':
    case 'BackfillRequested':
    case 'RunRetryRequested':
    case 'DifferenceDecided':
    case 'FailedRunsRetryRequested':
    case 'HistoryCollapsed':
      return state;
  }
}

/** Sorts ranges by start. A due interval can be skipped while the range of a pause is still ahead. */
const oldestFirst = (ranges: readonly SkippedRange[]): SkippedRange[] =>
  ranges.toSorted((one, other) => new Date(one.start).getTime() - new Date(other.start).getTime());

/** Advances `scheduled_until` past the skipped ranges that it has reached. */
function advancePastSkips(state: LiveBatchExport): LiveBatchExport {
  const [next, ...later] = state.skips_ahead;
  if (next?.start !== state.scheduled_until) return state;
  return advancePastSkips({ ...state, scheduled_until: next.end, skips_ahead: later });
}

const revisionOf = (definition: BatchExportDefinition, effective_from: string | null): ScheduleRevision => ({
  interval: definition.interval,
  timezone: definition.timezone,
  offset_hour: definition.offset_hour,
  offset_day: definition.offset_day,
  effective_from,
});

/** Creates an export. Its schedule starts with the interval that contains `now` (the database clock). */
export function decideCreate(
  state: BatchExportState,
  command: { team_id: number; definition: BatchExportDefinition; paused: boolean; now: Date },
): BatchExportEvent[] {
  if (state.status !== 'absent')
    throw new CommandRejected('conflict', 'This batch export already exists.', 'id');
  requireConsistent(command.definition, command.definition);
  const first = intervalContaining([revisionOf(command.definition, null)], command.now);
  return [
    {
      type: 'BatchExportCreated',
      data: {
        team_id: command.team_id,
        definition: command.definition,
        scheduled_until: first.start,
        paused: command.paused,
      },
    },
  ];
}

/** Pauses an export; no event if it is paused. `last_paused_at` is the caller's value for the field, or null. */
export function decidePause(
  state: BatchExportState,
  command: { last_paused_at: string | null },
): BatchExportEvent[] {
  if (requireLive(state).paused) return [];
  return [{ type: 'BatchExportPaused', data: { last_paused_at: command.last_paused_at } }];
}

/**
 * Unpauses an export and continues with the interval that contains `now`. Intervals that ended before the pause stay
 * due. Those that ended during the pause are skipped; with a `backfill_id` they are requested as a backfill, within
 * `start_at` and `end_at`.
 */
export function decideUnpause(
  state: BatchExportState,
  command: { now: Date; backfill_id: string | null },
): BatchExportEvent[] {
  const live = requireLive(state);
  if (!live.paused) return [];
  const events: BatchExportEvent[] = [{ type: 'BatchExportUnpaused', data: {} }];
  const missed = missedWhilePaused(live, command.now);
  if (missed) {
    events.push({ type: 'IntervalsSkipped', data: { ...missed, reason: 'paused' } });
    const backfillable = withinBounds(live.revisions, missed, live.definition);
    if (command.backfill_id !== null && backfillable)
      events.push({
        type: 'BackfillRequested',
        data: {
          backfill_id: command.backfill_id,
          start_at: backfillable.start,
          end_at: backfillable.end,
          allow_shrink: false,
        },
      });
  }
  return events;
}

function missedWhilePaused(live: LiveBatchExport, now: Date): DataInterval | undefined {
  const pausedAt = new Date(live.paused_recorded_at ?? live.scheduled_until);
  const decidedUntil = new Date(live.skips_ahead.at(-1)?.end ?? live.scheduled_until);
  const atPause = intervalContaining(live.revisions, pausedAt);
  const start = new Date(Math.max(new Date(atPause.start).getTime(), decidedUntil.getTime()));
  const end = new Date(intervalContaining(live.revisions, now).start);
  return start < end ? { start: start.toISOString(), end: end.toISOString() } : undefined;
}

/** Deletes an export; no event if it is deleted. */
export function decideDelete(state: BatchExportState): BatchExportEvent[] {
  return state.status === 'live' ? [{ type: 'BatchExportDeleted', data: {} }] : [];
}

/**
 * Returns the state of a live export.
 * @throws CommandRejected (`not_found`) otherwise, which the HTTP API returns as 404.
 */
export function requireLive(state: BatchExportState): LiveBatchExport {
  if (state.status !== 'live') throw new CommandRejected('not_found', 'Not found.');
  return state;
}

/** A range of ended intervals about which the schedule has recorded nothing yet. */
export interface UndecidedRange extends DataInterval {
  /** Why they will get no run; null if they are due. */
  readonly reason: SkipReason | null;
}

/** Those that the schedule still has to create a run for. */
export const dueRanges = (undecided: readonly UndecidedRange[]): DataInterval[] =>
  undecided.flatMap(({ start, end, reason }) => (reason === null ? [{ start, end }] : []));

/**
 * Returns the ended intervals about which the schedule has recorded nothing yet, as ranges, oldest first. They are due,
 * or will be skipped: those that ended after the pause of a paused export, before `start_at` or after `end_at`.
 */
export function undecidedRanges(live: LiveBatchExport, now: Date): UndecidedRange[] {
  const { revisions, paused, paused_recorded_at, scheduled_until, skips_ahead, definition } = live;
  const until = intervalContaining(revisions, now).start;
  const pausedFrom =
    paused && paused_recorded_at !== null
      ? intervalContaining(revisions, new Date(paused_recorded_at)).start
      : until;
  const starts = [scheduled_until, ...skips_ahead.map(({ end }) => end)];
  const ends = [...skips_ahead.map(({ start }) => start), until];
  return starts.flatMap((start, index) => {
    const between = { start, end: ends[index] ?? until };
    const wanted = withinBounds(revisions, between, definition) ?? { start: between.end, end: between.end };
    const stop = clamp(pausedFrom, wanted);
    const parts: readonly UndecidedRange[] = [
      { start, end: wanted.start, reason: reasonOutside(definition, wanted.start) },
      { start: wanted.start, end: stop, reason: null },
      { start: stop, end: wanted.end, reason: 'paused' },
      { start: wanted.end, end: between.end, reason: 'after end_at' },
    ];
    return parts.filter((part) => new Date(part.start) < new Date(part.end));
  });
}

/** Why intervals that end at or before `end` are outside the bounds of the export. */
const reasonOutside = ({ end_at }: LiveBatchExport['definition'], end: string): SkipReason =>
  end_at !== null && new Date(end) > new Date(end_at) ? 'after end_at' : 'before start_at';

const clamp = (instant: string, { start, end }: DataInterval): string => {
  if (new Date(instant) < new Date(start)) return start;
  return new Date(instant) > new Date(end) ? end : instant;
};

/** When the interval ends that the schedule exports next; its run starts after that and the jitter. Null if it exports none. */
export function nextIntervalEnd(
  { paused, definition, revisions }: LiveBatchExport,
  now: Date,
): string | null {
  if (paused) return null;
  const { start_at, end_at } = definition;
  const current = intervalContaining(revisions, now).end;
  const first = start_at === null ? current : firstIntervalEndingFrom(revisions, start_at).end;
  const next = Date.parse(first) > Date.parse(current) ? first : current;
  return end_at !== null && Date.parse(next) > Date.parse(end_at) ? null : next;
}

const boundaryFields = ['interval', 'timezone', 'offset_hour', 'offset_day'];
const boundFields = ['start_at', 'end_at'];
const scheduleFields = [...boundaryFields, ...boundFields];

/**
 * Changes the definition; no event if nothing changes.
 *
 * A new interval, timezone or offset takes effect at its own boundary at or before `now`, but not before the end of the
 * old schedule's last ended interval. Ended intervals keep their boundaries, even those without a run, because a
 * backfill may have exported them and no row may be in two intervals. One bridging interval connects the old boundaries
 * to the new ones.
 *
 * A change of the bounds decides about no interval that has ended: those that the old bounds exclude are skipped.
 */
export function decideUpdate(
  state: BatchExportState,
  command: { changes: Partial<BatchExportDefinition>; now: Date },
): BatchExportEvent[] {
  const live = requireLive(state);
  const changes = Object.fromEntries(
    Object.entries(withOffsetsReset(live.definition, command.changes)).filter(
      ([field, value]) => live.definition[field as keyof BatchExportDefinition] !== value,
    ),
  ) as Partial<BatchExportDefinition>;
  if (Object.keys(changes).length === 0) return [];
  const definition = { ...live.definition, ...changes };
  const changesAny = (fields: readonly string[]) => fields.some((field) => field in changes);
  if (changesAny(scheduleFields)) requireConsistent(definition, command.changes);
  const schedule_effective_from = changesAny(boundaryFields)
    ? effectiveFrom(live, definition, command.now)
    : null;
  const skipped = changesAny(boundFields) ? rangesOutsideBounds(live, command.now) : [];
  return [
    ...skipped.map((range): BatchExportEvent => ({ type: 'IntervalsSkipped', data: range })),
    { type: 'BatchExportUpdated', data: { changes, schedule_effective_from } },
  ];
}

/**
 * The undecided intervals that ended outside the bounds, as ranges. Those that ended during a pause are left to the
 * unpause, which may backfill them.
 */
function rangesOutsideBounds(live: LiveBatchExport, now: Date): SkippedRange[] {
  const { paused, paused_recorded_at } = live;
  const until = paused && paused_recorded_at !== null ? new Date(paused_recorded_at) : now;
  return undecidedRanges(live, until < now ? until : now).flatMap(({ reason, ...range }) =>
    reason === 'before start_at' || reason === 'after end_at' ? [{ ...range, reason }] : [],
  );
}

/**
 * Resets the offsets that do not apply to the new interval: a day of the week is not a day of the month. The HTTP API
 * does the same, but it may not know of an update that is still pending.
 */
function withOffsetsReset(
  definition: BatchExportDefinition,
  changes: Partial<BatchExportDefinition>,
): Partial<BatchExportDefinition> {
  const { interval } = changes;
  if (interval === undefined || interval === definition.interval) return changes;
  return { offset_day: 0, ...(supportsOffsets(interval) ? {} : { offset_hour: 0 }), ...changes };
}

/** The new schedule's last boundary at or before `now`, but no earlier than what has ended or was decided. */
function effectiveFrom(live: LiveBatchExport, definition: BatchExportDefinition, now: Date): string {
  const decided = new Date(live.skips_ahead.at(-1)?.end ?? live.scheduled_until);
  const current = new Date(intervalContaining(live.revisions, now).start);
  const next = previousBoundary(definition, now);
  return new Date(Math.max(decided.getTime(), current.getTime(), next.getTime())).toISOString();
}
