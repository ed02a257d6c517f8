import type { ActivitySlotInfo, CustomSlotSupplier, SlotPermit } from '@temporalio/worker';

/** How the activity slots of a worker are used. */
export interface SlotUse {
  readonly slots: number;
  /** Activities that run, those included that have yielded their slot. */
  readonly running: number;
  /** Slots that running activities have yielded to others. */
  readonly yielded: number;
}

/** The activity slots of a worker. An activity that waits yields its slot to another, and reclaims it. */
export interface ActivitySlots {
  /**
   * Yields a slot.
   * @returns a function that reclaims the slot, once; undefined when no more slots may be yielded
   */
  yieldSlot(): (() => void) | undefined;
  /** How the slots are used now. */
  use(): SlotUse;
  /** Hands out the slots to the SDK. */
  readonly supplier: CustomSlotSupplier<ActivitySlotInfo>;
}

/** Creates slots, of which at most `maxYielded` are yielded at a time. */
export function createActivitySlots(ownSlots: number, maxYielded: number): ActivitySlots {
  const waiting = new Set<() => void>();
  let reserved = 0;
  let running = 0;
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
    use: () => ({ slots: ownSlots, running, yielded }),
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
      markSlotUsed: () => {
        running += 1;
      },
      // The SDK also reserves a slot for each poll, and releases it unused when there was no task.
      releaseSlot: ({ slotInfo }) => {
        reserved -= 1;
        if (slotInfo) running -= 1;
        grantWaiting();
      },
    },
  };
}
