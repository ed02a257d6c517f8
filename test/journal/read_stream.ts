import type { Pool } from '../../src/journal/database.ts';
import type { StoredEvent } from '../../src/journal/journal.ts';

/** Reads one stream as it is stored, oldest event first. */
export async function readStream(pool: Pool, streamType: string, id: string): Promise<StoredEvent[]> {
  const { rows } = await pool.query<StoredEvent>(
    `select global_position, stream_type, stream_id, stream_version, event_id, event_type as type, data, recorded_at
     from exportd.journal_events where stream_type = $1 and stream_id = $2 order by stream_version`,
    [streamType, id],
  );
  return rows;
}

/** Reads the events of one stream, oldest first, or those of the given types. */
export async function readEvents(
  pool: Pool,
  id: string,
  ...types: readonly string[]
): Promise<{ readonly type: string; readonly data: Readonly<Record<string, unknown>> }[]> {
  const { rows } = await pool.query<{ type: string; data: Record<string, unknown> }>(
    `select event_type as type, data from exportd.journal_events where stream_id = $1 order by stream_version`,
    [id],
  );
  return types.length === 0 ? rows : rows.filter(({ type }) => types.includes(type));
}
