import {
  requireLive,
  type BatchExportDefinition,
  type BatchExportEvent,
  type BatchExportState,
  type LiveBatchExport,
} from './batch_export.ts';
import { supportsOffsets, requireConsistent } from './definition_rules.ts';
import { intervalContaining, previousBoundary } from './intervals.ts';

const boundaryFields = ['interval', 'timezone', 'offset_hour', 'offset_day'];
const scheduleFields = [...boundaryFields, 'start_at', 'end_at'];

/**
 * Changes the definition; what is already so is not an event. A new cut of time begins with the interval of the new
 * definition that contains `now`, or in the middle of it where the old one's last interval has ended: intervals that
 * ended keep their boundaries even where no run was decided yet, since a backfill may have exported them, and no row is
 * ever in two intervals. So one bridging interval leads from the old boundaries to the new ones.
 */
export function decideUpdate(
  state: BatchExportState,
  command: { changes: Partial<BatchExportDefinition>; now: Date },
): BatchExportEvent[] {
  const live = requireLive(state);
  const changes = Object.fromEntries(
    Object.entries(withOffsetsReset(live.definition, command.changes)).filter(
      ([member, value]) => live.definition[member as keyof BatchExportDefinition] !== value,
    ),
  ) as Partial<BatchExportDefinition>;
  if (Object.keys(changes).length === 0) return [];
  const definition = { ...live.definition, ...changes };
  const changesAny = (members: readonly string[]) => members.some((member) => member in changes);
  if (changesAny(scheduleFields)) requireConsistent(definition, command.changes);
  const schedule_effective_from = changesAny(boundaryFields)
    ? effectiveFrom(live, definition, command.now)
    : null;
  return [{ type: 'BatchExportUpdated', data: { changes, schedule_effective_from } }];
}

/**
 * With the offsets that another interval has no use for reset: a day of the week is no day of the month. Decided here as
 * well as in the facade, which may not know yet of an update that is still to be decided.
 */
function withOffsetsReset(
  definition: BatchExportDefinition,
  changes: Partial<BatchExportDefinition>,
): Partial<BatchExportDefinition> {
  const { interval } = changes;
  if (interval === undefined || interval === definition.interval) return changes;
  return { offset_day: 0, ...(supportsOffsets(interval) ? {} : { offset_hour: 0 }), ...changes };
}

/** The new definition's boundary at or before `now`, but none that an ended interval or a decision goes past. */
function effectiveFrom(live: LiveBatchExport, definition: BatchExportDefinition, now: Date): string {
  const decided = new Date(live.skips_ahead.at(-1)?.end ?? live.scheduled_until);
  const current = new Date(intervalContaining(live.revisions, now).start);
  const next = previousBoundary(definition, now);
  return new Date(Math.max(decided.getTime(), current.getTime(), next.getTime())).toISOString();
}
