import { rounded } from '../statistics.ts';
import { activitiesPerWorker } from './activities_per_worker.ts';
import { backfill, createExports, hoursAfter } from './backfill.ts';
import { startDelayedStore } from './delayed_store.ts';
import type { SmallIntervalsResult } from './result.ts';
import type { WorkersScratch } from './workers_scratch.ts';
import { watchWorkers } from './workers_usage.ts';

/** Hours of a few rows of several exports. */
export interface SmallIntervals {
  readonly start: Date;
  /** Intervals of each export for each delay, after `warmHours`. */
  readonly hours: number;
  readonly exports: number;
  /** Delays of each request to S3 in milliseconds, one after another. */
  readonly delays: readonly number[];
}

/**
 * Hours of each export before the measurement: no worker starts cold, and the first manifests of an export have shown what
 * its store supports, for which they need more requests.
 */
export const warmHours = 2;

/** Exports many small intervals to a store that delays each request. @returns one result for each delay */
export async function measureSmallIntervals(
  scratch: WorkersScratch,
  { start, hours, exports, delays }: SmallIntervals,
): Promise<Omit<SmallIntervalsResult, 'ratio'>[]> {
  const { workerPids, stack } = scratch;
  const workers = workerPids.length;
  const names = Array.from({ length: exports }, (_, index) => ['small', workers, index + 1].join('-'));
  const store = await startDelayedStore(stack.objectStore.endpoint);
  try {
    const exportIds = await createExports(scratch, names, 'JSONLines+gzip', store.endpoint);
    await backfill(scratch, { exportIds, start, hours: warmHours });
    const results: Omit<SmallIntervalsResult, 'ratio'>[] = [];
    for (const [index, delayMs] of delays.entries()) {
      store.delayMs = delayMs;
      const ofDelay = { exportIds, start: hoursAfter(start, warmHours + index * hours), hours };
      const requestsBefore = store.requests;
      const usage = watchWorkers(workerPids);
      const { seconds } = await backfill(scratch, ofDelay);
      const used = usage();
      const intervals = exports * hours;
      results.push({
        workers,
        s3_delay_seconds: delayMs / 1_000,
        seconds: rounded(seconds),
        intervals,
        intervals_per_second: rounded(intervals / seconds),
        intervals_per_worker: await activitiesPerWorker(scratch, ofDelay, 'exportInterval'),
        s3_requests_per_interval: rounded((store.requests - requestsBefore) / intervals),
        ...used,
      });
    }
    return results;
  } finally {
    await store.close();
  }
}
