import { expect } from '@jest/globals';
import type { Decider, DomainEvent, Recorded } from '../../src/domain/event.ts';

/** When the events of a specification were recorded, unless one says otherwise. */
export const recordedAt = '2026-11-01T10:20:00.000Z';

/** Reads like a sentence: given what happened, when this is asked, then that happens. */
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
      thenRefused: (code: string, detail?: RegExp) => {
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
