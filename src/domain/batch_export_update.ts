import {
  requireLive,
  type BatchExportDefinition,
  type BatchExportEvent,
  type BatchExportState,
  type LiveBatchExport,
  type SkippedRange,
} from './batch_export.ts';
import { undecidedRanges } from './due_ranges.ts';
import { supportsOffsets, requireConsistent } from './definition_rules.ts';
import { intervalContaining, previousBoundary } from './intervals.ts';

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
