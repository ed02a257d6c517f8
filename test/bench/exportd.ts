import { setTimeout as delay } from 'node:timers/promises';
import { readSettings, type Settings } from '../../src/config/settings.ts';
import {
  type Child,
  type ChildProcesses,
  createChildProcesses,
  lastLines,
  waitUntilReady,
} from '../../src/local_stack/child_processes.ts';
import { createApiClient, type ApiClient } from '../../src/local_stack/demo/api_client.ts';
import { startExportd } from '../../src/local_stack/exportd_processes.ts';
import {
  LaunchError,
  loadOrCreateSecrets,
  type StackEnvironment,
} from '../../src/local_stack/data_folder.ts';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { stackEnvironment } from '../../src/local_stack/stack_environment.ts';
import type { BenchAccount, Scratch, ScratchStack } from './scratch.ts';

/** Where exportd's processes run, and with which settings. */
export interface Deployment {
  readonly baseUrl: string;
  readonly environment: StackEnvironment;
  readonly settings: Settings;
}

/**
 * A deployment on a scratch stack.
 * @param name part of the names of the task queues, unique for each measurement
 * @param more settings in addition to those of the user and the stack
 */
export async function deploymentOn(
  { folder, databaseUrl, temporal }: ScratchStack,
  name: string,
  more: StackEnvironment = {},
): Promise<Deployment> {
  const { http: port } = await assignPorts(folder.inside('ports.json'), ['http']);
  const { encryptionKeys } = loadOrCreateSecrets(folder);
  const environment = {
    ...stackEnvironment({ databaseUrl, temporal, httpPort: port }, encryptionKeys, false),
    SOURCE_DATABASE_URL: databaseUrl,
    EXPORTD_QUERY_DATABASE_URL: '',
    EXPORTD_HOST: '127.0.0.1',
    // Separate from other users of the namespace.
    EXPORTD_TASK_QUEUE_PREFIX: `bench-${String(process.pid)}-${name}`,
    ...more,
  };
  return {
    baseUrl: `http://127.0.0.1:${String(port)}`,
    environment,
    settings: readSettings({ ...environment }),
  };
}

/** A running worker. */
export interface BenchWorker {
  readonly pid: number;
  /** Where it serves its metrics. */
  readonly httpPort: number;
}

/**
 * Runs `work` with a server and some workers, once each of them polls its task queues. Stops them afterwards.
 * @throws LaunchError when a worker exits
 */
export async function withExportd<Result>(
  stack: ScratchStack,
  { baseUrl, environment }: Deployment,
  options: {
    /** Number of workers; 1 by default. */
    readonly workers?: number;
    /** Folder for CPU profiles of the workers; none are written without it. Node creates it. */
    readonly profileFolder?: string | undefined;
  },
  work: (worker: BenchWorker, others: readonly BenchWorker[]) => Promise<Result>,
): Promise<Result> {
  const { workers = 1, profileFolder } = options;
  const names = Array.from({ length: workers }, (_, index) => `worker-${String(index + 1)}`);
  const assigned = await assignPorts(stack.folder.inside('ports.json'), names);
  const [firstPort = 0, ...otherPorts] = names.map((name) => assigned[name] ?? 0);
  const start = async (children: ChildProcesses) => {
    const { worker } = await startExportd(children, environment, baseUrl, {
      workerHttpPort: firstPort,
      ...(profileFolder !== undefined && {
        workerNodeOptions: ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`],
      }),
    });
    const { program } = worker;
    const others = otherPorts.map((port, index) => {
      const env = { ...program.env, EXPORTD_WORKER_HTTP_PORT: String(port) };
      return children.start({ ...program, name: `worker-${index + 2}`, env });
    });
    return [worker, ...others] as const;
  };
  const whenReady = async (child: Child, httpPort: number): Promise<BenchWorker> => {
    const worker = { pid: child.pid, httpPort };
    await waitUntilReady(child, () => isReady(worker));
    return worker;
  };
  return withWorkers(stack, start, async (first, others) => {
    const [worker, ...otherWorkers] = await Promise.all([
      whenReady(first, firstPort),
      ...others.map((child, index) => whenReady(child, otherPorts[index] ?? 0)),
    ]);
    return work(worker, otherWorkers);
  });
}

/** Whether this worker polls its task queues, and not another process on its port. */
async function isReady(worker: BenchWorker): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${String(worker.httpPort)}/readyz`, {
    signal: AbortSignal.timeout(5_000),
  });
  return response.ok && ((await response.json()) as { pid?: number }).pid === worker.pid;
}

/** At least one. */
type Workers = readonly [Child, ...Child[]];

/**
 * Runs `work` beside worker processes, and stops all processes that were started.
 * @throws LaunchError when a worker exits
 */
export async function withWorkers<Result>(
  { folder }: Pick<ScratchStack, 'folder'>,
  start: (children: ChildProcesses) => Promise<Workers> | Workers,
  work: (worker: Child, others: readonly Child[]) => Promise<Result>,
): Promise<Result> {
  const children = createChildProcesses(folder);
  const kill = () => children.killAll();
  process.once('exit', kill);
  try {
    const workers = await start(children);
    const ended = workers.map(async ({ exited, logFile }) => {
      const { how } = await exited;
      throw new LaunchError(`A worker ${how}. Last lines of its log:\n${lastLines(logFile)}`);
    });
    for (const one of ended) one.catch(() => undefined);
    const [worker, ...others] = workers;
    return await Promise.race([work(worker, others), ...ended]);
  } finally {
    await children.stopAll();
    process.off('exit', kill);
  }
}

/** A destination in the scratch bucket. A format has its compression after a plus sign, such as `JSONLines+gzip`. */
export function destinationFor(format: string, prefix: string, { objectStore, bucket }: ScratchStack) {
  const [file_format, compression = null, table_format = null] = format.split('+');
  return {
    type: 'S3',
    config: {
      bucket_name: bucket,
      region: objectStore.region,
      prefix,
      endpoint_url: objectStore.endpoint,
      aws_access_key_id: objectStore.accessKeyId,
      aws_secret_access_key: objectStore.secretAccessKey,
      file_format,
      compression,
      table_format,
    },
  };
}

/** A project whose events are exported. */
export interface ExportingProject extends Omit<Scratch, 'report'> {
  readonly api: ApiClient;
}

/** The project of an account on a deployment. */
export const exportingProject = (
  { stack, pool, signal }: Omit<Scratch, 'report'>,
  { baseUrl }: Deployment,
  { teamId, apiKey }: BenchAccount,
): ExportingProject => ({ stack, pool, signal, api: createApiClient(baseUrl, teamId, apiKey) });

/**
 * Creates an export of events, with its name as the prefix.
 * @param fields.bounds `start_at` and `end_at`
 * @returns its id
 */
export async function createExport(
  { stack, api }: ExportingProject,
  fields: {
    readonly name: string;
    readonly format?: string;
    readonly interval?: string;
    readonly paused?: boolean;
    readonly bounds?: { readonly start_at: string; readonly end_at: string };
  },
): Promise<string> {
  const { name, format = 'JSONLines+gzip', interval = 'hour', paused = true, bounds } = fields;
  const created = await api.request<{ id: string }>('POST', '', {
    name,
    interval,
    paused,
    model: 'events',
    destination: destinationFor(format, name, stack),
    ...bounds,
  });
  return created?.id ?? '';
}

/** Hours that each of some exports exports. */
export interface ExportHours {
  readonly exportIds: readonly string[];
  readonly start: Date;
  readonly hours: number;
}

/** How backfills of these hours ended. */
interface Backfilled {
  /** From the first run that became Running to the last that became Completed, by the journal. */
  readonly seconds: number;
  /** From the command to the last run that became Completed, and to the end of the last backfill. */
  readonly seconds_from_command: number;
  readonly seconds_to_end: number;
  readonly rows: number;
  readonly bytes: number;
}

const hourMs = 3_600_000;
const pollMs = 100;

/** The time after a number of hours. */
export const hoursAfter = (start: Date, hours: number): Date => new Date(start.getTime() + hours * hourMs);

/** SQL: the runs of `$1` exports from `$2` to `$3`. */
const runsOfHours = 'batch_export_id = any($1) and data_interval_start >= $2 and data_interval_start < $3';

/**
 * Backfills the hours of all exports at once.
 * @param onProgress is called with the number of completed runs
 * @throws LaunchError when a run does not complete
 */
export async function backfill(
  { pool, api, signal }: ExportingProject,
  { exportIds, start, hours }: ExportHours,
  onProgress: (completed: number) => void = () => undefined,
): Promise<Backfilled> {
  const end = hoursAfter(start, hours);
  const range = [exportIds, start, end];
  const commandAt = Date.now();
  const body = { start_at: start.toISOString(), end_at: end.toISOString() };
  await Promise.all(exportIds.map((id) => api.request('POST', `${id}/backfill/`, body)));
  for (;;) {
    signal.throwIfAborted();
    const { rows } = await pool.query<{ completed: number; failure: string | null; unfinished: number }>(
      `select count(*) filter (where status = 'Completed') as completed,
         min(status || ': ' || coalesce(latest_error, 'no error recorded'))
           filter (where status not in ('Starting', 'Running', 'Completed')) as failure,
         (select count(*) from exportd.backfills
          where batch_export_id = any($1) and finished_at is null) as unfinished
       from exportd.batch_export_runs where ${runsOfHours}`,
      range,
    );
    const [found] = rows;
    if (found?.failure) throw new LaunchError(`A run did not complete. ${found.failure}`);
    if (found?.completed === exportIds.length * hours && found.unfinished === 0) break;
    onProgress(found?.completed ?? 0);
    await delay(pollMs);
  }
  const { rows } = await pool.query<
    Omit<Backfilled, `seconds_${string}`> & { completed: number; end: number }
  >(
    `with runs as (select * from exportd.batch_export_runs where ${runsOfHours}),
       events as (
         select extract(epoch from max(recorded_at) filter (where event_type = 'RunCompleted'))::float8 as completed,
           extract(epoch from min(recorded_at) filter (where event_type = 'RunExportStarted'))::float8 as started
         from exportd.journal_events where stream_type = 'run' and stream_id in (select id from runs)
       )
     select completed - started as seconds, completed,
       (select sum(records_completed)::float8 from runs) as rows, (select sum(bytes)::float8 from runs) as bytes,
       (select extract(epoch from max(finished_at))::float8 from exportd.backfills
        where batch_export_id = any($1)) as end
     from events`,
    range,
  );
  const [measured] = rows;
  const after = (time = Number.NaN) => time - commandAt / 1_000;
  return {
    seconds: measured?.seconds ?? Number.NaN,
    seconds_from_command: after(measured?.completed),
    seconds_to_end: after(measured?.end),
    rows: measured?.rows ?? 0,
    bytes: measured?.bytes ?? 0,
  };
}
