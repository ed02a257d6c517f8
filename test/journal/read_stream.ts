import type { Pool } from '../../src/journal/database.ts';
import { eventColumns, type StoredEvent } from '../../src/journal/journal.ts';

/** Reads one stream, oldest event first. */
export async function readStream(pool: Pool, streamType: string, id: string): Promise<StoredEvent[]> {
  const { rows } = await pool.query<StoredEvent>(
    `select ${eventColumns} from exportd.journal_events
     where stream_type = $1 and stream_id = $2 order by stream_version`,
    [streamType, id],
  );
  return rows;
}
