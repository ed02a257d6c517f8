/** Worker slots that a waiting attempt can yield; src/temporal implements them. */
export interface YieldableSlots {
  /**
   * Lets another activity use a slot.
   * @returns a function that reclaims the slot, once; undefined when no more slots may be yielded.
   */
  yieldSlot(): (() => void) | undefined;
}

const checksPerTimeout = 4;

/**
 * Runs `work` and yields its slot while it is stalled: it then waits for a server and needs no CPU.
 * @param stallTimeoutMs after how many milliseconds without a change of `progress` the work is stalled
 * @param work receives a function that reports a stall at once, such as the wait before a request is retried
 */
export async function yieldSlotWhileStalled<Result>(
  slots: YieldableSlots,
  stallTimeoutMs: number,
  progress: () => number,
  work: (onStall: () => void) => Promise<Result>,
): Promise<Result> {
  let lastProgress = progress();
  let lastChange = performance.now();
  let reclaim: (() => void) | undefined;
  const check = (): void => {
    const current = progress();
    if (current !== lastProgress) {
      lastProgress = current;
      lastChange = performance.now();
      reclaim?.();
      reclaim = undefined;
    } else if (!reclaim && performance.now() - lastChange >= stallTimeoutMs) reclaim = slots.yieldSlot();
  };
  const timer = setInterval(check, stallTimeoutMs / checksPerTimeout);
  try {
    return await work(() => {
      reclaim ??= slots.yieldSlot();
    });
  } finally {
    clearInterval(timer);
    reclaim?.();
  }
}
