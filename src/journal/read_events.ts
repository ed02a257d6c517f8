import type { Connection } from './database.ts';
import type { StoredEvent } from './stored_event.ts';

/** The columns of a StoredEvent, for every statement that reads or returns events. */
export const eventColumns =
  'global_position, stream_type, stream_id, stream_version, event_id, event_type as type, data, recorded_at';

/** The events with these ids, in the order of the journal; ids that are not stored are left out. */
export async function readEventsByIds(
  connection: Connection,
  ids: readonly string[],
): Promise<StoredEvent[]> {
  const { rows } = await connection.query<StoredEvent>(
    `select ${eventColumns} from exportd.journal_events where event_id = any($1) order by global_position`,
    [ids],
  );
  return rows;
}

/** Every event in the order of the journal, in batches, for folding again. */
export async function* readAllEvents(connection: Connection, batch = 2_000): AsyncGenerator<StoredEvent[]> {
  let position = 0;
  for (;;) {
    const { rows } = await connection.query<StoredEvent>(
      `select ${eventColumns} from exportd.journal_events where global_position > $1 order by global_position limit $2`,
      [position, batch],
    );
    const last = rows.at(-1);
    if (!last) return;
    yield rows;
    position = last.global_position;
  }
}
