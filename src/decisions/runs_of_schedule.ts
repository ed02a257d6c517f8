import type { DataInterval } from '../domain/intervals.ts';
import type { Connection } from '../journal/database.ts';
import { idFromCause } from '../journal/journal.ts';

/** The cause under which an export's stream holds what the schedule decided for an interval or a skipped range. */
export const scheduledCause = ({ start, end }: DataInterval): string => `interval:${start}/${end}`;

/** A run of a backfill. */
export interface BackfillRun extends DataInterval {
  readonly id: string;
  readonly batch_export_id: string;
}

/**
 * Those of a backfill's runs that the schedule relies on as well: when their interval became due, the backfill had a run
 * there, and the schedule took that for its own. A retry or a continuation of that run stands in its place.
 */
export async function takenBySchedule(
  connection: Connection,
  runs: readonly BackfillRun[],
): Promise<ReadonlySet<string>> {
  if (runs.length === 0) return new Set();
  const { rows } = await connection.query<{ id: string }>(
    `select run.id from unnest($1::uuid[], $2::uuid[]) as asked (run_id, event_id)
     join exportd.journal_events event on event.event_id = asked.event_id and event.event_type = 'IntervalScheduled'
     join exportd.batch_export_runs taken on taken.id = (event.data->>'run_id')::uuid
     join exportd.batch_export_runs run on run.id = asked.run_id and run.backfill_id = taken.backfill_id`,
    [
      runs.map(({ id }) => id),
      runs.map((run) => idFromCause('batch_export', run.batch_export_id, scheduledCause(run), 0)),
    ],
  );
  return new Set(rows.map(({ id }) => id));
}
