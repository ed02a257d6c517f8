import { createApiClient } from '../../local_stack/demo/api_client.ts';
import type { Report } from '../../local_stack/report.ts';
import type { StackEnvironment } from '../../local_stack/stack_file.ts';
import { createClient } from '../../temporal/connections.ts';
import { writeWorkflowBundle } from '../../temporal/worker/bundle.ts';
import { createBenchAccount, type BenchAccount } from '../bench_account.ts';
import { exportdEnvironment } from '../exportd_environment.ts';
import { insertEvents } from '../insert_events.ts';
import { measureOnScratch, type Scratch, type ScratchOptions } from '../measure_on_scratch.ts';
import { settingsOf } from '../schedule/with_exportd.ts';
import { saveResult } from '../saved_result.ts';
import { rounded } from '../statistics.ts';
import { startOfHour } from '../start_of_hour.ts';
import { measureLargeInterval } from './large_interval.ts';
import type { LargeIntervalResult, SmallIntervalsResult, WorkersBenchResult } from './result.ts';
import { measureSmallIntervals, warmHours } from './small_intervals.ts';
import { hoursAfter } from './backfill.ts';
import { startThrottledLine } from './throttled_line.ts';
import { withWorkers } from './worker_fleet.ts';

export interface WorkersBenchOptions extends ScratchOptions {
  /** Numbers of worker processes to measure. */
  readonly workers: readonly number[];
  /** Intervals, or ranges of them, that a worker exports at the same time. */
  readonly slots: number;
  readonly format: string;
  /** Rows of the large interval. */
  readonly events: number;
  /** Into how many ranges it is split, about. */
  readonly ranges: number;
  /** Megabytes per second of each connection to the source. */
  readonly line: number;
  /** Exports with small intervals, and intervals of each. */
  readonly exports: number;
  readonly intervals: number;
  /** Delays of each request to S3 in milliseconds, one after another. */
  readonly s3Delay: readonly number[];
  /** File to write the result to. */
  readonly save?: string;
}

const hourMs = 3_600_000;
const rowsPerSmallInterval = 10;
/** Ranges are cut between buckets of about equal size: without room for one row more, many would have a bucket less. */
const rangeTolerance = 1.02;

/**
 * Measures one interval in ranges, and small intervals of many exports, with several numbers of workers. Connections to the
 * source and requests to S3 are slow, as over a network: the workers wait, and a machine with few cores can run them all.
 * Deletes everything that it created.
 * @throws LaunchError when a process exits or a run does not complete. @throws the reason of an aborted signal
 */
export async function runWorkersBench(
  options: WorkersBenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<WorkersBenchResult> {
  const { slots, format, events, exports, intervals, s3Delay: delays, save } = options;
  const result = await measureOnScratch(options, report, async (scratch) => {
    const account = await createBenchAccount(scratch.pool);
    const largeStart = new Date(startOfHour() - hourMs);
    const smallHours = warmHours + delays.length * intervals;
    const smallStart = hoursAfter(largeStart, -smallHours);
    for (const [start, count, hours] of [
      [smallStart, smallHours * rowsPerSmallInterval, smallHours],
      [largeStart, events, 1],
    ] as const)
      await insertEvents(
        scratch.stack.databaseUrl,
        { teamId: account.teamId, start, count, hours },
        report,
        signal,
      );
    const measured = await measureEach(options, scratch, account, { largeStart, smallStart }, report, signal);
    return {
      slots,
      large_interval: {
        format,
        connection_bytes_per_second: options.line * 1e6,
        measurements: withRatios(measured.large, ({ rows_per_second }) => rows_per_second),
      },
      small_intervals: {
        exports,
        rows_per_interval: rowsPerSmallInterval,
        measurements: delays.flatMap((delay) =>
          withRatios(
            measured.small.filter(({ s3_delay_seconds }) => s3_delay_seconds === delay / 1_000),
            ({ intervals_per_second }) => intervals_per_second,
          ),
        ),
      },
    };
  });
  if (save !== undefined) saveResult(save, result);
  return result;
}

/** Measures both with each number of workers. */
async function measureEach(
  options: WorkersBenchOptions,
  { stack, pool }: Scratch,
  { teamId, apiKey }: BenchAccount,
  { largeStart, smallStart }: { readonly largeStart: Date; readonly smallStart: Date },
  report: Report,
  signal: AbortSignal,
) {
  const { workers, format, exports, events, intervals: hours, s3Delay: delays } = options;
  const large: Omit<LargeIntervalResult, 'ratio'>[] = [];
  const small: Omit<SmallIntervalsResult, 'ratio'>[] = [];
  const line = await startThrottledLine(stack.databaseUrl, options.line * 1e6);
  const { baseUrl, environment: common } = await exportdEnvironment(stack, 'workers');
  const environment: StackEnvironment = {
    ...common,
    ...settingsFor(options),
    SOURCE_DATABASE_URL: line.url,
  };
  const settings = settingsOf(environment);
  const temporal = await createClient(settings);
  const { client } = temporal;
  try {
    const workflowBundle = await workflowBundleOf(environment, stack);
    const fleet = { baseUrl, environment, workflowBundle };
    const api = createApiClient(baseUrl, teamId, apiKey);
    for (const count of workers)
      await withWorkers(stack, fleet, count, async (workerPids) => {
        const scratch = { stack, pool, client, settings, api, workerPids, signal };
        const prefix = `${String(count)} ${count === 1 ? 'worker' : 'workers'}`;
        const ofSmall = await measureSmallIntervals(scratch, { start: smallStart, hours, exports, delays });
        for (const { intervals_per_second, s3_delay_seconds } of ofSmall)
          report(
            `${prefix}: ${intervals_per_second.toFixed(1)} small intervals per second, S3 delay ${String(s3_delay_seconds)} s`,
          );
        small.push(...ofSmall);
        const interval = { start: largeStart, rows: events, format };
        const ofLarge = await measureLargeInterval(scratch, line, interval);
        report(`${prefix}: ${ofLarge.megabytes_per_second.toFixed(1)} MB/s of one interval`);
        large.push(ofLarge);
      });
  } finally {
    await temporal.close();
    await line.close();
  }
  return { large, small };
}

/** The bundle that the environment names, or a new one: bundling would cost each worker seconds. */
async function workflowBundleOf(
  { EXPORTD_WORKFLOW_BUNDLE: existing }: StackEnvironment,
  { folder }: Scratch['stack'],
): Promise<string> {
  if (existing) return existing;
  const file = folder.inside('workflows.js');
  await writeWorkflowBundle(file);
  return file;
}

const settingsFor = ({ slots, workers, events, ranges }: WorkersBenchOptions): StackEnvironment => ({
  EXPORTD_SETTLE_DELAY: '0s',
  EXPORTD_EXPORT_SLOTS: String(slots),
  EXPORTD_RANGE_ROWS: String(Math.ceil((events / ranges) * rangeTolerance)),
  // By default an interval has as many ranges at once as one worker has slots.
  EXPORTD_RANGES_AT_ONCE: String(slots * Math.max(...workers)),
});

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
