import type { StreamType } from '../domain/event.ts';
import type { Connection, Pool } from './database.ts';
import type { StoredEvent } from './stored_event.ts';

/** The fold of a stream. An append knows it from the last write, and writes it once, after all of its events. */
export interface FoldedState {
  readonly state: unknown;
}

/** What the events of a stream fold to, up to one of its versions. */
export interface StreamState extends FoldedState {
  readonly stream_type: StreamType;
  readonly stream_id: string;
  readonly version: number;
}

/** Keeps the read models current. The journal calls it within the transaction of each append; src/projections has it. */
export interface Projector {
  /** Key of the advisory lock that appends share and a rebuild of the read models acquires exclusively. */
  readonly lock: number;
  /** Folds a stored event into every read model. `folded` is the stream's state including it, where that is known. */
  apply(connection: Connection, event: StoredEvent, folded?: FoldedState): Promise<void>;
  /** Returns the committed state of a stream; undefined when the stream has no event. */
  findState<State>(
    database: Pool | Connection,
    streamType: StreamType,
    id: string,
  ): Promise<State | undefined>;
  /** Returns the state of a stream that has an event. @throws Error when it is missing */
  readState<State>(connection: Connection, streamType: StreamType, id: string): Promise<State>;
  writeState(connection: Connection, stream: StreamState): Promise<void>;
}
