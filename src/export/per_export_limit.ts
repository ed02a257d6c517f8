import type { YieldableSlots } from './yield_slot.ts';

/** Limits how many attempts of one export run at once in this process. */
export interface PerExportLimit {
  /**
   * Waits until an attempt of the export may run; its slot is yielded meanwhile.
   * @returns a function that releases the permit, once.
   * @throws the signal's reason when it is aborted
   */
  readonly acquire: (batchExportId: string, signal: AbortSignal) => Promise<() => void>;
}

/**
 * A counting semaphore for each export, in order of arrival. It keeps an export with very many intervals from occupying
 * every slot for hours. Its cost: an attempt may wait here while another worker has free slots.
 */
export function createPerExportLimit(maxConcurrentPerExport: number, slots: YieldableSlots): PerExportLimit {
  const acquired = new Map<string, number>();
  const waiting = new Map<string, Set<() => void>>();

  const release = (id: string): void => {
    const [next] = waiting.get(id) ?? [];
    // The permit passes directly to the next waiter, so that a later caller cannot overtake it.
    const remaining = (acquired.get(id) ?? 0) - (next ? 0 : 1);
    if (remaining > 0) acquired.set(id, remaining);
    else acquired.delete(id);
    next?.();
  };

  const waitForPermit = async (id: string, signal: AbortSignal): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const queue = waiting.get(id) ?? new Set<() => void>();
    const leaveQueue = (): void => {
      queue.delete(grant);
      if (queue.size === 0) waiting.delete(id);
      signal.removeEventListener('abort', abort);
    };
    const grant = (): void => {
      leaveQueue();
      resolve(undefined);
    };
    const abort = (): void => {
      leaveQueue();
      reject(signal.reason);
    };
    waiting.set(id, queue.add(grant));
    signal.addEventListener('abort', abort);
    await promise;
  };

  return {
    acquire: async (id, signal) => {
      signal.throwIfAborted();
      const count = acquired.get(id) ?? 0;
      if (count < maxConcurrentPerExport) acquired.set(id, count + 1);
      else {
        const reclaim = slots.yieldSlot();
        try {
          await waitForPermit(id, signal);
        } finally {
          reclaim?.();
        }
      }
      let released = false;
      return () => {
        if (!released) release(id);
        released = true;
      };
    },
  };
}
