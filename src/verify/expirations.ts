import { isExpired } from '../domain/expiration.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { Pool } from '../journal/database.ts';

/**
 * What the bucket may have deleted by its own rules. The journal says when an object was written and which expiration
 * the server reported; it never says that an object exists.
 */
export interface Expirations {
  /** The intervals that overlap a range and whose newest manifest has expired. */
  expiredIntervals(range: DataInterval): Promise<DataInterval[]>;
  /** Whether a file of an interval has expired. */
  isExpiredFile(interval: DataInterval, key: string): Promise<boolean>;
}

interface WrittenRow {
  readonly start: string;
  readonly end: string;
  readonly expires_at: string | null;
  readonly written_at: string;
}

/** Creates a reader of expirations. */
export function createExpirations(
  pool: Pool,
  {
    batch_export_id,
    retention_days,
  }: { readonly batch_export_id: string; readonly retention_days: number | null },
  now: Date,
): Expirations {
  const isExpiredRow = (row: WrittenRow) => isExpired(row, retention_days, now);
  return {
    async expiredIntervals({ start, end }) {
      const { rows } = await pool.query<WrittenRow>(
        `select distinct on (run.data_interval_start, run.data_interval_end)
           run.data_interval_start as start, run.data_interval_end as end,
           event.data->>'expires_at' as expires_at, event.recorded_at as written_at
         from exportd.batch_export_runs run
         join exportd.journal_events event on event.stream_type = 'run' and event.stream_id = run.id
           and event.event_type = 'RunCompleted'
         where run.batch_export_id = $1 and run.data_interval_end > $2 and run.data_interval_start < $3
         order by run.data_interval_start, run.data_interval_end, event.global_position desc`,
        [batch_export_id, start, end],
      );
      return rows.filter(isExpiredRow);
    },
    async isExpiredFile(interval, key) {
      const { rows } = await pool.query<WrittenRow>(
        // The reply to writing a file of rejected rows is not recorded: it expires with the manifest.
        `select coalesce(event.data->'file'->>'expires_at',
             case event.event_type when 'RunRejectedFilePlanned' then completed.data->>'expires_at' end) as expires_at,
           event.recorded_at as written_at
         from exportd.batch_export_runs run
         join exportd.journal_events event on event.stream_type = 'run' and event.stream_id = run.id
           and event.event_type in ('RunFileCompleted', 'RunRejectedFilePlanned')
         left join exportd.journal_events completed on completed.stream_type = 'run'
           and completed.stream_id = run.id and completed.event_type = 'RunCompleted'
         where run.batch_export_id = $1 and run.data_interval_start = $2 and run.data_interval_end = $3
           and event.data->'file'->>'key' = $4
         order by event.global_position desc limit 1`,
        [batch_export_id, interval.start, interval.end, key],
      );
      return rows.some(isExpiredRow);
    },
  };
}
