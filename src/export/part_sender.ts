import type { MemoryReservation } from '../encoding/memory_budget.ts';

/** Bytes of parts under way at once; a part larger than this goes alone. */
const bytesInFlightMaximum = 48 * 1024 * 1024;
const partsInFlightMaximum = 3;

/** Sends in the background within the bounds on what may be in flight; the first failure is thrown by the next call. */
export interface PartSender {
  /** Takes a part up as soon as there is room for its bytes. */
  send(bytes: number, work: () => Promise<void>): Promise<void>;
  /** Waits until nothing is in flight. */
  settled(): Promise<void>;
}

/** A sender for the parts of one file; while memory is short it sends one at a time. */
export function createPartSender(memory: Pick<MemoryReservation, 'isOverBudget'>): PartSender {
  const inFlight = new Set<Promise<void>>();
  let bytesInFlight = 0;
  let failure: { readonly error: unknown } | undefined;
  const throwFailure = (): void => {
    if (failure) throw failure.error;
  };
  const isFull = (bytes: number): boolean =>
    inFlight.size >= partsInFlightMaximum ||
    (inFlight.size > 0 && (bytesInFlight + bytes > bytesInFlightMaximum || memory.isOverBudget()));
  return {
    send: async (bytes: number, work: () => Promise<void>): Promise<void> => {
      while (isFull(bytes)) await Promise.race(inFlight);
      throwFailure();
      bytesInFlight += bytes;
      const sending = work()
        .catch((error: unknown) => {
          failure ??= { error };
        })
        .finally(() => {
          bytesInFlight -= bytes;
          inFlight.delete(sending);
        });
      inFlight.add(sending);
    },
    settled: async (): Promise<void> => {
      await Promise.all(inFlight);
      throwFailure();
    },
  };
}
