import type { ActivitySlotInfo, CustomSlotSupplier, SlotPermit } from '@temporalio/worker';
import { createKeyedSemaphore } from '../../concurrency/keyed_semaphore.ts';
import type { Settings } from '../../config/settings.ts';

/** How the activity slots of a worker are used. */
interface SlotUse {
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

/** Export slots that are yielded at a time. Each of their attempts still uses memory. */
const maxYieldedExportSlots = 12;

/**
 * Creates the slots of the export worker. An attempt that waits for an unresponsive server yields its slot to another, so
 * that a bucket that hangs delays no other export.
 */
export const createExportSlots = (settings: Pick<Settings, 'EXPORTD_EXPORT_SLOTS'>): ActivitySlots =>
  createActivitySlots(settings.EXPORTD_EXPORT_SLOTS, maxYieldedExportSlots);

/** Every activity is one of the same kind. */
const activity = 'activity';

/** Creates slots, of which at most `maxYielded` are yielded at a time. */
export function createActivitySlots(slots: number, maxYielded: number): ActivitySlots {
  const permits = createKeyedSemaphore<typeof activity>({ total: slots, lendable: maxYielded });
  // The permits are alike, so that any of them can be released.
  const releases: (() => void)[] = [];
  let running = 0;
  const reserve = (release: () => void): SlotPermit => {
    releases.push(release);
    return {};
  };
  return {
    use: () => ({ slots, running, yielded: permits.lent }),
    yieldSlot: () => permits.lend(),
    supplier: {
      type: 'custom',
      // It throws the signal's own reason: the SDK logs any other error.
      reserveSlot: async (_, signal) => reserve(await permits.acquire(activity, { signal })),
      tryReserveSlot: () => {
        const release = permits.tryAcquire(activity);
        return release ? reserve(release) : null;
      },
      markSlotUsed: () => {
        running += 1;
      },
      // The SDK also reserves a slot for each poll, and releases it unused when there was no task.
      releaseSlot: ({ slotInfo }) => {
        if (slotInfo) running -= 1;
        releases.pop()?.();
      },
    },
  };
}
