import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import type { Settings } from '../../../src/config/settings.ts';
import { workflowIds, type RunInterval } from '../../../src/contract/workflow_inputs.ts';
import { LaunchError } from '../../../src/local_stack/data_folder.ts';
import type { Report } from '../../../src/local_stack/report.ts';
import { forEachConcurrently } from '../../../src/concurrency/keyed_semaphore.ts';
import { createClient } from '../../../src/temporal/connections.ts';
import { insertEventRows, startOfHour } from '../events.ts';
import {
  backfill,
  createExport,
  deploymentOn,
  exportingProject,
  hoursAfter,
  withExportd,
  withWorker,
  type ExportingProject,
} from '../exportd.ts';
import { averageCost, costPerRun } from '../histories.ts';
import { medianOf, rounded, type ResultTable } from '../results.ts';
import { createBenchAccount, measureOnScratch, type Scratch, type ScratchOptions } from '../scratch.ts';
import type { NoopInput, noopWorkflow } from './noop_workflow.ts';
import { measureTicks, type Delays, type ScheduleBench, type TicksResult } from './ticks.ts';

/** The options of the command line. */
interface ScheduleBenchOptions extends ScratchOptions {
  readonly exports: number;
  readonly interval: string;
  readonly ticks: number;
  readonly jitter: readonly number[];
  readonly withRows: number;
  readonly backfill: number;
  readonly noop: number;
  readonly profile?: string;
}

/** Result of `npm run bench -- schedule`. Times are in seconds. */
export type ScheduleBenchResult = Awaited<ReturnType<typeof runScheduleBench>>;

/** The concurrency of no-op workflows that saturates a worker. */
const maxConcurrency = 20;
const maxConcurrentRequests = 8;
/** Runs of the backfill whose histories are read. */
const samples = 50;
/** Rows per hour of the exports that have rows. */
const rowsPerHour = 3_600;
const hourMs = 3_600_000;

/**
 * Measures the control plane: no-op workflows, a backfill of an empty source, and ticks of many exports. Deletes
 * everything that it created.
 * @throws LaunchError when a process exits or a run of the backfill does not complete. @throws the reason of an aborted
 * signal
 */
export async function runScheduleBench(options: ScheduleBenchOptions, report: Report, signal: AbortSignal) {
  return measureOnScratch(options, report, signal, async (scratch) => {
    const { stack, pool } = scratch;
    const deployment = await deploymentOn(stack, 'schedule');
    const { settings } = deployment;
    const { client, close } = await createClient(settings);
    try {
      const bench = { ...scratch, client, deployment };
      const noop: NoopResult[] = [];
      const measureNoop = async () => {
        const concurrencies = [...new Set([maxConcurrency, settings.EXPORTD_BACKFILL_CONCURRENCY])];
        for (const one of await measureNoopRate(scratch, client, settings, options.noop, concurrencies)) {
          const { concurrency, per_second } = one;
          report(`No-op workflows, ${String(concurrency)} concurrent: ${per_second.toFixed(1)} per second`);
          noop.push(one);
        }
      };
      const profileFolder = (name: string) => options.profile && join(options.profile, name);
      const empty = exportingProject(scratch, deployment, await createBenchAccount(pool, 'Empty'));
      await measureNoop();
      const measured = await withExportd(
        stack,
        deployment,
        { profileFolder: profileFolder('backfill') },
        () => measureEmptyBackfill(bench, empty, options.backfill),
      );
      report(`Empty backfill: ${measured.runs_per_second.toFixed(1)} runs per second`);
      await measureNoop();
      return {
        /** EXPORTD_SETTLE_DELAY. No run can complete earlier after the end of its interval. */
        settle_seconds: settings.EXPORTD_SETTLE_DELAY / 1_000,
        noop,
        backfill: { ...measured, ...compareWithNoop(measured, noop) },
        exports: options.exports,
        interval: options.interval,
        ticks: await measureSchedules(bench, empty, options, profileFolder),
      };
    } finally {
      await close();
    }
  });
}

/** No-op workflows: each schedules one activity, which does nothing, and ends. */
export interface NoopResult {
  readonly workflows: number;
  /** Maximum number of concurrent workflows. */
  readonly concurrency: number;
  readonly seconds: number;
  readonly per_second: number;
}

const program = join(import.meta.dirname, 'noop_worker_program.ts');
/** Workflows that are not timed, for connections and compilation. */
const warmUp = { workflows: 50, concurrency: 10 };

/**
 * Measures how many no-op workflows complete per second on a new worker, for each concurrency.
 * @throws LaunchError when the worker exits. @throws the reason of an aborted signal
 */
async function measureNoopRate(
  { stack, signal }: Scratch,
  client: Client,
  settings: Pick<Settings, 'EXPORTD_EXPORT_SLOTS' | 'EXPORTD_TASK_QUEUE_PREFIX'>,
  workflows: number,
  concurrencies: readonly number[],
): Promise<NoopResult[]> {
  const prefix = `${settings.EXPORTD_TASK_QUEUE_PREFIX}-noop`;
  // Separate task queues for workflows and activities, like those of exportd.
  const queues = [`${prefix}-workflows`, `${prefix}-activities`] as const;
  const [taskQueue, activity_task_queue] = queues;
  const { address, namespace } = stack.temporal;
  const slots = String(settings.EXPORTD_EXPORT_SLOTS);
  const codePath = stack.folder.inside('noop_workflow.js');
  const input: NoopInput = { activity_task_queue };
  const run = (count: number, concurrency: number) =>
    forEachConcurrently(Array.from({ length: count }), concurrency, async () => {
      signal.throwIfAborted();
      const workflowId = `${prefix}-${randomUUID()}`;
      await client.workflow.execute<typeof noopWorkflow>('noopWorkflow', {
        workflowId,
        taskQueue,
        args: [input],
      });
    });
  return withWorker(
    stack,
    (children) =>
      children.start({
        name: 'worker',
        command: process.execPath,
        args: [program, address, namespace, ...queues, slots, codePath],
        env: process.env,
        stopSignal: 'SIGTERM',
      }),
    async () => {
      await run(warmUp.workflows, warmUp.concurrency);
      const results: NoopResult[] = [];
      for (const concurrency of concurrencies) {
        const startedAt = performance.now();
        await run(workflows, concurrency);
        const seconds = (performance.now() - startedAt) / 1_000;
        const per_second = rounded(workflows / seconds);
        results.push({ workflows, concurrency, seconds: rounded(seconds), per_second });
      }
      return results;
    },
  );
}

/** Backfills empty hours of a paused export, from the command to the event that completes the backfill. */
async function measureEmptyBackfill(bench: ScheduleBench, project: ExportingProject, intervals: number) {
  const { pool, client, report } = bench;
  const { settings } = bench.deployment;
  const exportId = await createExport(project, { name: 'backfill' });
  let reported = 0;
  const hours = { exportIds: [exportId], start: hoursAfter(startOfHour(), -intervals), hours: intervals };
  const { seconds_to_end: seconds } = await backfill(project, hours, (completed) => {
    if (completed < reported + 100) return;
    reported = completed;
    report(`Backfilled ${String(completed)} of ${String(intervals)} intervals`);
  });
  const { rows: sample } = await pool.query<RunInterval & { backfill_id: string }>(
    `select backfill_id, batch_export_id, data_interval_start, data_interval_end from exportd.batch_export_runs
     where batch_export_id = $1 order by md5(id::text) limit ${String(samples)}`,
    [exportId],
  );
  const ids = workflowIds(settings);
  // Over all executions that the backfill continued as.
  const ofBackfill = await costPerRun(client, ids.backfill(sample[0]?.backfill_id ?? ''), intervals);
  return {
    intervals,
    concurrency: settings.EXPORTD_BACKFILL_CONCURRENCY,
    seconds: rounded(seconds),
    runs_per_second: rounded(intervals / seconds),
    run: await averageCost(client, sample.map(ids.run)),
    backfill_events_per_run: ofBackfill.events,
    backfill_actions_per_run: ofBackfill.actions,
  };
}

/** Compares a backfill with the medians of the no-op workflows before and after it, at their maximum and its own concurrency. */
export function compareWithNoop(
  { runs_per_second, concurrency }: { readonly runs_per_second: number; readonly concurrency: number },
  noop: readonly NoopResult[],
) {
  const ratioAt = (wanted: number) => {
    const rates = noop.filter((one) => one.concurrency === wanted).map(({ per_second }) => per_second);
    return rounded(runs_per_second / medianOf(rates));
  };
  return {
    ratio_to_noop: ratioAt(Math.max(...noop.map((one) => one.concurrency))),
    ratio_to_noop_at_same_concurrency: ratioAt(concurrency),
  };
}

/** Creates the exports over HTTP and measures their ticks for each jitter, with new workers. */
async function measureSchedules(
  bench: ScheduleBench,
  empty: ExportingProject,
  { exports, interval, ticks: ticksPerJitter, jitter: jitters, withRows }: ScheduleBenchOptions,
  profileFolder: (name: string) => string | undefined,
) {
  const { stack, pool, report, signal, deployment } = bench;
  const filledAccount = await createBenchAccount(pool, 'Filled');
  const filled = exportingProject(bench, deployment, filledAccount);
  let hoursFilled = 0;
  const prepare = async (start: Date, end: Date) => {
    const hours = Math.ceil((end.getTime() - start.getTime()) / hourMs);
    // The row number determines the row, so each hour uses the next numbers, counted from a fictitious first hour.
    const first = hoursFilled * rowsPerHour;
    const rows = { first, end: first + hours * rowsPerHour, count: rowsPerHour };
    await pool.query(insertEventRows(filledAccount.teamId, hoursAfter(start, -hoursFilled), rows));
    hoursFilled += hours;
  };
  const createAll = async () => {
    const numbers = Array.from({ length: exports }, (_, index) => index + 1);
    const startedAt = performance.now();
    await forEachConcurrently(numbers, maxConcurrentRequests, async (number) => {
      signal.throwIfAborted();
      const [project, prefix] = number <= withRows ? [filled, 'filled'] : [empty, 'empty'];
      await createExport(project, { name: `${prefix}/${String(number)}`, interval, paused: false });
      if (number % 100 === 0) report(`Created ${String(number)} of ${String(exports)} exports`);
    });
    const seconds = (performance.now() - startedAt) / 1_000;
    report(`Created the exports in ${seconds.toFixed(1)} s, ${(exports / seconds).toFixed(1)} per second`);
  };
  const ticks: TicksResult[] = [];
  for (const [index, jitter] of exports > 0 ? jitters.entries() : []) {
    const more = { EXPORTD_JITTER_SHORT_FRACTION: String(jitter) };
    const jittered = await deploymentOn(stack, 'schedule', more);
    const profile = { profileFolder: profileFolder(`jitter-${String(jitter)}`) };
    const result = await withExportd(stack, jittered, profile, async () => {
      if (index === 0) await createAll();
      const request = { exports, interval, ticks: ticksPerJitter, jitter, prepare };
      return measureTicks({ ...bench, deployment: jittered }, request);
    });
    const { p50, p99 } = result.due_to_first_task;
    report(
      `Jitter ${String(jitter)}: due to first task ${String(p50)} s p50, ${String(p99)} s p99; ` +
        `${String(result.completed_runs)} of ${String(result.expected_runs)} runs Completed`,
    );
    ticks.push(result);
  }
  return ticks;
}

/** The results as tables. */
export function scheduleTables(found: ScheduleBenchResult): readonly ResultTable[] {
  const { noop, backfill: filled } = found;
  const delays = ({ p50, p99, maximum }: Delays): string =>
    [p50, p99, maximum].map((value) => value?.toFixed(2) ?? '-').join(' / ');
  return [
    {
      title: 'Backfill of an empty source',
      headings: ['workload', 'runs', 'seconds', 'per second', '÷ no-op', 'events', 'actions'],
      rows: [
        ...noop.map(({ workflows, concurrency, seconds, per_second }) => [
          `no-op workflows, one activity each, ${String(concurrency)} concurrent`,
          String(workflows),
          seconds.toFixed(1),
          per_second.toFixed(1),
          '-',
          '-',
          '-',
        ]),
        [
          `backfill, ${String(filled.concurrency)} concurrent`,
          String(filled.intervals),
          filled.seconds.toFixed(1),
          filled.runs_per_second.toFixed(1),
          filled.ratio_to_noop.toFixed(2),
          (filled.run.events + filled.backfill_events_per_run).toFixed(1),
          (filled.run.actions + filled.backfill_actions_per_run).toFixed(1),
        ],
      ],
    },
    {
      title: `${String(found.exports)} exports ${found.interval}, settle delay ${String(found.settle_seconds)} s: seconds after due, p50 / p99 / max`,
      headings: [
        'ticks',
        'Completed',
        'manifests',
        'to created',
        'to first task',
        'to Completed',
        'events',
        'actions',
      ],
      rows: found.ticks.map((one) => [
        one.jitter === 0 ? 'no jitter' : `jitter ${String(one.jitter)} of the interval`,
        `${String(one.completed_runs)} of ${String(one.expected_runs)}`,
        String(one.manifests),
        ...[one.due_to_created, one.due_to_first_task, one.due_to_completed].map(delays),
        (one.run.events + one.schedule_events_per_run).toFixed(1),
        (one.run.actions + one.schedule_actions_per_run).toFixed(1),
      ]),
    },
  ];
}

/** @throws LaunchError when a tick has a run without Completed and a manifest */
export function checkScheduleResult({ ticks }: ScheduleBenchResult): void {
  if (ticks.some((one) => one.manifests < one.expected_runs))
    throw new LaunchError('Not every tick has a completed run with a manifest.');
}
