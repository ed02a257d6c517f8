import type { ActivitySlotInfo, CustomSlotSupplier, SlotPermit } from '@temporalio/worker';
import type { Settings } from '../../config/settings.ts';

/**
 * The slots of the export worker. An attempt that waits for a server which does not answer lends its slot to another,
 * so that a bucket that hangs keeps no other export waiting.
 */
export interface ExportSlots {
  /**
   * Lends a slot out. As many as EXPORTD_MAX_YIELDED_SLOTS are lent at once, since each attempt under way has its memory.
   * @returns a function that ends it, once; undefined when no more can be lent.
   */
  yieldSlot(): (() => void) | undefined;
  /** What the SDK asks for slots. */
  readonly supplier: CustomSlotSupplier<ActivitySlotInfo>;
}

/** Makes as many slots as EXPORTD_EXPORT_SLOTS says. */
export function createExportSlots({
  EXPORTD_EXPORT_SLOTS: own,
  EXPORTD_MAX_YIELDED_SLOTS: maxYielded,
}: Pick<Settings, 'EXPORTD_EXPORT_SLOTS' | 'EXPORTD_MAX_YIELDED_SLOTS'>): ExportSlots {
  const waiting = new Set<() => void>();
  let reserved = 0;
  let yielded = 0;
  // After one was taken back there may be fewer than are reserved, until the next ends.
  const isFree = (): boolean => reserved < own + yielded;
  const take = (): SlotPermit => {
    reserved += 1;
    return {};
  };
  const serve = (): void => {
    for (const next of waiting) {
      if (!isFree()) return;
      waiting.delete(next);
      next();
    }
  };
  return {
    yieldSlot: () => {
      if (yielded >= maxYielded) return undefined;
      yielded += 1;
      serve();
      let ended = false;
      return () => {
        if (!ended) yielded -= 1;
        ended = true;
      };
    },
    supplier: {
      type: 'custom',
      reserveSlot: (_, signal) => {
        // The SDK takes an error other than this reason for a fault, and logs it.
        const given = (): Error => signal.reason as Error;
        if (signal.aborted) return Promise.reject(given());
        if (isFree() && waiting.size === 0) return Promise.resolve(take());
        return new Promise((resolve, reject) => {
          const next = (): void => resolve(take());
          waiting.add(next);
          signal.addEventListener('abort', () => {
            if (waiting.delete(next)) reject(given());
          });
        });
      },
      tryReserveSlot: () => (isFree() && waiting.size === 0 ? take() : null),
      markSlotUsed: () => undefined,
      releaseSlot: () => {
        reserved -= 1;
        serve();
      },
    },
  };
}
