import { setTimeout as delay } from 'node:timers/promises';
import { createChildProcesses, lastLines } from '../local_stack/child_processes.ts';
import { createApiClient, type ApiClient } from '../local_stack/demo/api_client.ts';
import { readManifestFiles } from '../local_stack/demo/demo_bucket.ts';
import { startExportd } from '../local_stack/exportd_processes.ts';
import { LaunchError } from '../local_stack/launch_error.ts';
import { assignPorts } from '../local_stack/ports.ts';
import type { StackEnvironment } from '../local_stack/stack_file.ts';
import type { Pool } from '../journal/database.ts';
import type { BenchAccount } from './bench_account.ts';
import { exportdEnvironment, profilingOptions } from './exportd_environment.ts';
import { destinationFor } from './formats.ts';
import { cpuSecondsOf, memoryOf, resetPeakMemory } from './process_usage.ts';
import type { ScratchStack } from './scratch_stack.ts';
import type { MeasuredProgram } from './statistics.ts';
import { verifyRun } from './verify_run.ts';
import { s3RequestsOf } from './worker_requests.ts';

/** An export of the interval by a newly started worker. */
export interface MeasuredRun extends MeasuredProgram {
  readonly seconds_from_command: number;
  readonly rows: number;
  readonly idle_memory_bytes: number | null;
}

/** The run to measure. */
export interface RunRequest {
  readonly format: string;
  readonly account: BenchAccount;
  readonly interval: { readonly start: string; readonly end: string };
  /** Whether the worker exports the interval once before, which excludes its start-up from the measurement. */
  readonly warm: boolean;
  /** Folder for the CPU profiles of the worker; none are written without it. */
  readonly profileFolder?: string | undefined;
}

interface RunResponse {
  readonly id: string;
  readonly status: string;
  readonly latest_error: string | null;
  readonly manifest_key: string | null;
}

const pollMs = 200;
const active = new Set(['Starting', 'Running', 'ContinuedAsNew']);

/**
 * Starts a server and a worker, exports the interval with a backfill, and stops them. Every measurement has a new worker,
 * unaffected by the memory and caches of other formats. Afterwards every exported value is compared with the source.
 * @throws LaunchError when the run does not complete, or its objects differ from the source
 */
export async function measureRun(
  stack: ScratchStack,
  pool: Pool,
  request: RunRequest,
  signal: AbortSignal,
): Promise<MeasuredRun> {
  const { folder } = stack;
  const { baseUrl, environment } = await exportdEnvironment(stack, request.format);
  const { worker: workerHttpPort } = await assignPorts(folder.inside('ports.json'), ['worker']);
  const children = createChildProcesses(folder);
  const kill = () => children.killAll();
  process.once('exit', kill);
  try {
    const { worker } = await startExportd(children, environment, baseUrl, {
      workerNodeOptions: profilingOptions(request.profileFolder),
      workerHttpPort,
    });
    const { teamId, apiKey } = request.account;
    const client = createApiClient(baseUrl, teamId, apiKey);
    const session = { stack, pool, client, environment, workerPid: worker.pid, workerHttpPort, signal };
    const ended = worker.exited.then((how) => {
      throw new LaunchError(`The worker ${how}. Last lines of its log:\n${lastLines(worker.logFile)}`);
    });
    ended.catch(() => undefined);
    const exportOnce = async () => {
      const id = await createExport(session, request);
      const measured = await measureExport(session, id, request);
      return { id, measured };
    };
    if (request.warm) {
      const { id } = await Promise.race([exportOnce(), ended]);
      await client.request('DELETE', `${id}/`);
      await stack.emptyBucket();
    }
    const { id, measured } = await Promise.race([exportOnce(), ended]);
    await verifyRun(pool, environment, id, request.interval);
    return measured;
  } finally {
    await children.stopAll();
    process.off('exit', kill);
  }
}

/** A running worker and its clients. */
interface Session {
  readonly stack: ScratchStack;
  readonly pool: Pool;
  readonly client: ApiClient;
  readonly environment: StackEnvironment;
  readonly workerPid: number;
  readonly workerHttpPort: number;
  readonly signal: AbortSignal;
}

async function createExport({ client, stack }: Session, { format }: RunRequest): Promise<string> {
  const created = await client.request<{ id: string }>('POST', '', {
    name: `Bench ${format}`,
    model: 'events',
    interval: 'hour',
    paused: true,
    destination: destinationFor(format, stack),
  });
  return created?.id ?? '';
}

/** Exports the interval once. */
async function measureExport(session: Session, id: string, { interval }: RunRequest): Promise<MeasuredRun> {
  const { stack, pool, client, workerPid, workerHttpPort, signal } = session;
  const requestsBefore = await s3RequestsOf(workerHttpPort);
  const idle = memoryOf(workerPid);
  resetPeakMemory(workerPid);
  const cpuBefore = cpuSecondsOf(workerPid);
  const commandAt = Date.now();
  await client.request('POST', `${id}/backfill/`, { start_at: interval.start, end_at: interval.end });
  const run = await waitUntilFinished(client, id, signal);
  const peak = memoryOf(workerPid);
  const cpuAfter = cpuSecondsOf(workerPid);
  const s3_requests = (await s3RequestsOf(workerHttpPort)) - requestsBefore;
  if (run.status !== 'Completed' || run.manifest_key === null)
    throw new LaunchError(`The run is ${run.status}: ${run.latest_error ?? 'no error recorded'}`);
  const files = await readManifestFiles(stack.objectStore, stack.bucket, run.manifest_key);
  const { startedAt, completedAt } = await timesOf(pool, id);
  return {
    seconds: (completedAt - startedAt) / 1_000,
    seconds_from_command: (completedAt - commandAt) / 1_000,
    cpu_seconds: (cpuAfter ?? Number.NaN) - (cpuBefore ?? Number.NaN),
    rows: files.reduce((sum, file) => sum + file.rows, 0),
    bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    idle_memory_bytes: idle?.resident ?? null,
    peak_memory_bytes: peak?.peak ?? null,
    s3_requests,
  };
}

async function waitUntilFinished(client: ApiClient, id: string, signal: AbortSignal): Promise<RunResponse> {
  for (;;) {
    signal.throwIfAborted();
    const page = await client.request<{ results: RunResponse[] }>('GET', `${id}/runs/?limit=1`);
    const [run] = page?.results ?? [];
    if (run !== undefined && !active.has(run.status)) return run;
    await delay(pollMs);
  }
}

/** When the first run started and the last one completed, from the journal, in milliseconds. */
async function timesOf(
  pool: Pool,
  batchExportId: string,
): Promise<{ startedAt: number; completedAt: number }> {
  const { rows } = await pool.query<{ started: number; completed: number }>(
    `select extract(epoch from min(recorded_at) filter (where event_type = 'RunExportStarted'))::float8 as started,
       extract(epoch from max(recorded_at) filter (where event_type = 'RunCompleted'))::float8 as completed
     from exportd.journal_events where stream_type = 'run'
       and stream_id in (select id from exportd.batch_export_runs where batch_export_id = $1)`,
    [batchExportId],
  );
  const [times] = rows;
  return {
    startedAt: (times?.started ?? Number.NaN) * 1_000,
    completedAt: (times?.completed ?? Number.NaN) * 1_000,
  };
}
