import { backfillDecider } from '../../domain/backfill.ts';
import { batchExportDecider } from '../../domain/batch_export.ts';
import type { Decider, DomainEvent, Recorded, StreamType } from '../../domain/event.ts';
import { runDecider } from '../../domain/run.ts';
import type { Connection } from '../../journal/database.ts';
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
  version: 3,
  owns: ['exportd.stream_states'],
  tables: `
    create table exportd.stream_states (
      stream_type text not null,
      stream_id uuid not null,
      version bigint not null,
      state jsonb not null,
      primary key (stream_type, stream_id)
    )`,
  apply: async (connection, event) => {
    const decider = deciders[event.stream_type];
    const state =
      event.stream_version === 1
        ? decider.initialState
        : await readStreamState<unknown>(connection, event.stream_type, event.stream_id);
    const recorded: Recorded<DomainEvent> = {
      type: event.type,
      data: event.data,
      recorded_at: event.recorded_at,
    };
    await connection.query(
      `insert into exportd.stream_states (stream_type, stream_id, version, state) values ($1, $2, $3, $4)
       on conflict (stream_type, stream_id) do update set version = excluded.version, state = excluded.state`,
      [
        event.stream_type,
        event.stream_id,
        event.stream_version,
        JSON.stringify(decider.evolve(state, recorded)),
      ],
    );
  },
};

/** The state of a stream that has at least one event. */
export async function readStreamState<State>(
  connection: Connection,
  streamType: StreamType,
  id: string,
): Promise<State> {
  const { rows } = await connection.query<{ state: State }>(
    'select state from exportd.stream_states where stream_type = $1 and stream_id = $2',
    [streamType, id],
  );
  const [row] = rows;
  if (!row) throw new Error(`The state of ${streamType} ${id} is missing; run "exportd rebuild".`);
  return row.state;
}
