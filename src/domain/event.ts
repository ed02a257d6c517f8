/** An event before it is stored: what happened, in the past tense, and the facts that belong to it. */
export interface DomainEvent {
  readonly type: string;
  readonly data: object;
}

/** An event as the journal holds it; `recorded_at` (ISO 8601, UTC) is the database's clock, never a worker's. */
export type Recorded<Event extends DomainEvent> = Event & { readonly recorded_at: string };

/** The kinds of stream in the journal. */
export type StreamType = 'batch_export' | 'run' | 'backfill';

/**
 * How one kind of stream folds its events into the state that decisions are made on.
 * `evolve` is total: an event it does not know leaves the state as it is.
 */
export interface Decider<State, Event extends DomainEvent> {
  readonly streamType: StreamType;
  readonly initialState: State;
  readonly evolve: (state: State, event: Recorded<Event>) => State;
}
