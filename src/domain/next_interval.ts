/** What a schedule does next: which interval it exports, which it skips, and when it wakes. */
import type {
  BatchExportDefinition,
  BatchExportEvent,
  BatchExportState,
  LiveBatchExport,
  SkipReason,
} from './batch_export.ts';
import { type DataInterval, firstIntervalEndingFrom, intervalFrom } from './intervals.ts';

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
