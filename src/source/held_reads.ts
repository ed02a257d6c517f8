import type { PoolCounts } from './source_connection.ts';

/** Reads over connections of threads, counted with those of a pool. */
export interface HeldReads {
  /** The pool with the connections that threads use. */
  readonly pool: PoolCounts;
  count<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** Counts the reads of threads, whose connections no pool of this thread has. */
export function countHeldReads(pool: PoolCounts): HeldReads {
  let reads = 0;
  return {
    pool: {
      get totalCount() {
        return pool.totalCount + reads;
      },
      get idleCount() {
        return pool.idleCount;
      },
      get waitingCount() {
        return pool.waitingCount;
      },
      get options() {
        return pool.options;
      },
    },
    async count(work) {
      reads += 1;
      try {
        return await work();
      } finally {
        reads -= 1;
      }
    },
  };
}
