import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { safeText } from '../config/bounds.ts';
import type { Decider, DomainEvent, Recorded, StreamType, Upcasts } from '../domain/event.ts';
import type { StreamEvents, StreamStates } from '../domain/stream_events.ts';
import { type Connection, inTransaction, type Pool, ReadModelsDiffer } from './database.ts';

/** A stored event of a type of stream, with its position in the journal. */
export type StoredStreamEvent<Type extends StreamType> = {
  readonly global_position: number;
  readonly stream_type: Type;
  readonly stream_id: string;
  readonly stream_version: number;
  readonly event_id: string;
  readonly recorded_at: string;
} & StreamEvents[Type];

/** A stored event with its position in the journal. */
export type StoredEvent = { [Type in StreamType]: StoredStreamEvent<Type> }[StreamType];

interface FoldedStreamEvent<Type extends StreamType> {
  readonly stream_type: Type;
  readonly stored: StoredStreamEvent<Type>;
  /** The stream's states before and after the event; undefined if a rebuild has no states. */
  readonly before: StreamStates[Type] | undefined;
  readonly state: StreamStates[Type] | undefined;
}

/** A stored event as the read models fold it. */
export type FoldedEvent<Type extends StreamType = StreamType> = {
  [One in Type]: FoldedStreamEvent<One>;
}[Type];

export interface StreamVersion {
  readonly stream_type: StreamType;
  readonly stream_id: string;
  readonly version: number;
}

/** The state of a stream at one of its versions. */
export interface StreamState extends StreamVersion {
  readonly state: unknown;
}

/** The versions of the read models, by name. */
export type ReadModelVersions = Readonly<Record<string, number>>;

/**
 * Compares the read models of a control database with those that this version of exportd has. It folds its events into
 * tables that it knows, and into all of them.
 * @throws ReadModelsDiffer
 */
export function requireSameReadModels(stored: ReadModelVersions | null, known: ReadModelVersions): void {
  const names = [...new Set([...Object.keys(known), ...Object.keys(stored ?? {})])];
  const differing = names.filter((name) => stored?.[name] !== known[name]);
  if (differing.length === 0) return;
  const isNewer = differing.some((name) => (stored?.[name] ?? 0) > (known[name] ?? 0));
  const versions = differing.map(
    (name) => `${name} has version ${stored?.[name] ?? 'none'} instead of ${known[name] ?? 'none'}`,
  );
  throw new ReadModelsDiffer(
    `The read models of the control database are those of ${isNewer ? 'a newer' : 'an older'} version of exportd: ` +
      `${versions.join(', ')}. ${isNewer ? 'Update this process.' : 'Run "exportd migrate".'}`,
  );
}

/** A part of a statement. */
interface StatementPart {
  /** What tells its text apart; undefined if it is never the same. */
  readonly words: readonly string[] | undefined;
  /** SQL, with its parameters from this number. */
  readonly text: (first: number) => string;
  readonly values: readonly unknown[];
}

/** A change that is still to be written. */
export interface PendingWrite extends StatementPart {
  /** What it changes. Of two changes of the same, the second may depend on the first, so that one statement has only one of them. */
  readonly target: string;
}

/** How the events of one append are folded. */
export interface PlannedFold {
  /**
   * Reads what the fold needs, with the statement that stores the events: a WITH query for each name, each of which returns
   * columns `source` and `row` (JSON). Null if it needs nothing.
   */
  readonly reads: (StatementPart & { readonly names: readonly string[] }) | null;
  /** Folds the events as they were stored. What they change stays pending. */
  fold(events: readonly FoldedEvent[], rows: readonly ReadRow[]): void;
}

/** A row that was read for a fold. */
export interface ReadRow {
  readonly source: number;
  readonly row: Readonly<Record<string, unknown>>;
}

/** Folds the events of one transaction into the read models. */
export interface AppendFold {
  /** Plans the fold of some events that are not stored yet, so that positions and times are not theirs. */
  plan(events: readonly FoldedEvent[]): Promise<PlannedFold>;
  /** Writes something else with the changes. */
  later(write: PendingWrite): void;
  /** Whether a statement would not see all changes. */
  isPending(): boolean;
  /** Writes what is pending, and these states; only the version of a stream whose state is unchanged. */
  write(streams: readonly (StreamState | StreamVersion)[]): Promise<void>;
}

/** Updates the read models in the transaction of each append. Implemented by src/projections. */
interface Projector {
  /** Key of the advisory lock that appends share and a rebuild of the read models acquires exclusively. */
  readonly lock: number;
  /** What appends fold events into. */
  readonly versions: ReadModelVersions;
  readonly upcasts: Upcasts;
  /** Opens the fold of one transaction. */
  openFold(connection: Connection): AppendFold;
  /** Reads the committed state of a stream; undefined if it has no events. */
  findState<State>(
    database: Pool | Connection,
    streamType: StreamType,
    id: string,
  ): Promise<State | undefined>;
  /**
   * Reads the state of a stream that has at least one event.
   * @throws Error when it is missing.
   */
  readState<State>(connection: Connection, streamType: StreamType, id: string): Promise<State>;
  /** The state of a stream by what its row has. */
  stateOf(streamType: StreamType, stored: unknown): unknown;
}

/** An event as it is stored: `data` has the shape of the version. */
type EventRow = StoredEvent & { readonly schema_version: number };

const eventColumns =
  'global_position, stream_type, stream_id, stream_version, event_id, event_type as type, schema_version, data, recorded_at';

const versionOf = (type: string, upcasts: Upcasts): number => 1 + (upcasts[type]?.length ?? 0);

/** The event with data of the current version. One of a newer version has a type that no fold knows. */
function upcast({ schema_version, ...event }: EventRow, upcasts: Upcasts): StoredEvent {
  const { type, data }: DomainEvent = event;
  const isNewer = schema_version > versionOf(type, upcasts);
  const missing = upcasts[type]?.slice(schema_version - 1) ?? [];
  if (!isNewer && missing.length === 0) return event;
  const current: DomainEvent = {
    type: isNewer ? `${type} of version ${schema_version}` : type,
    data: missing.reduce((former, next) => next(former), data),
  };
  return { ...event, ...current } as StoredEvent;
}

/** Reads the events with these ids, in journal order. Unknown ids are ignored. */
async function readEventsByIds(
  connection: Connection,
  ids: readonly string[],
  upcasts: Upcasts,
): Promise<StoredEvent[]> {
  const { rows } = await connection.query<EventRow>(
    `select ${eventColumns} from exportd.journal_events where event_id = any($1) order by global_position`,
    [ids],
  );
  return rows.map((row) => upcast(row, upcasts));
}

/**
 * Reads events that count in journal order: those after a position, up to another one, at most `limit`. Those of collapsed
 * streams do not count.
 */
export async function readEventsAfter(
  connection: Connection,
  {
    after,
    until,
    limit,
    upcasts,
  }: {
    readonly after: number;
    readonly until: number;
    readonly limit: number;
    readonly upcasts: Upcasts;
  },
): Promise<StoredEvent[]> {
  const { rows } = await connection.query<EventRow>(
    `select ${eventColumns} from exportd.journal_events event
     where global_position > $1 and global_position <= $2 and not exists (
       select from exportd.journal_streams stream where stream.collapsed_at is not null
         and stream.stream_type = event.stream_type and stream.stream_id = event.stream_id)
     order by global_position limit $3`,
    [after, until, limit],
  );
  return rows.map((row) => upcast(row, upcasts));
}

const settlePollMs = 5;

/**
 * Reads the position of the last event before which no event can appear any more: positions are assigned before appends
 * commit. Waits for the appends that are open now, and lets others start.
 * @param lock the advisory lock that appends share
 */
export async function readSettledPosition(connection: Connection, lock: number): Promise<number> {
  const appends = `from pg_locks where locktype = 'advisory' and mode = 'ShareLock' and granted and objsubid = 1
    and database = (select oid from pg_database where datname = current_database())
    and (classid::bigint << 32) + objid::bigint = $1`;
  const { rows } = await connection.query<{ position: number; open: string[] }>(
    `select (select coalesce(max(global_position), 0) from exportd.journal_events) as position,
       array(select virtualtransaction ${appends}) as open`,
    [lock],
  );
  const { position = 0, open = [] } = rows[0] ?? {};
  const isOpen = async (): Promise<boolean> => {
    const left = await connection.query(`select ${appends} and virtualtransaction = any($2) limit 1`, [
      lock,
      open,
    ]);
    return left.rows.length > 0;
  };
  while (open.length > 0 && (await isOpen())) await sleep(settlePollMs);
  return position;
}

/** The UUIDv5 namespace of all deterministic ids. */
const causeNamespace = Buffer.from('6f9c1d0e6d0c5b0a9d0f2f4b8a1f7c11', 'hex');

/** A UUIDv5 of the parts. The same cause always has the same id, which makes appends idempotent. */
export function deterministicId(...parts: readonly (string | number)[]): string {
  const hash = createHash('sha1').update(causeNamespace).update(parts.join('/')).digest('hex');
  // Version and variant of RFC 9562.
  const variant = ((Number.parseInt(hash.charAt(16), 16) & 3) | 8).toString(16);
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-5${hash.slice(13, 16)}-${variant}${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

/** An event id is already stored with another type: two different causes have the same name, which is a bug. */
export class CauseMismatch extends Error {
  override readonly name = 'CauseMismatch';
}

/** A stream that is locked until the transaction ends: decide on `state()`, then `append`. */
export interface LockedStream<State, Event extends DomainEvent> {
  readonly id: string;
  /** The fold of all events, including those appended in this transaction. */
  state(): State;
  /**
   * Appends the events of one cause and folds the projections. If the cause was appended before, nothing changes and the
   * stored events are returned.
   * @throws CauseMismatch when an event of this cause is stored with another type.
   */
  append(cause: string, events: readonly Event[]): Promise<readonly Recorded<Event>[]>;
}

/** A transaction on the journal. Streams are locked in the order export, backfill, run, to prevent deadlocks. */
export interface JournalTransaction {
  readonly connection: Connection;
  /** The time of the database clock when the transaction acquired the projection lock. */
  readonly now: Date;
  /**
   * Locks a stream until the transaction ends. Repeated calls return the same object.
   * @param options.isNew whether it probably has no event yet, which saves a statement
   */
  readonly lock: <State, Event extends DomainEvent>(
    decider: Decider<State, Event>,
    id: string,
    options?: LockOptions,
  ) => Promise<LockedStream<State, Event>>;
  /** Writes something with the changes of the read models, before any other statement of the transaction that follows. */
  readonly later: (write: PendingWrite) => void;
}

interface LockOptions {
  readonly isNew: boolean;
}

/** An event that was appended, with the state of its stream before and after it. */
export type AppendedEvent = {
  [Type in StreamType]: FoldedStreamEvent<Type> & {
    readonly before: StreamStates[Type];
    readonly state: StreamStates[Type];
  };
}[StreamType];

/** Receives the new events of a transaction after its commit, for example to count them. It must not throw. */
export type CommitObserver = (events: readonly AppendedEvent[]) => void;

/**
 * Receives each new event in the transaction that appended it, before the commit: what it stores is stored if and only if the
 * event is. It finds the read models after all events of the transaction, and appends nothing.
 * @returns what follows the commit, and must not throw; undefined for nothing
 */
export type Subscriber = (connection: Connection, event: AppendedEvent) => Promise<(() => void) | undefined>;

/** Who learns of new events. */
export interface JournalListeners {
  readonly onCommitted?: CommitObserver;
  readonly subscribers?: readonly Subscriber[];
}

/** The journal of a control database. */
export interface Journal {
  readonly pool: Pool;
  readonly projector: Projector;
  transaction<Result>(work: (transaction: JournalTransaction) => Promise<Result>): Promise<Result>;
}

const readVersions = `select clock_timestamp() as now,
  (select jsonb_object_agg(name, version)::text from exportd.projection_versions) as versions`;

/** Creates the journal on a pool. Use `openJournal` of src/projections, which passes the projector. */
export function createJournal(
  pool: Pool,
  projector: Projector,
  { onCommitted, subscribers = [] }: JournalListeners = {},
): Journal {
  /** As PostgreSQL writes the versions of this code. */
  let knownVersions: string | undefined;
  const requireKnown = (versions: string | null): void => {
    if (versions !== null && versions === knownVersions) return;
    requireSameReadModels(
      versions === null ? null : (JSON.parse(versions) as ReadModelVersions),
      projector.versions,
    );
    knownVersions = versions ?? undefined;
  };
  return {
    pool,
    projector,
    transaction: async (work) => {
      const appended: AppendedEvent[] = [];
      const afterCommit: (() => void)[] = [];
      const result = await inTransaction(
        pool,
        async (connection, rows) => {
          const [row] = rows as readonly {
            readonly now: string;
            readonly versions: string | null;
          }[];
          requireKnown(row?.versions ?? null);
          const streams = createStreams(connection, projector, (event) => appended.push(event));
          const result = await work({
            connection: afterWrites(connection, streams.writePending),
            now: new Date(row?.now ?? Number.NaN),
            lock: streams.lock,
            later: streams.later,
          });
          await streams.write();
          for (const event of appended)
            for (const subscriber of subscribers) {
              const next = await subscriber(connection, event);
              if (next) afterCommit.push(next);
            }
          return result;
        },
        // Two statements, so that the second one sees what a rebuild of the read models left that the first one waited for.
        `select pg_advisory_xact_lock_shared(${String(projector.lock)}); ${readVersions}`,
      );
      if (appended.length > 0) onCommitted?.(appended);
      for (const next of afterCommit) next();
      return result;
    },
  };
}

/** Reads the last committed state of a stream without a lock. For reads, not for decisions. */
export async function readState<State, Event extends DomainEvent>(
  { pool, projector }: Pick<Journal, 'pool' | 'projector'>,
  decider: Decider<State, Event>,
  id: string,
): Promise<State> {
  return (await projector.findState<State>(pool, decider.streamType, id)) ?? decider.initialState;
}

/** The connection, which writes what is pending before each of its statements. */
function afterWrites(connection: Connection, writePending: () => Promise<void>): Connection {
  const query = async (...statement: unknown[]): Promise<unknown> => {
    await writePending();
    return (connection.query as (...sent: unknown[]) => unknown)(...statement);
  };
  return Object.assign(Object.create(connection) as Connection, { query });
}

/** A locked stream, and what the transaction has to write of it. */
interface OpenStream<Stream> {
  readonly stream: Stream;
  /** What has changed since it was last taken. `isFirst`: only if nothing was taken before. */
  readonly take: (options?: { readonly isFirst: boolean }) => readonly (StreamState | StreamVersion)[];
}

/** The streams of one transaction. What their events change is written before another statement reads it, and at the end. */
function createStreams(
  connection: Connection,
  projector: Projector,
  onAppended: (event: AppendedEvent) => void,
) {
  const fold = projector.openFold(connection);
  const opened = new Map<string, OpenStream<unknown>>();
  let writing: Promise<void> = Promise.resolve();
  const take = (options?: { readonly isFirst: boolean }) =>
    [...opened.values()].flatMap((stream) => stream.take(options));
  return {
    later: (write: PendingWrite): void => fold.later(write),
    lock: async <State, Event extends DomainEvent>(
      decider: Decider<State, Event>,
      id: string,
      options: LockOptions = { isNew: false },
    ) => {
      const key = `${decider.streamType}/${id}`;
      // A stream type has exactly one decider, so the cached stream has the requested types.
      const known = opened.get(key)?.stream as LockedStream<State, Event> | undefined;
      if (known) return known;
      const { stream, take: takeChanges } = await lockStream(
        connection,
        projector,
        fold,
        decider,
        id,
        options,
        onAppended,
      );
      opened.set(key, { stream, take: takeChanges });
      return stream;
    },
    /** Writes what other statements may read. With it goes the state of a stream, once: most of them change no more. */
    writePending: async (): Promise<void> => {
      if (fold.isPending()) writing = fold.write(take({ isFirst: true }));
      await writing;
    },
    write: async (): Promise<void> => {
      await writing;
      const states = take();
      if (states.length > 0 || fold.isPending()) await fold.write(states);
    },
  };
}

async function lockStream<State, Event extends DomainEvent>(
  connection: Connection,
  projector: Projector,
  fold: AppendFold,
  decider: Decider<State, Event>,
  id: string,
  { isNew }: LockOptions,
  onAppended: (event: AppendedEvent) => void,
): Promise<OpenStream<LockedStream<State, Event>>> {
  const isCreated = isNew && (await createStream(connection, decider, id));
  const found = isCreated
    ? { version: 0, state: decider.initialState }
    : await lockAndRead(connection, projector, decider, id);
  let { version, state } = found;
  /** As it was written last. */
  let written = found;

  /** The events after the last one, as they are or will be stored, with the states that they lead to. */
  const following = (stored: readonly StoredEvent[]): readonly AppendedEvent[] => {
    let before = state;
    return stored.map((event) => {
      // The decider of a type of stream has its states and events.
      const next = decider.evolve(before, event as unknown as Recorded<Event>);
      const appended = {
        stream_type: decider.streamType,
        stored: event,
        before,
        state: next,
      } as AppendedEvent;
      before = next;
      return appended;
    });
  };
  const append = async (cause: string, given: readonly Event[]): Promise<readonly Recorded<Event>[]> => {
    if (given.length === 0) return [];
    const events = given.map(withSafeTexts).map((event, ordinal): NewEvent => ({
      stream_type: decider.streamType,
      stream_id: id,
      stream_version: version + ordinal + 1,
      event_id: deterministicId(decider.streamType, id, cause, ordinal),
      cause,
      type: event.type,
      schema_version: versionOf(event.type, projector.upcasts),
      data: event.data,
    }));
    const findSame = async (): Promise<readonly Recorded<Event>[]> => {
      const ids = events.map(({ event_id }) => event_id);
      return assertSameCause<Event>(await readEventsByIds(connection, ids, projector.upcasts), events, cause);
    };
    let planned: PlannedFold;
    try {
      planned = await fold.plan(following(events.map((event) => storedAs(event, notStoredYet))));
    } catch (error) {
      // Events that were appended before may not follow the state that they have led to.
      const same = await findSame().catch(() => undefined);
      if (same) return same;
      throw error;
    }
    const { inserted, rows } = await insertEvents(connection, events, planned.reads);
    if (inserted.length === 0) return findSame();
    if (inserted.length < events.length)
      throw new CauseMismatch(`The cause "${cause}" is stored with other events.`);
    const appended = following(
      events.map((event, ordinal) => storedAs(event, inserted[ordinal] ?? notStoredYet)),
    );
    planned.fold(appended, rows);
    version += events.length;
    // A type of stream has its states.
    state = appended.at(-1)?.state as State;
    for (const event of appended) onAppended(event);
    return appended.map(
      ({ stored: { type, data, recorded_at } }) =>
        ({ type, data, recorded_at }) as unknown as Recorded<Event>,
    );
  };
  const take = ({ isFirst } = { isFirst: false }): readonly (StreamState | StreamVersion)[] => {
    if (version === written.version || (isFirst && written !== found)) return [];
    const stream = { stream_type: decider.streamType, stream_id: id, version };
    // Many events after the end of a run change nothing that decisions depend on, and its state may be large.
    const isUnchanged = state === written.state;
    written = { version, state };
    return [isUnchanged ? stream : { ...stream, state }];
  };
  return { stream: { id, state: () => state, append }, take };
}

/** Fields of events whose text may be that of a foreign server. */
const foreignTexts: ReadonlySet<string> = new Set(['latest_error', 'reason']);

/** The journal keeps every event, so no event has an error of any length. */
function withSafeTexts<Event extends DomainEvent>(event: Event): Event {
  const texts = Object.entries(event.data).flatMap(([field, value]) =>
    foreignTexts.has(field) && typeof value === 'string' ? [[field, safeText(value)] as const] : [],
  );
  return texts.length === 0 ? event : { ...event, data: { ...event.data, ...Object.fromEntries(texts) } };
}

/**
 * Creates the row of a stream, and locks it so.
 * @returns false if there is one, which is visible by now if another session has inserted it
 */
async function createStream(
  connection: Connection,
  { streamType }: { readonly streamType: StreamType },
  id: string,
): Promise<boolean> {
  const { rowCount } = await connection.query({
    name: 'create-stream',
    text: 'insert into exportd.journal_streams (stream_type, stream_id) values ($1, $2) on conflict do nothing',
    values: [streamType, id],
  });
  return rowCount === 1;
}

/** Locks the row of a stream, creates it if it is missing, and reads the stream's state. */
async function lockAndRead<State, Event extends DomainEvent>(
  connection: Connection,
  projector: Projector,
  decider: Decider<State, Event>,
  id: string,
): Promise<{ version: number; state: State }> {
  const { streamType, initialState } = decider;
  const { rows } = await connection.query<{
    version: number;
    state_version: number | null;
    state: unknown;
    is_collapsed: boolean;
  }>({
    name: 'lock-stream',
    text: `select stream.version, folded.version as state_version, folded.state,
        stream.collapsed_at is not null as is_collapsed from exportd.journal_streams stream
      left join exportd.stream_states folded using (stream_type, stream_id)
      where stream.stream_type = $1 and stream.stream_id = $2 for update of stream`,
    values: [streamType, id],
  });
  const [row] = rows;
  if (!row)
    return (await createStream(connection, decider, id))
      ? { version: 0, state: initialState }
      : lockAndRead(connection, projector, decider, id);
  const { version, state_version, state, is_collapsed } = row;
  // A collapsed stream answers as if it had gone already.
  if (version === 0 || is_collapsed) return { version, state: initialState };
  // After waiting for the lock, the locked row is current, but the joined row is as of the start of the statement.
  const isCurrent = state_version === version && state !== null;
  return {
    version,
    state: isCurrent
      ? (projector.stateOf(streamType, state) as State)
      : await projector.readState<State>(connection, streamType, id),
  };
}

function assertSameCause<Event extends DomainEvent>(
  stored: readonly StoredEvent[],
  events: readonly DomainEvent[],
  cause: string,
): readonly Recorded<Event>[] {
  const sameTypes =
    stored.length === events.length && stored.every(({ type }, index) => type === events[index]?.type);
  if (!sameTypes)
    throw new CauseMismatch(
      `The cause "${cause}" is stored as ${stored.map(({ type }) => type).join(', ')}, ` +
        `not as ${events.map(({ type }) => type).join(', ')}.`,
    );
  // The types are equal, so the stored events have the shape of those to append.
  return stored.map(({ type, data, recorded_at }) => ({ type, data, recorded_at }) as Recorded<Event>);
}

/** An event before it is stored. */
interface NewEvent extends DomainEvent {
  readonly stream_type: StreamType;
  readonly stream_id: string;
  readonly stream_version: number;
  readonly event_id: string;
  readonly cause: string;
  readonly schema_version: number;
}

/** What PostgreSQL gives an event that is stored. */
type EventPlace = Pick<StoredEvent, 'global_position' | 'recorded_at'>;

/** The place of an event that is folded to find out what its fold reads. */
const notStoredYet: EventPlace = { global_position: 0, recorded_at: new Date(0).toISOString() };

function storedAs(event: NewEvent, place: EventPlace): StoredEvent {
  const { cause: _, schema_version: __, ...stored } = event;
  // A stream type has its events.
  return { ...stored, ...place } as StoredEvent;
}

/** The columns that differ between the events of one append, in the order of their parameters. */
const valuesOfEvent = (event: NewEvent): readonly unknown[] => [
  event.stream_version,
  event.event_id,
  event.type,
  JSON.stringify(event.data),
  event.schema_version,
];
const columnsOfEvent = 5;
/** Parameters that all events of one append share: stream and cause, and the version of the stream after them. */
const sharedParameters = 4;
/** In the place of the number of a read. */
const insertedSource = -1;

/** The statement that stores some events of a stream, which connections prepare, and reads what else is asked for. */
function insertStatement(count: number, reads: PlannedFold['reads']): string {
  const rows = Array.from({ length: count }).map((_, event) => {
    const parameter = (column: number): string => `$${sharedParameters + event * columnsOfEvent + column}`;
    return `($1, $2::uuid, ${parameter(1)}::bigint, ${parameter(2)}::uuid, $3, ${parameter(3)}, ${parameter(4)}::jsonb, ${parameter(5)}::integer)`;
  });
  return `with inserted as (
      insert into exportd.journal_events (stream_type, stream_id, stream_version, event_id, cause, event_type, data, schema_version)
      values ${rows.join(', ')} on conflict (event_id) do nothing returning global_position, recorded_at
    ), counted as (
      update exportd.journal_streams set version = $4
      where stream_type = $1 and stream_id = $2 and exists (select from inserted)
    )${reads ? `, ${reads.text(sharedParameters + count * columnsOfEvent + 1)}` : ''}
    select ${insertedSource} as source, to_json(inserted) as row from inserted
    ${reads ? reads.names.map((name) => `union all select * from ${name}`).join(' ') : ''}`;
}

/** Statements by their words, which are built once. */
const insertStatements = new Map<string, string>();
/** Each mixture of events and reads is a statement of its own. */
const maxInsertStatements = 500;

function insertStatementOf(count: number, reads: PlannedFold['reads']): string {
  if (reads && reads.words === undefined) return insertStatement(count, reads);
  const words = [count, ...(reads?.words ?? [])].join(' ');
  const known = insertStatements.get(words);
  if (known !== undefined) return known;
  const text = insertStatement(count, reads);
  if (insertStatements.size < maxInsertStatements) insertStatements.set(words, text);
  return text;
}

/**
 * Stores events of one append and increments the version of their stream, without any change if their ids are already stored. Reads
 * what their fold needs with the same statement.
 */
async function insertEvents(
  connection: Connection,
  events: readonly NewEvent[],
  reads: PlannedFold['reads'],
): Promise<{ readonly inserted: readonly EventPlace[]; readonly rows: readonly ReadRow[] }> {
  const [first] = events;
  const last = events.at(-1);
  if (!first || !last) return { inserted: [], rows: [] };
  const { rows } = await connection.query<ReadRow>(insertStatementOf(events.length, reads), [
    first.stream_type,
    first.stream_id,
    first.cause,
    last.stream_version,
    ...events.flatMap(valuesOfEvent),
    ...(reads?.values ?? []),
  ]);
  const inserted = rows
    .filter(({ source }) => source === insertedSource)
    .map(({ row }) => ({
      global_position: Number(row.global_position),
      // To the millisecond, as the type parser of the pool reads times.
      recorded_at: new Date(String(row.recorded_at)).toISOString(),
    }))
    .toSorted((one, other) => one.global_position - other.global_position);
  return { inserted, rows: rows.filter(({ source }) => source !== insertedSource) };
}

/** The levels of a log line, least important first. */
export const logLevels = ['DEBUG', 'INFO', 'WARNING', 'ERROR'] as const;
export type LogLevel = (typeof logLevels)[number];

/** A line of an export's log. It is visible to users and contains no stack traces, secrets or rows. */
interface LogLine {
  readonly team_id: number;
  readonly batch_export_id: string;
  readonly run_id: string | null;
  readonly level: LogLevel;
  readonly message: string;
}

/** What writes a log line with the changes of a transaction. */
export const logLineWrite = (line: LogLine): PendingWrite => ({
  target: 'exportd.log_lines',
  words: ['log line'],
  text: (first) => `insert into exportd.log_lines (team_id, batch_export_id, run_id, level, message)
    values ($${first}, $${first + 1}, $${first + 2}, $${first + 3}, $${first + 4})`,
  values: [line.team_id, line.batch_export_id, line.run_id, line.level, safeText(line.message)],
});

/** Writes a log line. Log lines are not part of the journal: they expire, and no projection depends on them. */
export async function writeLogLine(database: Pool | Connection, line: LogLine): Promise<void> {
  await database.query(
    'insert into exportd.log_lines (team_id, batch_export_id, run_id, level, message) values ($1, $2, $3, $4, $5)',
    [line.team_id, line.batch_export_id, line.run_id, line.level, safeText(line.message)],
  );
}
