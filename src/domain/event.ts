/** An event before it is stored: its type, in the past tense, and its data. */
export interface DomainEvent {
  readonly type: string;
  readonly data: object;
}

/** A stored event. `recorded_at` (ISO 8601, UTC) is the time of the database clock, never of a worker's. */
export type Recorded<Event extends DomainEvent> = Event & { readonly recorded_at: string };

/** The types of stream in the journal. */
export type StreamType = 'batch_export' | 'run' | 'backfill';

/** Folds the events of one type of stream into the state that decisions depend on. */
export interface Decider<State, Event extends DomainEvent> {
  readonly streamType: StreamType;
  readonly initialState: State;
  readonly evolve: (state: State, event: Recorded<Event>) => State;
}

/**
 * How stored data of former versions becomes that of the current one, by type of event: the first function makes version 2 of
 * version 1. A type without an entry has version 1.
 */
export type Upcasts = Readonly<Record<string, readonly ((data: object) => object)[]>>;

/** A JSON value, for fields that the domain stores without interpreting them. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [field: string]: JsonValue };
