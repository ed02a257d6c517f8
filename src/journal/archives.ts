import type { Upcasts } from '../domain/event.ts';
import type { Connection, Pool } from './database.ts';
import { type EventRow, readEventsAfter, type StoredEvent, upcast } from './journal.ts';

/** Ranges of the journal that are in the operator's bucket, and how to read the journal with them. */

/** An event as an archive has it: all that the journal stores. */
export interface ArchivedEvent extends EventRow {
  readonly cause: string;
}

/** A range of positions, with every event that the journal had in it, as a file in the bucket. */
export interface ArchivedRange {
  readonly first_position: number;
  readonly last_position: number;
  /** The key of the file below the prefix of the archive. */
  readonly name: string;
  /** Where it was written to, for people. */
  readonly location: string;
  readonly events: number;
  readonly bytes: number;
  readonly sha256: string;
}

/** Reads the events of a range from the bucket, in journal order. */
export type ReadArchive = (range: ArchivedRange) => Promise<readonly ArchivedEvent[]>;

/** The journal is to be read from its start, which is in the bucket only. */
export class ArchiveNeeded extends Error {
  override readonly name = 'ArchiveNeeded';
}

/** What is archived; null without any range. */
export interface ArchiveStatus {
  readonly ranges: number;
  readonly events: number;
  readonly bytes: number;
  /** Up to this position. */
  readonly last_position: number;
  readonly last_location: string;
  readonly archived_at: string;
}

/** Reads how much is archived. */
export async function readArchiveStatus(pool: Pool): Promise<ArchiveStatus | null> {
  const { rows } = await pool.query<ArchiveStatus>(
    `select count(*) over () as ranges, sum(events) over () as events, sum(bytes) over ()::bigint as bytes,
       last_position, location as last_location, archived_at
     from exportd.journal_archives order by last_position desc limit 1`,
  );
  return rows[0] ?? null;
}

/** The first range that ends after a position. Ranges follow each other without a gap, from the first position. */
async function findArchivedRange(
  database: Pool | Connection,
  after: number,
): Promise<ArchivedRange | undefined> {
  const { rows } = await database.query<ArchivedRange>(
    `select first_position, last_position, name, location, events, bytes, sha256 from exportd.journal_archives
     where last_position > $1 order by last_position limit 1`,
    [after],
  );
  return rows[0];
}

/** Those of archived events that count: a digest replaces those of a stream that has gone, or is about to. */
async function countedEvents(
  database: Pool | Connection,
  events: readonly ArchivedEvent[],
): Promise<ArchivedEvent[]> {
  const { rows } = await database.query<{ stream_id: string }>(
    `select stream_id from exportd.journal_streams stream
     join (select distinct * from unnest($1::text[], $2::uuid[]) as named (stream_type, stream_id)) wanted
       using (stream_type, stream_id) where stream.collapsed_at is null`,
    [events.map(({ stream_type }) => stream_type), events.map(({ stream_id }) => stream_id)],
  );
  const streams = new Set(rows.map(({ stream_id }) => stream_id));
  return events.filter(({ stream_id }) => streams.has(stream_id));
}

/** What of the journal is read: the events after a position, up to another one. */
interface JournalPart {
  readonly after: number;
  readonly until: number;
  readonly limit: number;
  readonly upcasts: Upcasts;
}

/** Opens the whole journal: archived ranges, then what is left here. Without `readArchive` only the latter. */
export function openWholeJournal(readArchive?: ReadArchive) {
  let current: { readonly range: ArchivedRange; readonly events: readonly ArchivedEvent[] } | undefined;

  async function eventsOf(range: ArchivedRange): Promise<readonly ArchivedEvent[]> {
    if (!readArchive)
      throw new ArchiveNeeded(
        `The events up to position ${range.last_position} are archived, for example in ${range.location}. To read them, set ` +
          'EXPORTD_ARCHIVE_BUCKET and the settings beside it, and use the option --from-archive.',
      );
    if (current?.range.last_position !== range.last_position)
      current = { range, events: await readArchive(range) };
    return current.events;
  }

  return {
    /**
     * Reads events that count, in journal order, at most `limit`. No event: there is none up to `until`.
     * @throws ArchiveNeeded
     */
    read: async (
      database: Pool | Connection,
      { after, until, limit, upcasts }: JournalPart,
    ): Promise<readonly StoredEvent[]> => {
      for (let position = after; position < until;) {
        const range = await findArchivedRange(database, position);
        if (!range) {
          const live = await readEventsAfter(database, { after: position, until, limit, upcasts });
          // A range that was archived meanwhile may have lost events before they were read.
          if (!(await findArchivedRange(database, position))) return live;
          continue;
        }
        const from = position;
        const next = (await eventsOf(range))
          .filter(({ global_position: at }) => at > from && at <= until)
          .slice(0, limit);
        const counted = await countedEvents(database, next);
        if (counted.length > 0) return counted.map((event) => upcast(event, upcasts));
        position = next.at(-1)?.global_position ?? range.last_position;
      }
      return [];
    },
    /** Whether the bucket has events after a position that may be missing here. */
    isArchived: async (database: Pool | Connection, after: number): Promise<boolean> =>
      (await findArchivedRange(database, after)) !== undefined,
  };
}
