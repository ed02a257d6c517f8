import type {
  BatchExportDefinition,
  BatchExportEvent,
  BatchExportState,
  LiveBatchExport,
  SkippedRange,
  SkipReason,
} from './batch_export.ts';
import { intervalFrom, type DataInterval } from './intervals.ts';

/** The schedule's next events, and when it has to decide again. */
export interface ScheduleDecision {
  readonly events: BatchExportEvent[];
  /** When the next interval is due (its end plus jitter); null if only a command or the end of a run changes anything. */
  readonly wake_at: Date | null;
}

interface NextIntervalInput {
  readonly now: Date;
  readonly jitterMs: (interval: DataInterval) => number;
  /** Whether one more scheduled run may be active. */
  readonly hasFreeSlot: boolean;
  readonly runIdOf: (interval: DataInterval) => string;
}

/**
 * Decides about the next due interval: one `IntervalScheduled`, one `IntervalsSkipped`, or no event yet.
 * Call it with the evolved state until it returns no event.
 */
export function decideNextInterval(state: BatchExportState, command: NextIntervalInput): ScheduleDecision {
  if (state.status !== 'live' || state.paused) return { events: [], wake_at: null };
  const interval = intervalFrom(state.revisions, new Date(state.scheduled_until));
  const due = new Date(new Date(interval.end).getTime() + command.jitterMs(interval));
  if (due > command.now) return { events: [], wake_at: due };
  const reason = skipReasonOf(state.definition, interval);
  if (reason) {
    const skipped = skippedFrom(state, interval, reason, command);
    return { events: [{ type: 'IntervalsSkipped', data: skipped }], wake_at: null };
  }
  if (!command.hasFreeSlot) return { events: [], wake_at: null };
  return {
    events: [{ type: 'IntervalScheduled', data: { run_id: command.runIdOf(interval), ...interval } }],
    wake_at: null,
  };
}

const skipReasonOf = (
  { start_at, end_at }: BatchExportDefinition,
  interval: DataInterval,
): Exclude<SkipReason, 'paused'> | undefined => {
  if (start_at !== null && new Date(interval.end) < new Date(start_at)) return 'before start_at';
  return end_at !== null && new Date(interval.end) > new Date(end_at) ? 'after end_at' : undefined;
};

/** Joins the due intervals that are skipped for the same reason into one range, because there may be many. */
function skippedFrom(
  state: LiveBatchExport,
  first: DataInterval,
  reason: SkipReason,
  { now, jitterMs }: Pick<NextIntervalInput, 'now' | 'jitterMs'>,
): SkippedRange {
  const decidedFrom = state.skips_ahead[0]?.start;
  let end = first.end;
  while (end !== decidedFrom) {
    const next = intervalFrom(state.revisions, new Date(end));
    const due = new Date(next.end).getTime() + jitterMs(next) <= now.getTime();
    if (!due || skipReasonOf(state.definition, next) !== reason) break;
    end = next.end;
  }
  return { start: first.start, end, reason };
}
