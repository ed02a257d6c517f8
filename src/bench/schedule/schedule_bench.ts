import { join } from 'node:path';
import { loadavg } from 'node:os';
import { createApiClient } from '../../local_stack/demo/api_client.ts';
import type { Report } from '../../local_stack/report.ts';
import { createPool } from '../../journal/database.ts';
import { createClient } from '../../temporal/connections.ts';
import { taskQueues } from '../../temporal/task_queues.ts';
import { createBenchAccount, type BenchAccount } from '../account.ts';
import { exportdEnvironment } from '../exportd_environment.ts';
import { rounded } from '../figures.ts';
import { insertEventRows } from '../event_rows.ts';
import { describeMachine } from '../machine.ts';
import { createScratchStack } from '../scratch_stack.ts';
import { measureBareRate } from './bare_rate.ts';
import type { BareResult, CreationResult, ScheduleBenchDocument, TicksResult } from './document.ts';
import { comparedWithBare, measureEmptyBackfill } from './empty_backfill.ts';
import { createExports } from './exports.ts';
import { largestHistory } from './histories.ts';
import { settingsOf, withExportd, type ScheduleBench } from './session.ts';
import { watchUse } from './stack_use.ts';
import { countStatements } from './statement_count.ts';
import { measureTicks } from './ticks.ts';

export interface ScheduleBenchOptions {
  /** How many exports are created; 0 leaves ticks out. */
  readonly exports: number;
  /** `every N minutes`. */
  readonly interval: string;
  readonly ticks: number;
  /** Fractions of the interval over which starts are spread, each measured in turn. */
  readonly jitters: readonly number[];
  /** How many of the exports have rows in each interval. */
  readonly withRows: number;
  /** How many intervals are backfilled. */
  readonly backfill: number;
  /** How many bare workflows are measured, each time. */
  readonly bare: number;
  /** Folder of the scratch servers' data; removed afterwards. */
  readonly folder: string;
  readonly useEnvironment: boolean;
  readonly profileFolder?: string | undefined;
}

/** As many bare workflows at once as a worker can use. */
const manyAtOnce = 20;
/** Rows of each interval of the exports that have some. */
const rowsPerHour = 3_600;
const hourMs = 3_600_000;

/**
 * Measures the control plane: bare workflows, a backfill of an empty source beside them, and ticks of many exports.
 * Removes all that it made.
 * @throws LaunchError when a process ends or a run of the backfill does not complete; the signal's reason when aborted
 */
export async function runScheduleBench(
  options: ScheduleBenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<ScheduleBenchDocument> {
  const began = new Date();
  const loadBefore = loadavg()[0] ?? 0;
  const stack = await createScratchStack(options.folder, options, report);
  const pool = createPool(stack.databaseUrl, { max: 4 });
  const { baseUrl, environment } = await exportdEnvironment(stack, 'schedule');
  const settings = settingsOf(environment);
  const temporal = createClient(settings);
  try {
    const countsStatements = await countStatements(pool);
    const bench: ScheduleBench = {
      stack,
      pool,
      client: temporal.client,
      baseUrl,
      environment,
      countsStatements,
      profileFolder: options.profileFolder,
      report,
      signal,
    };
    const machine = await describeMachine(pool);
    const accounts = {
      empty: await createBenchAccount(pool, 'Empty'),
      filled: await createBenchAccount(pool, 'Filled'),
    };
    const bare: BareResult[] = [];
    const measureBare = async () => {
      const atOnce = [...new Set([manyAtOnce, settings.EXPORTD_BACKFILL_CONCURRENCY])];
      const order = { workflows: options.bare, atOnce };
      for (const one of await measureBareRate(stack, temporal.client, settings, order, signal)) {
        report(`Bare workflows, ${String(one.at_once)} at once: ${one.per_second.toFixed(1)} a second`);
        bare.push(one);
      }
    };
    await measureBare();
    const backfill = await withExportd(profiled(bench, 'backfill'), {}, () =>
      measureEmptyBackfill(bench, accounts.empty, options.backfill),
    );
    report(`Empty backfill: ${backfill.runs_per_second.toFixed(1)} runs a second`);
    await measureBare();
    const jitters = options.exports > 0 ? options.jitters : [];
    const { creation, ticks } = await measureSchedules(bench, { ...options, jitters }, accounts);
    return {
      started_at: began.toISOString(),
      seconds: rounded((Date.now() - began.getTime()) / 1_000),
      machine,
      load: { before: rounded(loadBefore), after: rounded(loadavg()[0] ?? 0) },
      settle_seconds: settings.EXPORTD_SETTLE_DELAY / 1_000,
      bare,
      backfill: comparedWithBare(backfill, bare),
      exports: options.exports,
      interval: options.interval,
      creation,
      ticks,
      largest_history: await largestHistory(temporal.client, taskQueues(settings).control),
    };
  } finally {
    await Promise.all([pool.end(), temporal.close()]);
    report('Removing the scratch data');
    await stack.remove();
  }
}

const profiled = (bench: ScheduleBench, name: string): ScheduleBench => ({
  ...bench,
  profileFolder: bench.profileFolder && join(bench.profileFolder, name),
});

/** Creates the exports and measures their ticks, once for each jitter, by workers that are started with it. */
async function measureSchedules(
  bench: ScheduleBench,
  options: ScheduleBenchOptions,
  accounts: Readonly<Record<'empty' | 'filled', BenchAccount>>,
): Promise<Pick<ScheduleBenchDocument, 'creation' | 'ticks'>> {
  const { pool, report } = bench;
  const { exports, interval, ticks: ticksEach, jitters } = options;
  let hoursFilled = 0;
  const prepare = async (start: Date, end: Date) => {
    const hours = Math.ceil((end.getTime() - start.getTime()) / hourMs);
    // Rows follow from their number, so each hour takes the next ones; the first of all is where they would begin.
    const first = hoursFilled * rowsPerHour;
    const zero = new Date(start.getTime() - hoursFilled * hourMs);
    const rows = { first, end: first + hours * rowsPerHour, count: rowsPerHour };
    await pool.query(insertEventRows(accounts.filled.teamId, zero, rows));
    hoursFilled += hours;
  };
  const ticks: TicksResult[] = [];
  let creation: ScheduleBenchDocument['creation'] = null;
  for (const jitter of jitters) {
    const settings = { EXPORTD_JITTER_SHORT_FRACTION: String(jitter) };
    const result = await withExportd(profiled(bench, `jitter-${String(jitter)}`), settings, async () => {
      creation ??= await createAll(bench, options, accounts);
      return measureTicks(bench, { exports, interval, ticks: ticksEach, jitter, prepare });
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
  const use = watchUse(stack);
  const began = performance.now();
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
  const seconds = (performance.now() - began) / 1_000;
  report(`Created the exports in ${seconds.toFixed(1)} s, ${(exports / seconds).toFixed(1)} a second`);
  return { seconds: rounded(seconds), per_second: rounded(exports / seconds), use: await use.end() };
}
