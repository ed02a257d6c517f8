import { createKeyedSemaphore } from '../concurrency/keyed_semaphore.ts';
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
 * Permits of each export, in order of arrival. They keep an export with very many intervals from occupying every slot for
 * hours. Its cost: an attempt may wait here while another worker has free slots.
 */
export function createPerExportLimit(maxConcurrentPerExport: number, slots: YieldableSlots): PerExportLimit {
  const permits = createKeyedSemaphore<string>({ perKey: maxConcurrentPerExport });
  return {
    acquire: async (id, signal) => {
      let reclaim: (() => void) | undefined;
      try {
        return await permits.acquire(id, { signal, onLimited: () => (reclaim = slots.yieldSlot()) });
      } finally {
        reclaim?.();
      }
    },
  };
}
