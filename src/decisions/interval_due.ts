import { decideNextInterval } from '../domain/next_interval.ts';
import type { BatchExportState } from '../domain/batch_export.ts';
import type { Journal } from '../journal/journal.ts';

/**
 * Whether an interval may be due that the schedule has not decided about yet, for example because it had no free slot.
 * If none is, the schedule sleeps until the next one is due, or until a command, and needs no wake-up when a run completes.
 */
export async function isIntervalDue({ pool }: Journal, batchExportId: string): Promise<boolean> {
  const { rows } = await pool.query<{ state: BatchExportState; now: string }>({
    name: 'is-interval-due',
    text: `select state, clock_timestamp() as now from exportd.stream_states
      where stream_type = 'batch_export' and stream_id = $1`,
    values: [batchExportId],
  });
  const [row] = rows;
  if (!row) return false;
  // Without jitter an interval is due earlier, so no waiting interval is missed.
  const { events, waits_for_slot } = decideNextInterval(row.state, {
    now: new Date(row.now),
    jitterMs: () => 0,
    hasFreeSlot: false,
    runIdOf: () => '',
  });
  return events.length > 0 || waits_for_slot;
}
