import { v5 as uuidv5 } from 'uuid';
import type { Decider, DomainEvent, Recorded } from '../domain/event.ts';
import { applyToProjections, projectionLock } from '../projections/registry.ts';
import { readStreamState } from '../projections/stream_states/index.ts';
import { inTransaction, type Connection, type Pool } from './database.ts';
import { eventColumns, readByIds } from './read.ts';
import type { StoredEvent } from './stored_event.ts';

/** Namespace of every id that is made from a cause. */
const causeNamespace = '6f9c1d0e-6d0c-5b0a-9d0f-2f4b8a1f7c11';

/** An id that is the same whenever the same thing is caused again. */
export const idFromCause = (...parts: readonly (string | number)[]): string =>
  uuidv5(parts.join('/'), causeNamespace);

/** The same event id was stored for something else: a fault in how causes are named, never a matter of luck. */
export class CauseConflict extends Error {
  override readonly name = 'CauseConflict';
}

/** A stream whose row is locked until the transaction ends: decide on `state()`, then `append`. */
export interface LockedStream<State, Event extends DomainEvent> {
  readonly id: string;
  /** The fold of all events, those appended in this transaction included. */
  state(): State;
  /**
   * Appends events that one cause led to and folds the projections. A cause that was appended before changes nothing
   * and returns what is stored.
   * @throws CauseConflict when an event of this cause is stored with another type.
   */
  append(cause: string, events: readonly Event[]): Promise<readonly Recorded<Event>[]>;
}

/** One transaction on the journal. Streams are locked in the order export, backfill, run, so that none wait in a ring. */
export interface JournalTransaction {
  readonly connection: Connection;
  /** The database's clock when the transaction began to work. */
  readonly now: Date;
  lock<State, Event extends DomainEvent>(
    decider: Decider<State, Event>,
    id: string,
  ): Promise<LockedStream<State, Event>>;
}

/** The journal of a control database. */
export interface Journal {
  readonly pool: Pool;
  transaction<Result>(work: (transaction: JournalTransaction) => Promise<Result>): Promise<Result>;
}

/** Opens the journal on a pool. */
export function createJournal(pool: Pool): Journal {
  return {
    pool,
    transaction: (work) =>
      inTransaction(pool, async (connection) => {
        const { rows } = await connection.query<{ now: string }>(
          // In this order: the clock is read after a rebuild of the projections was waited for.
          'select pg_advisory_xact_lock_shared($1), clock_timestamp() as now',
          [projectionLock],
        );
        const now = new Date(rows[0]?.now ?? Number.NaN);
        return work({ connection, now, lock: (decider, id) => lockStream(connection, decider, id) });
      }),
  };
}

async function lockStream<State, Event extends DomainEvent>(
  connection: Connection,
  decider: Decider<State, Event>,
  id: string,
): Promise<LockedStream<State, Event>> {
  const key = [decider.streamType, id];
  await connection.query(
    'insert into exportd.journal_streams (stream_type, stream_id) values ($1, $2) on conflict do nothing',
    key,
  );
  const { rows } = await connection.query<{ version: number }>(
    'select version from exportd.journal_streams where stream_type = $1 and stream_id = $2 for update',
    key,
  );
  let version = rows[0]?.version ?? 0;
  let state =
    version === 0 ? decider.initialState : await readStreamState<State>(connection, decider.streamType, id);

  const append = async (cause: string, events: readonly Event[]): Promise<readonly Recorded<Event>[]> => {
    if (events.length === 0) return [];
    const eventIds = events.map((_, ordinal) => idFromCause(decider.streamType, id, cause, ordinal));
    const stored = await readByIds(connection, eventIds);
    if (stored.length > 0) return assertSameCause<Event>(stored, events, cause);
    const recorded: Recorded<Event>[] = [];
    for (const [ordinal, event] of events.entries()) {
      version += 1;
      const inserted = await insertEvent(connection, {
        stream_type: decider.streamType,
        stream_id: id,
        stream_version: version,
        event_id: idFromCause(decider.streamType, id, cause, ordinal),
        cause,
        type: event.type,
        data: event.data,
      });
      const fact = { ...event, recorded_at: inserted.recorded_at };
      state = decider.evolve(state, fact);
      recorded.push(fact);
      await applyToProjections(connection, inserted);
    }
    await connection.query(
      'update exportd.journal_streams set version = $3 where stream_type = $1 and stream_id = $2',
      [...key, version],
    );
    return recorded;
  };
  return { id, state: () => state, append };
}

function assertSameCause<Event extends DomainEvent>(
  stored: readonly StoredEvent[],
  events: readonly Event[],
  cause: string,
): readonly Recorded<Event>[] {
  const sameTypes =
    stored.length === events.length && stored.every(({ type }, index) => type === events[index]?.type);
  if (!sameTypes)
    throw new CauseConflict(
      `The cause "${cause}" is stored as ${stored.map(({ type }) => type).join(', ')}, ` +
        `not as ${events.map(({ type }) => type).join(', ')}.`,
    );
  // The types were compared just now, so what was stored for this cause has the shape of what was to be appended.
  return stored.map(({ type, data, recorded_at }) => ({ type, data, recorded_at }) as Recorded<Event>);
}

async function insertEvent(
  connection: Connection,
  event: Omit<StoredEvent, 'global_position' | 'recorded_at'> & { cause: string },
): Promise<StoredEvent> {
  const { rows } = await connection.query<StoredEvent>(
    `insert into exportd.journal_events (stream_type, stream_id, stream_version, event_id, cause, event_type, data)
     values ($1, $2, $3, $4, $5, $6, $7) returning ${eventColumns}`,
    [
      event.stream_type,
      event.stream_id,
      event.stream_version,
      event.event_id,
      event.cause,
      event.type,
      JSON.stringify(event.data),
    ],
  );
  const [inserted] = rows;
  if (!inserted) throw new Error('The database returned no row for an event that it inserted.');
  return inserted;
}
