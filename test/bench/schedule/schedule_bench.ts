import type { Client } from '@temporalio/client';
import { workflowIds, type RunInterval } from '../../../src/contract/workflow_ids.ts';
import type { Report } from '../../../src/local_stack/report.ts';
import { createClient } from '../../../src/temporal/connections.ts';
import { startOfHour } from '../events.ts';
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
import { averageCost, costPerRun } from '../histories.ts';
import { medianOf, rounded, type ResultTable } from '../results.ts';
import { createBenchAccount, measureOnScratch, type Scratch, type ScratchOptions } from '../scratch.ts';
import { maxConcurrency, measureNoopRate, type NoopResult } from './noop_rate.ts';

/** The options of the command line. */
interface ScheduleBenchOptions extends ScratchOptions {
  readonly backfill: number;
  readonly noop: number;
  readonly profile?: string;
}

/** What the control plane is measured on. */
interface ScheduleBench extends Scratch {
  readonly client: Client;
  readonly deployment: Deployment;
}

/** Result of `npm run bench -- schedule`. Times are in seconds. */
export type ScheduleBenchResult = Awaited<ReturnType<typeof runScheduleBench>>;

/** Runs of the backfill whose histories are read. */
const samples = 50;

/**
 * Measures the control plane: no-op workflows, and a backfill of an empty source. Deletes everything that it created.
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
      const empty = exportingProject(scratch, deployment, await createBenchAccount(pool, 'Empty'));
      await measureNoop();
      const measured = await withExportd(stack, deployment, { profileFolder: options.profile }, () =>
        measureEmptyBackfill(bench, empty, options.backfill),
      );
      report(`Empty backfill: ${measured.runs_per_second.toFixed(1)} runs per second`);
      await measureNoop();
      return { noop, backfill: { ...measured, ...compareWithNoop(measured, noop) } };
    } finally {
      await close();
    }
  });
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

/** The results as tables. */
export function scheduleTables({ noop, backfill: filled }: ScheduleBenchResult): readonly ResultTable[] {
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
  ];
}
