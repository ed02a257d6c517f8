import { LaunchError } from '../../local_stack/launch_error.ts';
import { rounded } from '../statistics.ts';
import { activitiesPerWorker } from './activities_per_worker.ts';
import { backfill, createExports } from './backfill.ts';
import type { LargeIntervalResult } from './result.ts';
import type { ThrottledLine } from './throttled_line.ts';
import type { WorkersScratch } from './workers_scratch.ts';
import { watchWorkers } from './workers_usage.ts';

/** The interval, an hour. */
export interface LargeInterval {
  readonly start: Date;
  readonly rows: number;
  readonly format: string;
}

/** Exports one interval whose ranges all workers share. @throws LaunchError */
export async function measureLargeInterval(
  scratch: WorkersScratch,
  line: ThrottledLine,
  { start, rows, format }: LargeInterval,
): Promise<Omit<LargeIntervalResult, 'ratio'>> {
  const { workerPids, stack } = scratch;
  const workers = workerPids.length;
  const names = [`large-${String(workers)}`];
  const exportIds = await createExports(scratch, names, format, stack.objectStore.endpoint);
  const interval = { exportIds, start, hours: 1 };
  const deliveredBefore = line.delivered;
  const usage = watchWorkers(workerPids);
  const { seconds, rows: exported } = await backfill(scratch, interval);
  const used = usage();
  const bytes = line.delivered - deliveredBefore;
  if (exported !== rows)
    throw new LaunchError(`The interval has ${String(exported)} rows instead of ${String(rows)}.`);
  return {
    workers,
    seconds: rounded(seconds),
    rows,
    rows_per_second: Math.round(rows / seconds),
    megabytes_per_second: rounded(bytes / 1e6 / seconds),
    ranges_per_worker: await activitiesPerWorker(scratch, interval, 'exportRange'),
    ...used,
  };
}
