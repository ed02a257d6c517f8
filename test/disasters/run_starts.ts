import type { Pool } from '../../src/journal/database.ts';

/** How many runs an interval has. */
interface IntervalStarts {
  readonly start: string;
  readonly started: number;
}

/** The intervals of an export that have runs in the journal, oldest first. */
export async function startsPerInterval(pool: Pool, batchExportId: string): Promise<IntervalStarts[]> {
  const { rows } = await pool.query<IntervalStarts>(
    `select data->>'data_interval_start' as start, count(*)::int as started from exportd.journal_events
     where event_type = 'RunCreated' and data->>'batch_export_id' = $1
     group by data->>'data_interval_start', data->>'data_interval_end' order by 1`,
    [batchExportId],
  );
  return rows;
}
