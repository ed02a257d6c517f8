import { setTimeout as delay } from 'node:timers/promises';
import type { ApiClient } from '../local_stack/demo/api_client.ts';
import { readManifestFiles } from '../local_stack/demo/demo_bucket.ts';
import { LaunchError } from '../local_stack/launch_error.ts';
import type { StackEnvironment } from '../local_stack/stack_file.ts';
import type { Pool } from '../journal/database.ts';
import { destinationFor } from './formats.ts';
import { cpuSecondsOf, memoryOf, resetPeakMemory } from './process_usage.ts';
import type { ScratchStack } from './scratch_stack.ts';
import type { MeasuredProgram } from './statistics.ts';
import { verifyRun, type VerifyDepth } from './verify_run.ts';
import { s3RequestsOf } from './worker_requests.ts';

/** An export of the interval by a newly started worker. */
export interface MeasuredRun extends MeasuredProgram {
  readonly seconds_from_command: number;
  readonly rows: number;
  readonly idle_memory_bytes: number | null;
}

/** The export to measure. */
export interface ExportRequest {
  readonly format: string;
  readonly interval: { readonly start: string; readonly end: string };
  /** How the export is verified afterwards; not at all if undefined. */
  readonly verify: VerifyDepth | undefined;
}

interface RunResponse {
  readonly id: string;
  readonly status: string;
  readonly latest_error: string | null;
  readonly manifest_key: string | null;
}

const pollMs = 200;
const active = new Set(['Starting', 'Running', 'ContinuedAsNew']);

/** A running worker and its clients. */
export interface Session {
  readonly stack: ScratchStack;
  readonly pool: Pool;
  readonly client: ApiClient;
  readonly environment: StackEnvironment;
  readonly workerPid: number;
  readonly workerHttpPort: number;
  readonly signal: AbortSignal;
}

/** Exports the interval once, with a new export that is deleted afterwards. */
export async function exportOnce(session: Session, request: ExportRequest): Promise<MeasuredRun> {
  const { client, pool, environment } = session;
  const id = await createExport(session, request);
  const measured = await measureExport(session, id, request);
  if (request.verify) await verifyRun(pool, environment, id, request.interval, request.verify);
  await client.request('DELETE', `${id}/`);
  return measured;
}

async function createExport({ client, stack }: Session, { format }: ExportRequest): Promise<string> {
  const created = await client.request<{ id: string }>('POST', '', {
    name: `Bench ${format}`,
    model: 'events',
    interval: 'hour',
    paused: true,
    destination: destinationFor(format, stack),
  });
  return created?.id ?? '';
}

async function measureExport(
  session: Session,
  id: string,
  { interval }: ExportRequest,
): Promise<MeasuredRun> {
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
