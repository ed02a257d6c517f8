/** Counting semaphores, one per key. Waiters of a key are served in order of arrival. */
export interface KeyedSemaphore<Key> {
  /**
   * Acquires a permit if one is free.
   * @returns a function that releases the permit, once; undefined if none is free
   */
  tryAcquire(key: Key): (() => void) | undefined;
  /**
   * Waits for a permit.
   * @returns a function that releases the permit, once
   * @throws the signal's reason when it is aborted
   */
  acquire(key: Key, signal: AbortSignal): Promise<() => void>;
}

/** Creates semaphores with `permits` for each key. */
export function createKeyedSemaphore<Key>(permits: number): KeyedSemaphore<Key> {
  const acquired = new Map<Key, number>();
  const waiting = new Map<Key, Set<() => void>>();

  const release = (key: Key): void => {
    const [next] = waiting.get(key) ?? [];
    // The permit passes directly to the next waiter, so that a later caller cannot overtake it.
    const remaining = (acquired.get(key) ?? 0) - (next ? 0 : 1);
    if (remaining > 0) acquired.set(key, remaining);
    else acquired.delete(key);
    next?.();
  };

  const releaseOnce = (key: Key): (() => void) => {
    let released = false;
    return () => {
      if (!released) release(key);
      released = true;
    };
  };

  const waitForPermit = async (key: Key, signal: AbortSignal): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const queue = waiting.get(key) ?? new Set<() => void>();
    const leaveQueue = (): void => {
      queue.delete(grant);
      if (queue.size === 0) waiting.delete(key);
      signal.removeEventListener('abort', abort);
    };
    const grant = (): void => {
      leaveQueue();
      resolve(undefined);
    };
    const abort = (): void => {
      leaveQueue();
      reject(signal.reason);
    };
    waiting.set(key, queue.add(grant));
    signal.addEventListener('abort', abort);
    await promise;
  };

  const tryAcquire = (key: Key): (() => void) | undefined => {
    const count = acquired.get(key) ?? 0;
    if (count >= permits) return undefined;
    acquired.set(key, count + 1);
    return releaseOnce(key);
  };

  return {
    tryAcquire,
    acquire: async (key, signal) => {
      signal.throwIfAborted();
      const free = tryAcquire(key);
      if (free) return free;
      await waitForPermit(key, signal);
      return releaseOnce(key);
    },
  };
}
