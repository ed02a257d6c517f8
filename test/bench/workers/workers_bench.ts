import type { Client } from '@temporalio/client';
import type { Report } from '../../../src/local_stack/report.ts';
import { createClient } from '../../../src/temporal/connections.ts';
import { writeWorkflowBundle } from '../../../src/temporal/worker/bundle.ts';
import { LaunchError } from '../../../src/local_stack/data_folder.ts';
import { insertEvents, startOfHour } from '../events.ts';
import {
  backfill,
  createExport,
  deploymentOn,
  exportingProject,
  hoursAfter,
  withExportd,
  type Deployment,
  type ExportingProject,
} from '../exportd.ts';
import { activitiesPerWorker } from '../histories.ts';
import { megabytes, rounded, saveResult, type ResultTable } from '../results.ts';
import { createBenchAccount, measureOnScratch, type ScratchOptions } from '../scratch.ts';
import { watchWorkers } from '../usage.ts';
import { startDelayedStore, startThrottledLine, type ThrottledLine } from './slow_servers.ts';

/** The options of the command line. */
interface WorkersBenchOptions extends ScratchOptions {
  readonly workers: readonly number[];
  readonly slots: number;
  readonly format: string;
  readonly events: number;
  readonly ranges: number;
  /** Megabytes per second of each connection to the source. */
  readonly line: number;
  readonly exports: number;
  readonly intervals: number;
  /** Delays of each request to S3 in milliseconds, one after another. */
  readonly s3Delay: readonly number[];
  readonly save?: string;
}

/** Result of `npm run bench -- workers`. Times are in seconds, sizes in bytes. */
export type WorkersBenchResult = Awaited<ReturnType<typeof runWorkersBench>>;

const rowsPerSmallInterval = 10;
/**
 * Hours of each small export before the measurement: no worker starts cold, and the first manifests of an export have shown
 * what its store supports, for which they need more requests.
 */
const warmHours = 2;
/** Ranges are cut between buckets of about equal size: without room for one row more, many would have a bucket less. */
const rangeTolerance = 1.02;

/**
 * Measures one interval in ranges, and small intervals of many exports, with several numbers of workers. Connections to the
 * source and requests to S3 are slow, as over a network: the workers wait, and a machine with few cores can run them all.
 * Deletes everything that it created.
 * @throws LaunchError when a process exits or a run does not complete. @throws the reason of an aborted signal
 */
export async function runWorkersBench(options: WorkersBenchOptions, report: Report, signal: AbortSignal) {
  const { slots, format, events, ranges, exports, intervals, s3Delay: delays, save } = options;
  const result = await measureOnScratch(options, report, signal, async (scratch) => {
    const { stack } = scratch;
    const account = await createBenchAccount(scratch.pool);
    const { teamId } = account;
    const largeStart = hoursAfter(startOfHour(), -1);
    const smallHours = warmHours + delays.length * intervals;
    const smallStart = hoursAfter(largeStart, -smallHours);
    for (const [start, count, hours] of [
      [smallStart, smallHours * rowsPerSmallInterval, smallHours],
      [largeStart, events, 1],
    ] as const)
      await insertEvents(stack.databaseUrl, { teamId, start, count, hours }, report, signal);

    const large: Awaited<ReturnType<typeof measureLargeInterval>>[] = [];
    const small: Awaited<ReturnType<typeof measureSmallIntervals>> = [];
    const line = await startThrottledLine(stack.databaseUrl, options.line * 1e6);
    const deployment = await deploymentOn(stack, 'workers', {
      SOURCE_DATABASE_URL: line.url,
      EXPORTD_SETTLE_DELAY: '0s',
      EXPORTD_EXPORT_SLOTS: String(slots),
      EXPORTD_RANGE_ROWS: String(Math.ceil((events / ranges) * rangeTolerance)),
      // By default an interval has as many ranges at once as one worker has slots.
      EXPORTD_RANGES_AT_ONCE: String(slots * Math.max(...options.workers)),
    });
    const { client, close } = await createClient(deployment.settings);
    try {
      const { EXPORTD_WORKFLOW_BUNDLE: existing = '' } = deployment.environment;
      const workflowBundle = existing === '' ? stack.folder.inside('workflows.js') : existing;
      if (existing === '') await writeWorkflowBundle(workflowBundle);
      for (const workers of options.workers)
        await withExportd(stack, deployment, { workers, workflowBundle }, async (running) => {
          const workerPids = running.map(({ pid }) => pid);
          const fleet = { ...exportingProject(scratch, deployment, account), client, deployment, workerPids };
          const prefix = `${String(workers)} ${workers === 1 ? 'worker' : 'workers'}`;
          for (const one of await measureSmallIntervals(fleet, { ...options, start: smallStart })) {
            small.push(one);
            report(
              `${prefix}: ${one.intervals_per_second.toFixed(1)} small intervals per second, S3 delay ${String(one.s3_delay_seconds)} s`,
            );
          }
          const ofLarge = await measureLargeInterval(fleet, line, {
            start: largeStart,
            rows: events,
            format,
          });
          report(`${prefix}: ${ofLarge.megabytes_per_second.toFixed(1)} MB/s of one interval`);
          large.push(ofLarge);
        });
    } finally {
      await close();
      await line.close();
    }
    return {
      /** Intervals, or ranges of them, that a worker exports at the same time. */
      slots,
      large_interval: {
        format,
        connection_bytes_per_second: options.line * 1e6,
        measurements: withRatios(large, ({ rows_per_second }) => rows_per_second),
      },
      small_intervals: {
        exports,
        rows_per_interval: rowsPerSmallInterval,
        /** For each delay, with each number of workers. */
        measurements: delays.flatMap((delay) =>
          withRatios(
            small.filter(({ s3_delay_seconds }) => s3_delay_seconds === delay / 1_000),
            ({ intervals_per_second }) => intervals_per_second,
          ),
        ),
      },
    };
  });
  if (save !== undefined) saveResult(save, result);
  return result;
}

/** A project whose exports some workers share. */
interface Fleet extends ExportingProject {
  readonly client: Client;
  readonly deployment: Deployment;
  readonly workerPids: readonly number[];
}

const activitiesOf = (fleet: Fleet, hours: Parameters<typeof activitiesPerWorker>[2], activityType: string) =>
  activitiesPerWorker(
    { ...fleet, settings: fleet.deployment.settings },
    fleet.workerPids,
    hours,
    activityType,
  );

/** Exports one hour whose ranges all workers share. @throws LaunchError */
async function measureLargeInterval(
  fleet: Fleet,
  line: ThrottledLine,
  { start, rows, format }: { readonly start: Date; readonly rows: number; readonly format: string },
) {
  const { workerPids } = fleet;
  const workers = workerPids.length;
  const exportId = await createExport(fleet, { name: `large-${String(workers)}`, format });
  const interval = { exportIds: [exportId], start, hours: 1 };
  const deliveredBefore = line.delivered;
  const usage = watchWorkers(workerPids);
  const { seconds, rows: exported } = await backfill(fleet, interval);
  const used = usage();
  if (exported !== rows)
    throw new LaunchError(`The interval has ${String(exported)} rows instead of ${String(rows)}.`);
  return {
    workers,
    seconds: rounded(seconds),
    rows,
    rows_per_second: Math.round(rows / seconds),
    /** What the throttled connections delivered, which is binary COPY. */
    megabytes_per_second: rounded((line.delivered - deliveredBefore) / 1e6 / seconds),
    ranges_per_worker: await activitiesOf(fleet, interval, 'exportRange'),
    ...used,
  };
}

/** Exports many small intervals to a store that delays each request. @returns one result for each delay */
async function measureSmallIntervals(
  fleet: Fleet,
  {
    start,
    exports,
    intervals: hours,
    s3Delay: delays,
  }: Pick<WorkersBenchOptions, 'exports' | 'intervals' | 's3Delay'> & { readonly start: Date },
) {
  const { workerPids, stack } = fleet;
  const workers = workerPids.length;
  const store = await startDelayedStore(stack.objectStore.endpoint);
  try {
    const exportIds: string[] = [];
    for (let number = 1; number <= exports; number += 1) {
      const name = ['small', workers, number].join('-');
      exportIds.push(await createExport(fleet, { name, endpoint: store.endpoint }));
    }
    await backfill(fleet, { exportIds, start, hours: warmHours });
    const results = [];
    for (const [index, delayMs] of delays.entries()) {
      store.delayMs = delayMs;
      const ofDelay = { exportIds, start: hoursAfter(start, warmHours + index * hours), hours };
      const requestsBefore = store.requests;
      const usage = watchWorkers(workerPids);
      const { seconds } = await backfill(fleet, ofDelay);
      const used = usage();
      const intervals = exports * hours;
      results.push({
        workers,
        s3_delay_seconds: delayMs / 1_000,
        seconds: rounded(seconds),
        intervals,
        intervals_per_second: rounded(intervals / seconds),
        intervals_per_worker: await activitiesOf(fleet, ofDelay, 'exportInterval'),
        s3_requests_per_interval: rounded((store.requests - requestsBefore) / intervals),
        ...used,
      });
    }
    return results;
  } finally {
    await store.close();
  }
}

/** Adds the throughput divided by that of the first measurement. */
function withRatios<One>(
  measurements: readonly One[],
  throughputOf: (one: One) => number,
): (One & { readonly ratio: number })[] {
  const [first] = measurements;
  return measurements.map((one) => ({
    ...one,
    ratio: rounded(throughputOf(one) / (first === undefined ? Number.NaN : throughputOf(first))),
  }));
}

/** The result as tables. */
export function workersTables(result: WorkersBenchResult): readonly ResultTable[] {
  const { slots, large_interval: large, small_intervals: small } = result;
  const perWorker = `${String(slots)} ${slots === 1 ? 'slot' : 'slots'} per worker`;
  const rate = `${String(large.connection_bytes_per_second / 1e6)} MB/s per connection`;
  const sharedHeadings = ['busy cores', 'worker CPU s', 'peak MB of each'];
  const sharedCells = (one: ReturnType<ReturnType<typeof watchWorkers>>): string[] => [
    one.busy_cores.toFixed(2),
    one.worker_cpu_seconds?.toFixed(1) ?? '-',
    one.peak_memory_bytes.map((bytes) => megabytes(bytes, 0)).join(' '),
  ];
  return [
    {
      title: `One interval in ranges, ${large.format}, ${rate}, ${perWorker}`,
      headings: ['workers', 'seconds', 'rows/s', 'MB/s', 'ratio', 'ranges of each', ...sharedHeadings],
      rows: large.measurements.map((one) => [
        String(one.workers),
        one.seconds.toFixed(2),
        one.rows_per_second.toLocaleString('en'),
        one.megabytes_per_second.toFixed(1),
        one.ratio.toFixed(2),
        one.ranges_per_worker.join(' '),
        ...sharedCells(one),
      ]),
    },
    {
      title: `Small intervals of ${String(small.exports)} exports, ${perWorker}`,
      headings: [
        'S3 delay',
        'workers',
        'seconds',
        'intervals/s',
        'ratio',
        'intervals of each',
        ...sharedHeadings,
      ],
      rows: small.measurements.map((one) => [
        `${String(one.s3_delay_seconds * 1_000)} ms`,
        String(one.workers),
        one.seconds.toFixed(2),
        one.intervals_per_second.toFixed(2),
        one.ratio.toFixed(2),
        one.intervals_per_worker.join(' '),
        ...sharedCells(one),
      ]),
    },
  ];
}
