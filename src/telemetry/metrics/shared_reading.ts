/** A value that several metrics of one scrape read. */
export interface SharedReading<Value> {
  /** The value; undefined if it cannot be read. */
  read(): Promise<Value | undefined>;
}

/**
 * Reads a value once for all metrics that depend on it, and again when it is older than `maxAgeMs`, however many
 * Prometheus servers scrape.
 */
export function shareReading<Value>(read: () => Promise<Value>, maxAgeMs: number): SharedReading<Value> {
  let latest: Promise<Value | undefined> | undefined;
  /** When the latest reading ended; infinite while it runs. */
  let endedAt = Infinity;
  return {
    read: () => {
      // A reading that runs has an age of minus infinity.
      if (latest && performance.now() - endedAt < maxAgeMs) return latest;
      endedAt = Infinity;
      latest = read()
        .catch(() => undefined)
        .finally(() => {
          endedAt = performance.now();
        });
      return latest;
    },
  };
}
