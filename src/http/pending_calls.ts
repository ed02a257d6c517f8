/** Calls under way that must end before what they use is closed. */
export interface PendingCalls {
  /** Makes a call and remembers it until it ends. */
  track<Result>(call: () => Promise<Result>): Promise<Result>;
  /** Resolves when none is under way any more. */
  settled(): Promise<void>;
}

/** Keeps account of calls whose callers may have stopped waiting. */
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
