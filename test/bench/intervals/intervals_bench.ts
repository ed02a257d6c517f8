import { readFileSync, statSync } from 'node:fs';
import type { Client } from '@temporalio/client';
import { workflowIds, type RunInterval } from '../../../src/contract/workflow_ids.ts';
import type { Report } from '../../../src/local_stack/report.ts';
import { createClient } from '../../../src/temporal/connections.ts';
import { insertEvents, startOfHour } from '../events.ts';
import {
  backfill,
  createExport,
  deploymentOn,
  exportingProject,
  hoursAfter,
  withExportd,
  type BenchWorker,
  type Deployment,
  type ExportHours,
  type ExportingProject,
} from '../exportd.ts';
import { averageCost, costPerRun, type HistoryCost } from '../histories.ts';
import { rounded, statisticsOf, type ResultTable, type Statistics } from '../results.ts';
import {
  benchApplicationName,
  createBenchAccount,
  measureOnScratch,
  type Scratch,
  type ScratchOptions,
} from '../scratch.ts';
import { commitsOf, s3RequestsOf, watchPrograms, type ProgramSeconds } from '../usage.ts';

/** The options of the command line. */
interface IntervalsBenchOptions extends ScratchOptions {
  readonly intervals: number;
  readonly rows: number;
  readonly repeat: number;
  readonly profile?: string;
}

/** Result of `npm run bench -- intervals`. Times are in seconds. */
type IntervalsBenchResult = Awaited<ReturnType<typeof runIntervalsBench>>;

/** Intervals of each kind whose statements are counted from the log of the server. */
const loggedIntervals = 20;
/** Intervals of each kind before the first measurement, for connections and compilation. */
const warmIntervals = 50;
/** Runs whose histories are read. */
const samples = 20;

/**
 * Measures what a small interval and one without rows cost: CPU time by program, statements, commits, requests to S3, and
 * events of Temporal's histories. Backfills export them one after another. Deletes everything that it created.
 * @throws LaunchError when a process exits or a run does not complete. @throws the reason of an aborted signal
 */
export async function runIntervalsBench(
  { intervals, rows, repeat, profile, ...options }: IntervalsBenchOptions,
  report: Report,
  signal: AbortSignal,
) {
  return measureOnScratch(options, report, signal, async (scratch) => {
    const { stack, pool } = scratch;
    const hours = warmIntervals + loggedIntervals + repeat * intervals;
    const start = hoursAfter(startOfHour(), -hours);
    const filled = await createBenchAccount(pool, 'Filled');
    await insertEvents(
      stack.databaseUrl,
      { teamId: filled.teamId, start, count: hours * rows, hours },
      report,
      signal,
    );
    const deployment = await deploymentOn(stack, 'intervals', { EXPORTD_BACKFILL_CONCURRENCY: '1' });
    const { client, close } = await createClient(deployment.settings);
    try {
      return await withExportd(stack, deployment, { profileFolder: profile }, async (worker) => {
        const accounts = [filled, await createBenchAccount(pool, 'Empty')];
        const kinds = [];
        for (const account of accounts) {
          const project = exportingProject(scratch, deployment, account);
          const exportId = await createExport(project, { name: 'intervals' });
          const bench = { ...scratch, project, exportId, worker, client, deployment };
          await backfill(project, { exportIds: [exportId], start, hours: warmIntervals });
          const logged = hoursAfter(start, warmIntervals);
          const statements = await countStatements(bench, logged);
          kinds.push({ bench, rows: account === filled ? rows : 0, statements, measured: [] as Cost[] });
        }
        for (let number = 0; number < repeat; number += 1)
          for (const kind of kinds) {
            const first = hoursAfter(start, warmIntervals + loggedIntervals + number * intervals);
            const cost = await measureCost(kind.bench, { start: first, hours: intervals });
            kind.measured.push(cost);
            report(`${String(kind.rows)} rows: ${describe(cost)}`);
          }
        const kindsFound = [];
        for (const { bench, rows: ofEach, statements, measured } of kinds)
          kindsFound.push({
            rows: ofEach,
            statements,
            ...summarize(measured),
            history: await readHistory(bench, hours),
          });
        return { intervals, repeat, kinds: kindsFound };
      });
    } finally {
      await close();
    }
  });
}

/** An export whose intervals are measured. */
interface IntervalsBench extends Scratch {
  readonly project: ExportingProject;
  readonly exportId: string;
  readonly worker: BenchWorker;
  readonly client: Client;
  readonly deployment: Deployment;
}

/** What an interval cost on average. */
interface Cost {
  readonly cpu_seconds: ProgramSeconds;
  readonly seconds: number;
  readonly commits: number;
  readonly s3_requests: number;
}

const describe = ({ cpu_seconds, seconds }: Cost): string =>
  `${seconds.toFixed(3)} s, CPU ${JSON.stringify(cpu_seconds)}`;

async function measureCost(
  { project, exportId, worker, stack, pool }: IntervalsBench,
  { start, hours }: Omit<ExportHours, 'exportIds'>,
): Promise<Cost> {
  const [commitsBefore, requestsBefore] = [await commitsOf(pool), await s3RequestsOf(worker.httpPort)];
  const used = watchPrograms(stack.folder);
  // A run without rows has no start of its export.
  const { seconds_to_end } = await backfill(project, { exportIds: [exportId], start, hours });
  const { worker: ofWorker, postgresql, s3, temporal } = used();
  const each = (value: number | null) => (value === null ? null : value / hours);
  return {
    cpu_seconds: {
      worker: each(ofWorker),
      postgresql: each(postgresql),
      s3: each(s3),
      temporal: each(temporal),
    },
    seconds: seconds_to_end / hours,
    commits: ((await commitsOf(pool)) - commitsBefore) / hours,
    s3_requests: ((await s3RequestsOf(worker.httpPort)) - requestsBefore) / hours,
  };
}

/**
 * Statements of an interval, counted from PostgreSQL's log: those of the worker and of the server, without begin and commit
 * of their transactions. Null where the environment brought the server.
 */
async function countStatements(
  { project, exportId, stack, pool }: IntervalsBench,
  start: Date,
): Promise<number | null> {
  const log = stack.folder.inside('logs', 'postgresql.log');
  const before = sizeOf(log);
  if (before === null) return null;
  const logDurations = async (limit: number): Promise<void> => {
    await pool.query(`alter system set log_min_duration_statement = ${String(limit)}`);
    await pool.query(`alter system set log_line_prefix = '%a|%p '`);
    await pool.query('select pg_reload_conf()');
  };
  await logDurations(0);
  await backfill(project, { exportIds: [exportId], start, hours: loggedIntervals });
  await logDurations(-1);
  const lines = readFileSync(log, 'utf8').slice(before).split('\n');
  const statements = lines.filter(
    (line) =>
      /LOG: {2}duration: [\d.]+ ms {2}(execute|statement)/.test(line) &&
      !line.startsWith(benchApplicationName) &&
      !/(statement|execute [^:]*): (begin|commit)/i.test(line),
  );
  return rounded(statements.length / loggedIntervals);
}

function sizeOf(file: string): number | null {
  try {
    return statSync(file).size;
  } catch {
    return null;
  }
}

/** Events and actions of a run, with its share of the history of its backfill. */
async function readHistory(
  { pool, client, deployment, exportId }: IntervalsBench,
  hours: number,
): Promise<HistoryCost> {
  const { rows } = await pool.query<RunInterval & { backfill_id: string }>(
    `select backfill_id, batch_export_id, data_interval_start, data_interval_end from exportd.batch_export_runs
     where batch_export_id = $1 order by data_interval_start desc limit ${String(samples)}`,
    [exportId],
  );
  const ids = workflowIds(deployment.settings);
  const run = await averageCost(client, rows.map(ids.run));
  const backfillIds = [...new Set(rows.map(({ backfill_id }) => backfill_id))];
  const { rows: counts } = await pool.query<{ runs: number }>(
    `select count(*)::int as runs from exportd.batch_export_runs where backfill_id = any($1)`,
    [backfillIds],
  );
  const runs = counts[0]?.runs ?? hours;
  const ofBackfills: HistoryCost[] = [];
  for (const id of backfillIds) ofBackfills.push(await costPerRun(client, ids.backfill(id), runs));
  const total = (value: (cost: HistoryCost) => number): number =>
    rounded(value(run) + ofBackfills.reduce((sum, cost) => sum + value(cost), 0));
  return { events: total(({ events }) => events), actions: total(({ actions }) => actions) };
}

function summarize(measured: readonly Cost[]) {
  const ofProgram = (name: keyof ProgramSeconds): Statistics | null => {
    const seconds = measured.flatMap(({ cpu_seconds }) => cpu_seconds[name] ?? []);
    return seconds.length === 0 ? null : statisticsOf(seconds);
  };
  return {
    seconds: statisticsOf(measured.map(({ seconds }) => seconds)),
    worker_cpu_seconds: ofProgram('worker'),
    postgresql_cpu_seconds: ofProgram('postgresql'),
    temporal_cpu_seconds: ofProgram('temporal'),
    s3_cpu_seconds: ofProgram('s3'),
    commits: statisticsOf(measured.map(({ commits }) => commits)),
    s3_requests: statisticsOf(measured.map(({ s3_requests }) => s3_requests)),
  };
}

/** The result as tables. */
export function intervalsTables({ intervals, kinds }: IntervalsBenchResult): readonly ResultTable[] {
  const milliseconds = (value: Statistics | null): string =>
    value === null ? '-' : (value.median * 1_000).toFixed(1);
  return [
    {
      title: `An interval, average of ${String(intervals)}, times in milliseconds`,
      headings: [
        'rows',
        'worker CPU',
        'PostgreSQL CPU',
        'Temporal and server CPU',
        'S3 CPU',
        'time',
        'statements',
        'commits',
        'S3 requests',
        'history events',
        'actions',
      ],
      rows: kinds.map((one) => [
        String(one.rows),
        ...[one.worker_cpu_seconds, one.postgresql_cpu_seconds, one.temporal_cpu_seconds].map(milliseconds),
        ...[one.s3_cpu_seconds, one.seconds].map(milliseconds),
        one.statements?.toFixed(1) ?? '-',
        one.commits.median.toFixed(1),
        one.s3_requests.median.toFixed(2),
        one.history.events.toFixed(1),
        one.history.actions.toFixed(1),
      ]),
    },
  ];
}
