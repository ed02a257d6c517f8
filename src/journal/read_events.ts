import type { Connection } from './database.ts';
import type { StoredEvent } from './stored_event.ts';

/** The columns of a StoredEvent, for all statements that return events. */
export const eventColumns =
  'global_position, stream_type, stream_id, stream_version, event_id, event_type as type, data, recorded_at';

/** Reads the events with these ids, in journal order. Unknown ids are ignored. */
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

/** Reads all events in journal order, in batches, to rebuild projections. */
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
