import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { forEachConcurrently } from '../../../src/concurrency/keyed_semaphore.ts';
import { LaunchError } from '../../../src/local_stack/data_folder.ts';
import type { Report } from '../../../src/local_stack/report.ts';
import { createClient } from '../../../src/temporal/connections.ts';
import { insertEvents } from '../events.ts';
import {
  createExport,
  deploymentOn,
  exportingProject,
  withExportd,
  type Deployment,
  type ExportingProject,
} from '../exportd.ts';
import { megabytes, rounded, type ResultTable } from '../results.ts';
import {
  createBenchAccount,
  measureOnScratch,
  type BenchAccount,
  type Scratch,
  type ScratchOptions,
} from '../scratch.ts';
import { maxConcurrency, measureNoopRate } from '../schedule/noop_rate.ts';
import { commitsOf, mainThreadSecondsOf, memoryOf, watchCpu } from '../usage.ts';
import {
  boundsOf,
  findFailures,
  findWrongRuns,
  intervals,
  landingOf,
  nextMark,
  planExports,
  projectsFor,
  rowsPerInterval,
  rowsStart,
  type Landing,
  type MarkRun,
  type PlannedExport,
} from './mark.ts';

/** The options of the command line. */
interface ManyBenchOptions extends ScratchOptions {
  readonly exports: number;
  readonly workers: readonly number[];
  readonly profile?: string;
}

/** Result of `npm run bench -- many`. Times are in seconds, sizes in bytes. */
export type ManyBenchResult = Awaited<ReturnType<typeof runManyBench>>;

/** Exports that are created first, paused: the times of the second half say how long the others take. */
const pacingExports = 60;
/** Later exports may take longer. */
const pacingTolerance = 1.25;
const maxConcurrentRequests = 8;
/** Between the last export and the time at rest: V8 collects the garbage of creating once nothing has happened for some seconds. */
const collectMs = 20_000;
/** Between the time at rest and the mark. */
const pauseMs = 5_000;
/** How long the deployment is watched at rest, and the least that remains if creating took long. */
const restMs = { planned: 60_000, minimum: 5_000 };
/** What a run does after it has landed belongs to its cost. */
const trailingMs = 5_000;
const maxNoopWorkflows = 500;
const pollMs = 1_000;
const reportEveryMs = 15_000;
/** After the mark: this, and so much more for each export. */
const timeoutMs = { mark: 600_000, export: 500 };

/**
 * Measures a mark at which all of many exports are due at once, without jitter, and the deployment at rest before it: when
 * the runs land, CPU time by process, and memory of each worker. Deletes everything that it created.
 * @throws LaunchError when a process exits. @throws the reason of an aborted signal
 */
export async function runManyBench(
  { exports, workers, profile, ...options }: ManyBenchOptions,
  report: Report,
  signal: AbortSignal,
) {
  const measurements = [];
  for (const count of workers) {
    const profileFolder = profile && join(profile, `workers-${String(count)}`);
    const request = { exports, workers: count, profileFolder };
    // On servers of its own.
    measurements.push(
      await measureOnScratch(options, report, signal, (scratch) => measureWorkers(scratch, request)),
    );
  }
  return { exports, measurements };
}

/** What a number of workers is measured on. */
interface ManyBench extends Scratch {
  readonly projects: readonly ExportingProject[];
  readonly workerPids: readonly number[];
}

interface ManyRequest {
  readonly exports: number;
  readonly workers: number;
  readonly profileFolder: string | undefined;
}

async function measureWorkers(scratch: Scratch, { exports, workers, profileFolder }: ManyRequest) {
  const { stack, pool, report, signal } = scratch;
  const deployment = await deploymentOn(stack, 'many', { EXPORTD_JITTER_SHORT_FRACTION: '0' });
  const settle_seconds = deployment.settings.EXPORTD_SETTLE_DELAY / 1_000;
  const noop_per_second = await measureFloor(scratch, deployment, Math.min(exports, maxNoopWorkflows));
  report(`No-op workflows: ${noop_per_second.toFixed(1)} per second`);
  const accounts = await createAccounts(scratch, projectsFor(exports));
  const projects = accounts.map((account) => exportingProject(scratch, deployment, account));
  return withExportd(stack, deployment, { workers, profileFolder }, async (first, others) => {
    const workerPids = [first, ...others].map(({ pid }) => pid);
    const bench = { ...scratch, projects, workerPids };
    const creatingMs = (await measurePace(bench)) * exports * pacingTolerance;
    const markAt = nextMark(Date.now(), creatingMs + collectMs + restMs.planned + pauseMs);
    report(`The mark is at ${new Date(markAt).toISOString()}`);
    await insertRows(scratch, accounts, markAt);
    const created = await createAll(bench, planExports(exports), markAt);

    const restingMs = Math.min(restMs.planned, markAt - collectMs - pauseMs - Date.now());
    if (restingMs < restMs.minimum)
      throw new LaunchError('Creating the exports took much longer than the first of them suggested.');
    await delay(collectMs, undefined, { signal });
    const resting = await watch(bench);
    await delay(restingMs, undefined, { signal });
    const rest = await resting();
    const idle = workerPids.map(memoryOf);

    await delay(Math.max(0, markAt - pollMs - Date.now()), undefined, { signal });
    const working = await watch(bench);
    await waitUntilEnded(bench, exports, markAt);
    await delay(trailingMs, undefined, { signal });
    const mark = await working();
    const { rows: runs } = await pool.query<MarkRun>(
      `select batch_export_id, status, manifest_key, records_completed, finished_at
       from exportd.batch_export_runs where data_interval_end = $1`,
      [new Date(markAt)],
    );
    const all = landingOf(runs, markAt);
    const ofIntervals = intervals.map((interval) => {
      const found = runs.filter(({ batch_export_id: id }) => created.get(id)?.interval === interval);
      return { interval, ...landingOf(found, markAt) };
    });
    const runs_per_second = rateOf(all, settle_seconds);
    return {
      workers,
      noop_per_second,
      /** EXPORTD_SETTLE_DELAY. No run can land earlier after the mark. */
      settle_seconds,
      landings: [{ interval: 'all', ...all }, ...ofIntervals],
      runs_per_second,
      ratio_to_noop: runs_per_second === null ? null : rounded(runs_per_second / noop_per_second),
      wrong_runs: findWrongRuns(created, runs, await stack.objectKeys()),
      rest,
      mark,
      memory: workerPids.map((pid, index) => ({
        idle_bytes: idle[index]?.resident ?? null,
        /** Since the start of the worker. */
        peak_bytes: memoryOf(pid)?.peak ?? null,
        after_bytes: memoryOf(pid)?.resident ?? null,
      })),
    };
  });
}

/** Runs per second from the first possible landing to the last one. */
const rateOf = ({ runs, last }: Landing, settleSeconds: number): number | null =>
  last === null ? null : rounded(runs / (last - settleSeconds));

/** No-op workflows per second, on a worker of their own. */
async function measureFloor(scratch: Scratch, { settings }: Deployment, workflows: number): Promise<number> {
  const { client, close } = await createClient(settings);
  try {
    const [floor] = await measureNoopRate(scratch, client, settings, workflows, [maxConcurrency]);
    return floor?.per_second ?? Number.NaN;
  } finally {
    await close();
  }
}

/** Projects with consecutive ids. */
async function createAccounts({ pool }: Scratch, count: number): Promise<readonly BenchAccount[]> {
  const accounts = [];
  for (let number = 1; number <= count; number += 1)
    accounts.push(await createBenchAccount(pool, `Project-${String(number)}`));
  return accounts;
}

/** Inserts the rows of the mark before it, into the first half of the projects. */
async function insertRows(
  { stack, report, signal }: Scratch,
  accounts: readonly BenchAccount[],
  markAt: number,
): Promise<void> {
  const projects = accounts.length / 2;
  const start = rowsStart(markAt);
  const hours = (markAt - start.getTime()) / 3_600_000;
  const rows = { teamId: accounts[0]?.teamId ?? Number.NaN, projects, count: projects * rowsPerInterval };
  await insertEvents(stack.databaseUrl, { ...rows, start, hours }, report, signal);
}

/** Milliseconds that creating an export takes, of several at once. */
async function measurePace(bench: ManyBench): Promise<number> {
  const project = projectAt(bench, -1);
  const numbers = Array.from({ length: pacingExports }, (_, index) => index + 1);
  const half = pacingExports / 2;
  const create = (some: readonly number[]) =>
    forEachConcurrently(some, maxConcurrentRequests, async (number) => {
      await createExport(project, { name: `paused-${String(number)}`, paused: true });
    });
  // The first ones also wait for connections and compilation.
  await create(numbers.slice(0, half));
  const startedAt = performance.now();
  await create(numbers.slice(half));
  return (performance.now() - startedAt) / half;
}

function projectAt({ projects }: ManyBench, index: number): ExportingProject {
  const project = projects.at(index);
  if (project === undefined) throw new RangeError(`There is no project ${String(index)}.`);
  return project;
}

/** Creates the exports over HTTP. @returns them by id */
async function createAll(
  bench: ManyBench,
  planned: readonly PlannedExport[],
  markAt: number,
): Promise<ReadonlyMap<string, PlannedExport>> {
  const { report, signal } = bench;
  const created = new Map<string, PlannedExport>();
  const startedAt = performance.now();
  await forEachConcurrently(planned, maxConcurrentRequests, async (one) => {
    signal.throwIfAborted();
    const { name, interval, project } = one;
    const fields = { name, interval, paused: false, bounds: boundsOf(markAt) };
    created.set(await createExport(projectAt(bench, project), fields), one);
    if (created.size % 100 === 0)
      report(`Created ${String(created.size)} of ${String(planned.length)} exports`);
  });
  const seconds = (performance.now() - startedAt) / 1_000;
  report(
    `Created the exports in ${seconds.toFixed(1)} s, ${(planned.length / seconds).toFixed(1)} per second`,
  );
  return created;
}

/** Commits and CPU seconds by process, null where the environment brought the server, until the returned function is called. */
async function watch({ stack, pool, workerPids }: ManyBench) {
  const mainThreads = (): number =>
    workerPids.reduce((sum, pid) => sum + (mainThreadSecondsOf(pid) ?? Number.NaN), 0);
  const commitsBefore = await commitsOf(pool);
  const [mainBefore, watched, startedAt] = [mainThreads(), watchCpu(stack.folder), performance.now()];
  return async () => {
    const main = mainThreads() - mainBefore;
    const programs = watched();
    const known = (value = Number.NaN): number | null => (Number.isNaN(value) ? null : rounded(value));
    return {
      seconds: rounded((performance.now() - startedAt) / 1_000),
      commits: (await commitsOf(pool)) - commitsBefore,
      cpu_seconds: {
        worker: known(programs.get('worker')),
        worker_main_thread: known(main),
        temporal: known(programs.get('temporal')),
        server: known(programs.get('server')),
        postgresql: known(programs.get('postgresql')),
        s3: known(programs.get('s3')),
      },
    };
  };
}

/** Waits until as many runs of the mark as there are exports have ended for good, within the timeout. */
async function waitUntilEnded(
  { pool, report, signal }: ManyBench,
  exports: number,
  markAt: number,
): Promise<void> {
  const deadline = markAt + timeoutMs.mark + exports * timeoutMs.export;
  let reported = performance.now();
  for (;;) {
    const { rows } = await pool.query<{ created: number; ended: number }>(
      `select count(*) as created,
         count(*) filter (where finished_at is not null and status <> 'FailedRetryable') as ended
       from exportd.batch_export_runs where data_interval_end = $1`,
      [new Date(markAt)],
    );
    const { created = 0, ended = 0 } = rows[0] ?? {};
    if (ended >= exports || Date.now() > deadline) return;
    if (performance.now() - reported > reportEveryMs) {
      reported = performance.now();
      report(`${String(created)} of ${String(exports)} runs created, ${String(ended)} ended`);
    }
    await delay(pollMs, undefined, { signal });
  }
}

const withOneDigit = (value: number | null): string => value?.toFixed(1) ?? '-';

/** The result as tables. */
export function manyTables({ exports, measurements }: ManyBenchResult): readonly ResultTable[] {
  const [first] = measurements;
  const processes = ['worker', 'of its main thread', 'Temporal', 'server', 'PostgreSQL', 'S3'];
  return [
    {
      title: `${String(exports)} exports, seconds from the mark, with a settle delay of ${String(first?.settle_seconds)}`,
      headings: ['workers', 'interval', 'runs', 'median', 'p95', 'last', 'runs per second', '÷ no-op'],
      rows: measurements.flatMap(({ workers, landings, runs_per_second, ratio_to_noop }) =>
        landings.map(({ interval, runs, median, p95, last }) => [
          String(workers),
          interval,
          String(runs),
          ...[median, p95, last].map(withOneDigit),
          interval === 'all' ? withOneDigit(runs_per_second) : '',
          interval === 'all' ? (ratio_to_noop?.toFixed(2) ?? '-') : '',
        ]),
      ),
    },
    {
      title: 'CPU time in milliseconds, and commits',
      headings: ['workers', 'of', ...processes, 'commits'],
      rows: measurements.flatMap(({ workers, rest, mark }) => {
        const cells = ({ cpu_seconds, commits }: typeof rest, times: number): string[] => [
          ...Object.values(cpu_seconds).map((value) => withOneDigit(value && (1_000 * value) / times)),
          (commits / times).toFixed(1),
        ];
        return [
          [String(workers), 'a run', ...cells(mark, exports)],
          [String(workers), 'a second at rest', ...cells(rest, rest.seconds)],
        ];
      }),
    },
    {
      title: 'Memory of a worker in MB',
      headings: ['workers', 'at rest', 'peak', 'after the mark'],
      rows: measurements.flatMap(({ workers, memory }) =>
        memory.map(({ idle_bytes, peak_bytes, after_bytes }) => [
          String(workers),
          ...[idle_bytes, peak_bytes, after_bytes].map(megabytes),
        ]),
      ),
    },
  ];
}

/** @throws LaunchError when rows did not land exactly once, or a bound of memory or time is exceeded */
export function checkManyResult({ exports, measurements }: ManyBenchResult): void {
  const failures = measurements.flatMap((one) => findFailures(exports, one));
  if (failures.length > 0) throw new LaunchError(failures.join('\n'));
}
