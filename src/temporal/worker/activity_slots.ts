import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type { ActivitySlotInfo, CustomSlotSupplier, SlotPermit } from '@temporalio/worker';
import type { JobSlots } from '../../../activities/jobs.ts';
import { createKeyedSemaphore } from '../../concurrency/keyed_semaphore.ts';
import { bounds } from '../../config/bounds.ts';
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

/**
 * Slots of which each project has a share. The SDK reserves a slot before Temporal says whose task it is for, so that an
 * activity is admitted once it has begun.
 */
export interface FairActivitySlots extends ActivitySlots {
  /**
   * Waits until an activity of a project may use its slot.
   * @param fairnessKey Temporal's fairness key of the task: the project
   * @returns a function that ends the use
   * @throws ApplicationFailure `SlotsTaken` after `waitMs` milliseconds: Temporal keeps the task, so that the slot can take
   *   one of another project. Or the reason of the signal
   */
  admit(fairnessKey: string, waitMs: number, signal: AbortSignal): Promise<() => void>;
  /** Whether none of the slots has been free for some seconds: more tasks wait in Temporal, or will. */
  areTaken(): boolean;
}

/** Export slots that are yielded at a time. Each of their attempts still uses memory. */
const maxYieldedExportSlots = 12;

/**
 * Creates the slots of the export worker. An attempt that waits for an unresponsive server yields its slot to another, so
 * that a bucket that hangs delays no other export.
 */
export const createExportSlots = (settings: Pick<Settings, 'EXPORTD_EXPORT_SLOTS'>): FairActivitySlots =>
  createFairActivitySlots(settings.EXPORTD_EXPORT_SLOTS, maxYieldedExportSlots);

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

/** Beside the slots there is one for a project that uses none. */
const keptSlots = 1;

/** A slot that is free for longer than this gets no task: none waits. On a busy machine the next poll takes seconds. */
const freeAfterMs = 5_000;

/**
 * Creates slots that projects share. A project may use all of them, those included that it has yielded, or half of what may be
 * yielded if that is more: however many activities of two projects hang, all slots are free for others once they are yielded.
 * One more is kept for a project that uses none, which does not even wait for that.
 * @param now a clock in milliseconds, for tests
 */
export function createFairActivitySlots(
  slots: number,
  maxYielded: number,
  now = () => performance.now(),
): FairActivitySlots {
  const total = slots + keptSlots;
  const reserved = createActivitySlots(total, maxYielded);
  const shares = createKeyedSemaphore<string>({
    total,
    perKey: Math.max(slots, Math.floor(maxYielded / 2)),
    keepsLast: true,
    lendable: maxYielded,
  });
  let running = 0;
  /** Since when a slot is free; undefined while none is. */
  let freeSince: number | undefined = -Infinity;
  const useChanged = (): void => {
    freeSince = running < slots + shares.lent ? (freeSince ?? now()) : undefined;
  };
  return {
    supplier: reserved.supplier,
    use: () => ({ slots, running, yielded: shares.lent }),
    areTaken: () => freeSince === undefined || now() - freeSince < freeAfterMs,
    yieldSlot: () => {
      const reclaimShare = shares.lend();
      // As many of both are yielded.
      const reclaimSlot = reclaimShare && reserved.yieldSlot();
      if (!reclaimSlot) return undefined;
      useChanged();
      return () => {
        reclaimShare();
        reclaimSlot();
        useChanged();
      };
    },
    admit: async (fairnessKey, waitMs, signal) => {
      const release = await shares.acquire(fairnessKey, {
        signal,
        timeout: { ms: waitMs, error: slotsTaken },
      });
      running += 1;
      useChanged();
      return () => {
        running -= 1;
        useChanged();
        release();
      };
    },
  };
}

/** Jobs that may wait in a worker because their project uses its share. The worker goes on to take those of other projects. */
const maxWaitingJobs = 200;

/** Creates the slots of jobs. A job that waits for the share of its project yields its slot meanwhile. */
export function createJobSlots(): ActivitySlots & JobSlots {
  const { max: slots } = bounds.jobs;
  const reserved = createActivitySlots(slots, maxWaitingJobs);
  const shares = createKeyedSemaphore<number>({
    total: slots,
    perKey: bounds.jobsOfProject.max,
    keepsLast: true,
  });
  return {
    ...reserved,
    admit: async (teamId, signal) => {
      let reclaim: (() => void) | undefined;
      const onLimited = (): void => {
        reclaim = reserved.yieldSlot();
      };
      try {
        return await shares.acquire(teamId, { signal, onLimited });
      } finally {
        reclaim?.();
      }
    },
  };
}

/** How long Temporal keeps a task before it offers it again, in milliseconds: meanwhile a task of another project is taken. */
const returnAfterMs = 1_000;

/** Temporal keeps a task and offers it again, behind those that wait. */
export const returned = (type: string, message: string): ApplicationFailure =>
  ApplicationFailure.create({
    type,
    message,
    nextRetryDelay: returnAfterMs,
    // Expected, so that the SDK logs nothing.
    category: ApplicationFailureCategory.BENIGN,
  });

export const slotsTakenType = 'SlotsTaken';
const slotsTaken = (): ApplicationFailure =>
  returned(slotsTakenType, 'Other activities of the project use its share of the slots of the worker.');
