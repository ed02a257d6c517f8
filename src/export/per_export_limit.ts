import { createKeyedSemaphore } from '../concurrency/keyed_semaphore.ts';
import type { YieldableSlots } from './yieldable_slots.ts';

/** Limits how many attempts of one export run at once in this process. */
export interface PerExportLimit {
  /**
   * Waits until an attempt of the export may run.
   * @param slot of the attempt, which is yielded meanwhile
   * @returns a function that releases the permit, once, and whether others had all permits at first
   * @throws the signal's reason when it is aborted
   */
  readonly acquire: (
    batchExportId: string,
    signal: AbortSignal,
    slot?: YieldableSlots,
  ) => Promise<{ readonly release: () => void; readonly waited: boolean }>;
}

/**
 * Permits of each export, in order of arrival. They keep an export with very many intervals from occupying every slot for
 * hours. Its cost: an attempt may wait here while another worker has free slots.
 */
export function createPerExportLimit(maxConcurrentPerExport: number): PerExportLimit {
  const permits = createKeyedSemaphore<string>({ perKey: maxConcurrentPerExport });
  return {
    acquire: async (id, signal, slot) => {
      let reclaim: (() => void) | undefined;
      let waited = false;
      const onLimited = (): void => {
        waited = true;
        reclaim = slot?.yieldSlot();
      };
      try {
        return { release: await permits.acquire(id, { signal, onLimited }), waited };
      } finally {
        reclaim?.();
      }
    },
  };
}
