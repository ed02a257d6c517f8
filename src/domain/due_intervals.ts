import {
  type BatchExportDefinition,
  type BatchExportEvent,
  type BatchExportState,
  type LiveBatchExport,
  requireConsistent,
  requireLive,
  type SkippedRange,
  type SkipReason,
  supportsOffsets,
} from './batch_export.ts';
import {
  type DataInterval,
  firstIntervalEndingFrom,
  intervalContaining,
  intervalFrom,
  previousBoundary,
  withinBounds,
} from './intervals.ts';

/** A range of ended intervals about which the schedule has recorded nothing yet. */
export interface UndecidedRange extends DataInterval {
  /** Why they will get no run; null if they are due. */
  readonly reason: SkipReason | null;
}

/** Returns the ended intervals that the schedule still has to create a run for, as ranges, oldest first. */
export const dueRanges = (live: LiveBatchExport, now: Date): DataInterval[] =>
  undecidedRanges(live, now).flatMap(({ start, end, reason }) => (reason === null ? [{ start, end }] : []));

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

/** The schedule's next events, and when it has to decide again. */
export interface ScheduleDecision {
  readonly events: BatchExportEvent[];
  /** When the next interval is due (its end plus jitter); null if only a command or the end of a run changes anything. */
  readonly wake_at: Date | null;
  /** Whether an interval is due and waits for the end of a run. */
  readonly waits_for_slot: boolean;
}

interface NextIntervalInput {
  /** The next interval, if the ledger has been read. By default it is computed. */
  readonly interval?: DataInterval;
  readonly now: Date;
  readonly jitterMs: (interval: DataInterval) => number;
  /** Whether one more scheduled run may be active. */
  readonly hasFreeSlot: boolean;
  readonly runIdOf: (interval: DataInterval) => string;
}

/** Nothing happens before a command. */
const idle: ScheduleDecision = { events: [], wake_at: null, waits_for_slot: false };

/**
 * Decides about the next due interval: one `IntervalScheduled`, one `IntervalsSkipped`, or no event yet.
 * Call it with the evolved state until it returns no event.
 */
export function decideNextInterval(state: BatchExportState, command: NextIntervalInput): ScheduleDecision {
  if (state.status !== 'live' || state.paused) return idle;
  const { interval = intervalFrom(state.revisions, new Date(state.scheduled_until)) } = command;
  const reason = skipReasonOf(state.definition, interval);
  if (reason) return decideOutsideBounds(state, reason, command);
  const due = dueAt(interval, command);
  if (due > command.now) return { ...idle, wake_at: due };
  if (!command.hasFreeSlot) return { ...idle, waits_for_slot: true };
  return {
    ...idle,
    events: [{ type: 'IntervalScheduled', data: { run_id: command.runIdOf(interval), ...interval } }],
  };
}

/**
 * Skips the intervals before `start_at` as one range, once the first interval after them is due. Intervals after `end_at`
 * stay undecided: readers derive that they are skipped, and a change of the bounds records those that have ended. A
 * decision per interval would add events to the journal and to Temporal indefinitely.
 */
function decideOutsideBounds(
  state: LiveBatchExport,
  reason: Exclude<SkipReason, 'paused'>,
  command: NextIntervalInput,
): ScheduleDecision {
  const { revisions, definition, scheduled_until: start, skips_ahead } = state;
  const skip = (end: string): ScheduleDecision => ({
    ...idle,
    events: [{ type: 'IntervalsSkipped', data: { start, end, reason } }],
  });
  // All intervals before a skipped range have ended.
  const [ahead] = skips_ahead;
  const first =
    reason === 'before start_at' && definition.start_at !== null
      ? firstIntervalEndingFrom(revisions, definition.start_at)
      : undefined;
  if (ahead && (!first || new Date(ahead.start) <= new Date(first.start))) return skip(ahead.start);
  if (!first) return idle;
  const due = dueAt(first, command);
  return due > command.now ? { ...idle, wake_at: due } : skip(first.start);
}

const dueAt = (interval: DataInterval, { jitterMs }: Pick<NextIntervalInput, 'jitterMs'>): Date =>
  new Date(new Date(interval.end).getTime() + jitterMs(interval));

const skipReasonOf = (
  { start_at, end_at }: BatchExportDefinition,
  interval: DataInterval,
): Exclude<SkipReason, 'paused'> | undefined => {
  if (start_at !== null && new Date(interval.end) < new Date(start_at)) return 'before start_at';
  return end_at !== null && new Date(interval.end) > new Date(end_at) ? 'after end_at' : undefined;
};

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
