/** Pending calls, which must settle before the connection that they use is closed. */
export interface PendingCalls {
  /** Makes a call and tracks it until it settles. */
  track<Result>(call: () => Promise<Result>): Promise<Result>;
  /** Resolves when no call is pending. */
  settled(): Promise<void>;
}

/** Tracks calls, also those whose callers stopped waiting. */
export function createPendingCalls(): PendingCalls {
  const pending = new Set<Promise<unknown>>();
  return {
    track: async (call) => {
      const result = call();
      pending.add(result);
      try {
        return await result;
      } finally {
        pending.delete(result);
      }
    },
    settled: async () => {
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}
