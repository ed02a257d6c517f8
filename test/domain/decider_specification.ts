import { expect } from '@jest/globals';
import type { Decider, DomainEvent, Recorded } from '../../src/domain/event.ts';

/** The default `recorded_at` of the events in a specification. */
const recordedAt = '2026-11-01T10:20:00.000Z';

/** Specifies a decision: given past events, when deciding, then these events (or this rejection). */
export function given<State, Event extends DomainEvent>(
  decider: Decider<State, Event>,
  events: readonly (NoInfer<Event> | Recorded<NoInfer<Event>>)[],
) {
  const state = events.reduce<State>(
    (folded, event) => decider.evolve(folded, { recorded_at: recordedAt, ...event }),
    decider.initialState,
  );
  return {
    state,
    when: (decide: (state: State) => Event[]) => ({
      then: (expected: readonly Event[]) => {
        expect(decide(state)).toEqual(expected);
      },
      thenRejected: (code: string, detail?: RegExp) => {
        expect(() => decide(state)).toThrow(
          expect.objectContaining({
            name: 'CommandRejected',
            code,
            message: expect.stringMatching(detail ?? /./),
          }),
        );
      },
    }),
  };
}
