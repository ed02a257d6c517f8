import type { ActivitySlotInfo, CustomSlotSupplier, SlotPermit } from '@temporalio/worker';
import type { Settings } from '../../config/settings.ts';

/**
 * The activity slots of the export worker. An attempt that waits for an unresponsive server yields its slot to another,
 * so that a bucket that hangs delays no other export.
 */
export interface ExportSlots {
  /**
   * Yields a slot. At most EXPORTD_MAX_YIELDED_SLOTS are yielded at a time, since each attempt needs memory.
   * @returns a function that reclaims the slot, once; undefined when no more slots may be yielded
   */
  yieldSlot(): (() => void) | undefined;
  /** Hands out the slots to the SDK. */
  readonly supplier: CustomSlotSupplier<ActivitySlotInfo>;
}

/** Creates EXPORTD_EXPORT_SLOTS slots. */
export function createExportSlots({
  EXPORTD_EXPORT_SLOTS: ownSlots,
  EXPORTD_MAX_YIELDED_SLOTS: maxYielded,
}: Pick<Settings, 'EXPORTD_EXPORT_SLOTS' | 'EXPORTD_MAX_YIELDED_SLOTS'>): ExportSlots {
  const waiting = new Set<() => void>();
  let reserved = 0;
  let yielded = 0;
  // After a slot is reclaimed, more may be reserved than exist, until an activity ends.
  const isFree = (): boolean => reserved < ownSlots + yielded;
  const reserve = (): SlotPermit => {
    reserved += 1;
    return {};
  };
  const grantWaiting = (): void => {
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
      grantWaiting();
      let reclaimed = false;
      return () => {
        if (!reclaimed) yielded -= 1;
        reclaimed = true;
      };
    },
    supplier: {
      type: 'custom',
      reserveSlot: (_, signal) => {
        // The SDK logs any other error than this reason.
        const abortReason = (): Error => signal.reason as Error;
        if (signal.aborted) return Promise.reject(abortReason());
        if (isFree() && waiting.size === 0) return Promise.resolve(reserve());
        return new Promise((resolve, reject) => {
          const next = (): void => resolve(reserve());
          waiting.add(next);
          signal.addEventListener('abort', () => {
            if (waiting.delete(next)) reject(abortReason());
          });
        });
      },
      tryReserveSlot: () => (isFree() && waiting.size === 0 ? reserve() : null),
      markSlotUsed: () => undefined,
      releaseSlot: () => {
        reserved -= 1;
        grantWaiting();
      },
    },
  };
}
