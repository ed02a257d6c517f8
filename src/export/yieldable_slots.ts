/** Worker slots that a waiting attempt can yield; src/temporal implements them. */
export interface YieldableSlots {
  /**
   * Lets another activity use a slot.
   * @returns a function that reclaims the slot, once; undefined when no more slots may be yielded.
   */
  readonly yieldSlot: () => (() => void) | undefined;
}

/** The slot of one attempt, which may have several reasons to wait at a time, and yields it once. */
export interface YieldableSlot extends YieldableSlots {
  /** The attempt waits, such as before it repeats a request: yields the slot until there is progress. */
  readonly stalled: () => void;
}

/** An attempt without progress for so many milliseconds waits for a server, and yields its slot. */
const stalledAfterMs = 2_000;
const checksPerTimeout = 4;

/**
 * Runs `work` and yields its slot while it is stalled: it then waits for a server and needs no CPU.
 * @param stallTimeoutMs after how many milliseconds without a change of `progress` the work is stalled
 */
export async function yieldSlotWhileStalled<Result>(
  slots: YieldableSlots,
  progress: () => number,
  work: (slot: YieldableSlot) => Promise<Result>,
  stallTimeoutMs = stalledAfterMs,
): Promise<Result> {
  const { yieldSlot } = slotOfAttempt(slots);
  let lastProgress = progress();
  let lastChange = performance.now();
  let reclaim: (() => void) | undefined;
  const stalled = (): void => {
    reclaim ??= yieldSlot();
  };
  const check = (): void => {
    const current = progress();
    if (current !== lastProgress) {
      lastProgress = current;
      lastChange = performance.now();
      reclaim?.();
      reclaim = undefined;
    } else if (performance.now() - lastChange >= stallTimeoutMs) stalled();
  };
  const timer = setInterval(check, stallTimeoutMs / checksPerTimeout);
  try {
    return await work({ yieldSlot, stalled });
  } finally {
    clearInterval(timer);
    reclaim?.();
  }
}

/** One slot, which is yielded as long as there is a reason. */
function slotOfAttempt(slots: YieldableSlots): YieldableSlots {
  const reasons = new Set<symbol>();
  let reclaim: (() => void) | undefined;
  return {
    yieldSlot: () => {
      reclaim ??= slots.yieldSlot();
      if (!reclaim) return undefined;
      const reason = Symbol('a reason to wait');
      reasons.add(reason);
      return () => {
        if (!reasons.delete(reason) || reasons.size > 0) return;
        reclaim?.();
        reclaim = undefined;
      };
    },
  };
}
