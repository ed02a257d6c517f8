import type { StreamType } from '../domain/event.ts';
import type { Connection, Pool } from './database.ts';
import type { StoredEvent } from './stored_event.ts';

/** The state of a stream after an event. The append knows it and writes it once, after all of its events. */
export interface FoldedState {
  readonly state: unknown;
}

/** A stream at one of its versions. */
export interface StreamVersion {
  readonly stream_type: StreamType;
  readonly stream_id: string;
  readonly version: number;
}

/** The state of a stream at one of its versions. */
export interface StreamState extends StreamVersion, FoldedState {}

/** Updates the read models in the transaction of each append. Implemented by src/projections. */
export interface Projector {
  /** Key of the advisory lock that appends share and a rebuild of the read models acquires exclusively. */
  readonly lock: number;
  /** Folds a stored event into all read models. `folded` is the stream's state after it, if known. */
  apply(connection: Connection, event: StoredEvent, folded?: FoldedState): Promise<void>;
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
  writeState(connection: Connection, stream: StreamState): Promise<void>;
  /** Writes the version of a stream whose state is unchanged. */
  writeVersion(connection: Connection, stream: StreamVersion): Promise<void>;
}
