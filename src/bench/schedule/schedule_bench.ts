import { join } from 'node:path';
import { createApiClient } from '../../local_stack/demo/api_client.ts';
import type { Report } from '../../local_stack/report.ts';
import { createClient } from '../../temporal/connections.ts';
import { taskQueues } from '../../temporal/task_queues.ts';
import { createBenchAccount, type BenchAccount } from '../bench_account.ts';
import { exportdEnvironment } from '../exportd_environment.ts';
import { rounded } from '../statistics.ts';
import { insertEventRows } from '../event_rows.ts';
import { measureOnScratch, type ScratchOptions } from '../measure_on_scratch.ts';
import { measureNoopRate } from './noop_rate.ts';
import type { NoopResult, CreationResult, ScheduleBenchResult, TicksResult } from './result.ts';
import { compareWithNoop, measureEmptyBackfill } from './empty_backfill.ts';
import { createExports } from './create_exports.ts';
import { largestHistory } from './histories.ts';
import { settingsOf, withExportd, type ScheduleBench } from './with_exportd.ts';
import { watchUsage } from './stack_usage.ts';
import { countStatements } from './statement_count.ts';
import { measureTicks } from './ticks.ts';

export interface ScheduleBenchOptions extends ScratchOptions {
  /** Number of exports; 0 skips the ticks. */
  readonly exports: number;
  /** `every N minutes`. */
  readonly interval: string;
  readonly ticks: number;
  /** Jitters to measure, as fractions of the interval. */
  readonly jitter: readonly number[];
  /** Number of exports that have rows in each interval. */
  readonly withRows: number;
  /** Number of intervals of the backfill. */
  readonly backfill: number;
  /** Number of no-op workflows before and after the backfill. */
  readonly noop: number;
  readonly profile?: string;
}

/** The concurrency of no-op workflows that saturates a worker. */
const maxConcurrency = 20;
/** Rows per hour of the exports that have rows. */
const rowsPerHour = 3_600;
const hourMs = 3_600_000;

/**
 * Measures the control plane: no-op workflows, a backfill of an empty source, and ticks of many exports. Deletes
 * everything that it created.
 * @throws LaunchError when a process exits or a run of the backfill does not complete. @throws the reason of an aborted
 * signal
 */
export async function runScheduleBench(
  options: ScheduleBenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<ScheduleBenchResult> {
  return measureOnScratch(options, report, async ({ stack, pool }) => {
    const { baseUrl, environment } = await exportdEnvironment(stack, 'schedule');
    const settings = settingsOf(environment);
    const temporal = await createClient(settings);
    try {
      const countsStatements = await countStatements(pool);
      const bench: ScheduleBench = {
        stack,
        pool,
        client: temporal.client,
        baseUrl,
        environment,
        countsStatements,
        profileFolder: options.profile,
        report,
        signal,
      };
      const accounts = {
        empty: await createBenchAccount(pool, 'Empty'),
        filled: await createBenchAccount(pool, 'Filled'),
      };
      const noop: NoopResult[] = [];
      const measureNoop = async () => {
        const concurrencies = [...new Set([maxConcurrency, settings.EXPORTD_BACKFILL_CONCURRENCY])];
        const request = { workflows: options.noop, concurrencies: concurrencies };
        for (const one of await measureNoopRate(stack, temporal.client, settings, request, signal)) {
          report(
            `No-op workflows, ${String(one.concurrency)} concurrent: ${one.per_second.toFixed(1)} per second`,
          );
          noop.push(one);
        }
      };
      await measureNoop();
      const backfill = await withExportd(profiled(bench, 'backfill'), {}, () =>
        measureEmptyBackfill(bench, accounts.empty, options.backfill),
      );
      report(`Empty backfill: ${backfill.runs_per_second.toFixed(1)} runs per second`);
      await measureNoop();
      const jitter = options.exports > 0 ? options.jitter : [];
      const { creation, ticks } = await measureSchedules(bench, { ...options, jitter }, accounts);
      return {
        settle_seconds: settings.EXPORTD_SETTLE_DELAY / 1_000,
        noop,
        backfill: compareWithNoop(backfill, noop),
        exports: options.exports,
        interval: options.interval,
        creation,
        ticks,
        largest_history: await largestHistory(temporal.client, taskQueues(settings).control),
      };
    } finally {
      await temporal.close();
    }
  });
}

const profiled = (bench: ScheduleBench, name: string): ScheduleBench => ({
  ...bench,
  profileFolder: bench.profileFolder && join(bench.profileFolder, name),
});

/** Creates the exports and measures their ticks for each jitter, with new workers. */
async function measureSchedules(
  bench: ScheduleBench,
  options: ScheduleBenchOptions,
  accounts: Readonly<Record<'empty' | 'filled', BenchAccount>>,
): Promise<Pick<ScheduleBenchResult, 'creation' | 'ticks'>> {
  const { pool, report } = bench;
  const { exports, interval, ticks: ticksPerJitter, jitter: jitters } = options;
  let hoursFilled = 0;
  const prepare = async (start: Date, end: Date) => {
    const hours = Math.ceil((end.getTime() - start.getTime()) / hourMs);
    // The row number determines the row, so each hour uses the next numbers, counted from a fictitious first hour.
    const first = hoursFilled * rowsPerHour;
    const zero = new Date(start.getTime() - hoursFilled * hourMs);
    const rows = { first, end: first + hours * rowsPerHour, count: rowsPerHour };
    await pool.query(insertEventRows(accounts.filled.teamId, zero, rows));
    hoursFilled += hours;
  };
  const ticks: TicksResult[] = [];
  let creation: ScheduleBenchResult['creation'] = null;
  for (const jitter of jitters) {
    const settings = { EXPORTD_JITTER_SHORT_FRACTION: String(jitter) };
    const result = await withExportd(profiled(bench, `jitter-${String(jitter)}`), settings, async () => {
      creation ??= await createAll(bench, options, accounts);
      return measureTicks(bench, { exports, interval, ticks: ticksPerJitter, jitter, prepare });
    });
    const { p50, p99 } = result.due_to_first_task;
    report(
      `Jitter ${String(jitter)}: due to first task ${String(p50)} s p50, ${String(p99)} s p99; ` +
        `${String(result.completed_runs)} of ${String(result.expected_runs)} runs Completed`,
    );
    ticks.push(result);
  }
  return { creation, ticks };
}

async function createAll(
  { stack, baseUrl, report, signal }: ScheduleBench,
  { exports, interval, withRows }: ScheduleBenchOptions,
  accounts: Readonly<Record<'empty' | 'filled', BenchAccount>>,
): Promise<CreationResult> {
  const filled = Math.min(withRows, exports);
  let created = 0;
  const onCreated = () => {
    created += 1;
    if (created % 100 === 0) report(`Created ${String(created)} of ${String(exports)} exports`);
  };
  const usage = watchUsage(stack);
  const startedAt = performance.now();
  const create = ({ teamId, apiKey }: BenchAccount, count: number, prefix: string) =>
    createExports(
      stack,
      createApiClient(baseUrl, teamId, apiKey),
      { count, interval, prefix },
      onCreated,
      signal,
    );
  await create(accounts.empty, exports - filled, 'empty');
  await create(accounts.filled, filled, 'filled');
  const seconds = (performance.now() - startedAt) / 1_000;
  report(`Created the exports in ${seconds.toFixed(1)} s, ${(exports / seconds).toFixed(1)} per second`);
  return { seconds: rounded(seconds), per_second: rounded(exports / seconds), usage: await usage.end() };
}
