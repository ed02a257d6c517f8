/** Sends parts, several at a time. */
import type { MemoryReservation } from '../encoding/memory.ts';

/** A larger part is sent alone. */
const maxBytesInFlight = 48 * 1024 * 1024;
const maxPartsInFlight = 3;

/** Sends parts in the background. After an error, the next call throws it. */
interface PartSender {
  /** Waits until the part may be in flight and starts to send it. */
  send(bytes: number, work: () => Promise<void>): Promise<void>;
  /** Waits until nothing is in flight. */
  settled(): Promise<void>;
}

/** Limits the parts and bytes of one file that are in flight; while memory is over budget, to one part. */
export function createPartSender(memory: Pick<MemoryReservation, 'isOverBudget'>): PartSender {
  const inFlight = new Set<Promise<void>>();
  let bytesInFlight = 0;
  let failure: { readonly error: unknown } | undefined;
  const throwFailure = (): void => {
    if (failure) throw failure.error;
  };
  const isFull = (bytes: number): boolean =>
    inFlight.size >= maxPartsInFlight ||
    (inFlight.size > 0 && (bytesInFlight + bytes > maxBytesInFlight || memory.isOverBudget()));
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
