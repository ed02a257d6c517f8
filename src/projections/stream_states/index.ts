import { backfillDecider } from '../../domain/backfill.ts';
import { batchExportDecider } from '../../domain/batch_export.ts';
import type { Decider, DomainEvent, Recorded, StreamType } from '../../domain/event.ts';
import { runDecider } from '../../domain/run.ts';
import type { Connection, Pool } from '../../journal/database.ts';
import type { StoredEvent } from '../../journal/stored_event.ts';
import type { Projection } from '../projection.ts';

/** How the states of one kind of stream are folded, with the types of its state and events left out. */
type UntypedDecider = Decider<unknown, DomainEvent>;

const deciders: Record<StreamType, UntypedDecider> = {
  batch_export: batchExportDecider as unknown as UntypedDecider,
  run: runDecider as unknown as UntypedDecider,
  backfill: backfillDecider as unknown as UntypedDecider,
};

/**
 * The fold of every stream, so that deciding does not read a stream from its beginning: an export's stream grows by an
 * event for every interval, for ever.
 */
export const streamStatesProjection: Projection = {
  name: 'stream_states',
  version: 5,
  owns: ['exportd.stream_states'],
  tables: `
    create table exportd.stream_states (
      stream_type text not null,
      stream_id uuid not null,
      version bigint not null,
      state jsonb not null,
      primary key (stream_type, stream_id)
    )`,
  apply: async (connection, event, folded) => {
    // Who appends writes the state once, at the end of the transaction.
    if (folded) return;
    const { stream_type, stream_id, stream_version: version } = event;
    await writeStreamState(connection, {
      stream_type,
      stream_id,
      version,
      state: await fold(connection, event),
    });
  },
};

/** Writes what the events of a stream fold to, up to one of its versions. */
export async function writeStreamState(
  connection: Connection,
  stream: {
    readonly stream_type: StreamType;
    readonly stream_id: string;
    readonly version: number;
    readonly state: unknown;
  },
): Promise<void> {
  await connection.query({
    name: 'stream-state',
    text: `insert into exportd.stream_states (stream_type, stream_id, version, state) values ($1, $2, $3, $4)
     on conflict (stream_type, stream_id) do update set version = excluded.version, state = excluded.state`,
    values: [stream.stream_type, stream.stream_id, stream.version, JSON.stringify(stream.state)],
  });
}

async function fold(connection: Connection, event: StoredEvent): Promise<unknown> {
  const { type, data, recorded_at, stream_type, stream_id } = event;
  const decider = deciders[stream_type];
  const state =
    event.stream_version === 1
      ? decider.initialState
      : await readStreamState<unknown>(connection, stream_type, stream_id);
  const recorded: Recorded<DomainEvent> = { type, data, recorded_at };
  return decider.evolve(state, recorded);
}

/** The state of a stream that has at least one event. */
export async function readStreamState<State>(
  connection: Connection,
  streamType: StreamType,
  id: string,
): Promise<State> {
  const state = await findStreamState<State>(connection, streamType, id);
  if (state === undefined) throw stateMissing(streamType, id);
  return state;
}

/** The state of a stream as the last commit left it; undefined when it has no event. */
export async function findStreamState<State>(
  database: Pool | Connection,
  streamType: StreamType,
  id: string,
): Promise<State | undefined> {
  const { rows } = await database.query<{ state: State }>({
    name: 'find-stream-state',
    text: 'select state from exportd.stream_states where stream_type = $1 and stream_id = $2',
    values: [streamType, id],
  });
  return rows[0]?.state;
}

/** The read model lacks a stream that the journal has. */
const stateMissing = (streamType: StreamType, id: string): Error =>
  new Error(`The state of ${streamType} ${id} is missing; run "exportd rebuild".`);
