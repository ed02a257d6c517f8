import { createKeyedSemaphore } from '../source/keyed_semaphore.ts';
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
  const permits = createKeyedSemaphore<string>(maxConcurrentPerExport);
  return {
    acquire: async (id, signal) => {
      signal.throwIfAborted();
      const free = permits.tryAcquire(id);
      if (free) return free;
      const reclaim = slots.yieldSlot();
      try {
        return await permits.acquire(id, signal);
      } finally {
        reclaim?.();
      }
    },
  };
}
