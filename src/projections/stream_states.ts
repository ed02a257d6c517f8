import { backfillDecider } from '../domain/backfill.ts';
import { batchExportDecider } from '../domain/batch_export.ts';
import type { Decider, DomainEvent, StreamType } from '../domain/event.ts';
import { openRange, runDecider, untouchedRun } from '../domain/run.ts';
import type { ExistingRun, RunSpec } from '../domain/run_state.ts';
import type { Connection, Pool } from '../journal/database.ts';
import type { FoldedState, StoredEvent, StreamState, StreamVersion } from '../journal/journal.ts';
import { type Projection } from './projection.ts';
import { digestOf } from './batch_exports.ts';
import { byKey, type CachedTable, type RowCache } from './row_cache.ts';

/** A decider without the types of its state and events. */
type UntypedDecider = Decider<unknown, DomainEvent>;

const deciders: Record<StreamType, UntypedDecider> = {
  batch_export: batchExportDecider as unknown as UntypedDecider,
  run: runDecider as unknown as UntypedDecider,
  backfill: backfillDecider as unknown as UntypedDecider,
};

type Members = Readonly<Record<string, unknown>>;

/** What runs have that no step has touched, as JSON by name. */
const jsonOf = (members: object): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(Object.entries(members).map(([name, value]) => [name, JSON.stringify(value)]));
const untouchedRange = openRange(null, null);
const untouchedSpec = {
  allow_shrink: false,
  retry_number: 0,
  purpose: { kind: 'interval' },
  continues_run_id: null,
} satisfies Partial<RunSpec>;
const untouchedFiles = { rejected: 0, expires_at: null };
const untouched = {
  run: jsonOf(untouchedRun),
  range: jsonOf(untouchedRange),
  spec: jsonOf(untouchedSpec),
  files: jsonOf(untouchedFiles),
};

const changed = (members: object, defaults: Readonly<Record<string, string | undefined>>): Members =>
  Object.fromEntries(
    Object.entries(members).filter(
      ([name, value]) => defaults[name] === undefined || JSON.stringify(value) !== defaults[name],
    ),
  );

const isRun = (streamType: StreamType, state: unknown): state is ExistingRun =>
  streamType === 'run' && typeof state === 'object' && state !== null && 'spec' in state && 'ranges' in state;

/**
 * The state of a stream as it is stored: of a run only what its steps have changed, since there are more runs than anything
 * else, and a row of less than two kilobytes stays in one piece.
 */
function storedState(streamType: StreamType, state: unknown): unknown {
  if (!isRun(streamType, state)) return state;
  const { finished, encoder } = state;
  return {
    ...changed(state, untouched.run),
    spec: changed(state.spec, untouched.spec),
    ranges: state.ranges.map((range) => ({
      ...changed(range, untouched.range),
      files: changed(range.files, untouched.files),
    })),
    ...(finished && { finished: changed(finished, jsonOf({ fingerprint: null, encoder })) }),
  };
}

/** The state of a stream by what is stored of it. */
export function stateOf(streamType: StreamType, stored: unknown): unknown {
  if (!isRun(streamType, stored)) return stored;
  const { finished = null, encoder = null } = stored as Partial<ExistingRun>;
  return {
    ...untouchedRun,
    ...stored,
    spec: { ...untouchedSpec, ...stored.spec },
    ranges: stored.ranges.map((range) => ({
      ...untouchedRange,
      ...range,
      files: { ...untouchedFiles, ...range.files },
    })),
    finished: finished && { fingerprint: null, encoder, ...(finished as object) },
  };
}

const table: CachedTable = {
  name: 'exportd.stream_states',
  key: ['stream_type', 'stream_id'],
  lookups: {},
};

/** A state in memory, of which the row has what is stored. Most events of a batch are followed by others of their stream. */
class StateInMemory {
  readonly streamType: StreamType;
  readonly state: unknown;
  constructor(streamType: StreamType, state: unknown) {
    this.streamType = streamType;
    this.state = state;
  }
  toJSON(): unknown {
    return storedState(this.streamType, this.state);
  }
}

/** Folds an event of a rebuild into its stream's row, and returns the state after it. */
export async function foldState(rows: RowCache, stored: StoredEvent): Promise<unknown> {
  const { stream_type, stream_id, stream_version: version, type, data, recorded_at } = stored;
  const { initialState, evolve } = deciders[stream_type];
  const row = await rows.get(table, stream_type, stream_id);
  if (!row && version > 1) throw missingState(stream_type, stream_id);
  const known = row?.state;
  const before =
    known instanceof StateInMemory ? known.state : row ? stateOf(stream_type, known) : initialState;
  const after = evolve(before, { type, data, recorded_at });
  const state = after ?? before;
  const unknown_event = after === undefined ? type : (row?.unknown_event ?? null);
  rows.set(table, {
    stream_type,
    stream_id,
    version,
    unknown_event,
    state: new StateInMemory(stream_type, state),
  });
  return state;
}

/**
 * The state of every stream, so that decisions do not read streams from the start: an export's stream grows by an event
 * per interval indefinitely.
 */
export const streamStatesProjection: Projection = {
  name: 'stream_states',
  version: 15,
  reads: [],
  owns: ['exportd.stream_states'],
  tables: `
    create table exportd.stream_states (
      stream_type text not null,
      stream_id uuid not null,
      version bigint not null,
      state jsonb not null,
      -- The type of an event that the version of exportd which rebuilt the table did not know, so that the state lacks it.
      unknown_event text,
      primary key (stream_type, stream_id)
    );
    create index on exportd.stream_states (stream_id) where unknown_event is not null`,
  apply: async (connection, event, folded) => {
    const digest = digestOf(event);
    if (digest)
      await connection.query(
        `delete from exportd.stream_states where stream_type = 'run' and stream_id = any($1)
           or stream_type = 'backfill' and stream_id = any($2)`,
        [digest.run_ids, digest.backfill_ids],
      );
    // An append writes the state once, at the end of its transaction.
    if (folded) return;
    const { stream_type, stream_id, stream_version: version, type, data, recorded_at } = event;
    const { initialState, evolve } = deciders[stream_type];
    const before =
      version === 1 ? initialState : await readStreamState<unknown>(connection, stream_type, stream_id);
    const after = evolve(before, { type, data, recorded_at });
    await writeStreamState(connection, { stream_type, stream_id, version, state: after ?? before });
    // A fold knows every type of event of its version, and has no value for others.
    if (after === undefined)
      await connection.query(
        'update exportd.stream_states set unknown_event = $3 where stream_type = $1 and stream_id = $2',
        [stream_type, stream_id, type],
      );
  },
  batch: {
    tables: [table],
    wants: ({ stored: { stream_type, stream_id, stream_version } }) => [
      { table, lookup: byKey, values: [stream_type, stream_id], isNew: stream_version === 1 },
    ],
    // A rebuild has called `foldState`, because the others need its result.
    fold: () => Promise.resolve(true),
  },
};

const missingState = (streamType: StreamType, id: string): Error =>
  new Error(`The state of ${streamType} ${id} is missing. Run "exportd rebuild".`);

/** Writes the state of a stream at one of its versions. */
export async function writeStreamState(connection: Connection, stream: StreamState): Promise<void> {
  await connection.query({
    name: 'stream-state',
    text: `insert into exportd.stream_states (stream_type, stream_id, version, state) values ($1, $2, $3, $4)
     on conflict (stream_type, stream_id) do update set version = excluded.version, state = excluded.state`,
    values: [
      stream.stream_type,
      stream.stream_id,
      stream.version,
      JSON.stringify(storedState(stream.stream_type, stream.state)),
    ],
  });
}

/** Writes the version of a stream whose state is unchanged, which PostgreSQL then does not write again. */
export async function writeStreamVersion(
  connection: Connection,
  { stream_type, stream_id, version }: StreamVersion,
): Promise<void> {
  await connection.query({
    name: 'stream-version',
    text: 'update exportd.stream_states set version = $3 where stream_type = $1 and stream_id = $2',
    values: [stream_type, stream_id, version],
  });
}

/** Reads the state of a stream that has at least one event. */
export async function readStreamState<State>(
  connection: Connection,
  streamType: StreamType,
  id: string,
): Promise<State> {
  const state = await findStreamState<State>(connection, streamType, id);
  if (state === undefined) throw missingState(streamType, id);
  return state;
}

/** Reads the last committed state of a stream; undefined if it has no events. */
export async function findStreamState<State>(
  database: Pool | Connection,
  streamType: StreamType,
  id: string,
): Promise<State | undefined> {
  const { rows } = await database.query<{ state: unknown }>({
    name: 'find-stream-state',
    text: 'select state from exportd.stream_states where stream_type = $1 and stream_id = $2',
    values: [streamType, id],
  });
  return rows[0] && (stateOf(streamType, rows[0].state) as State);
}

/** The run after an event of its stream: as the append knows it, or as stored. */
export async function readRun(
  connection: Connection,
  { stream_id }: StoredEvent,
  folded?: FoldedState,
): Promise<ExistingRun> {
  const known = folded?.state as ExistingRun | undefined;
  return known ?? readStreamState<ExistingRun>(connection, 'run', stream_id);
}
