import { setTimeout as delay } from 'node:timers/promises';
import { createChildren, lastLines } from '../local_stack/children.ts';
import { createApiClient, type ApiClient } from '../local_stack/demo/api_client.ts';
import { filesOf } from '../local_stack/demo/objects.ts';
import { startExportd } from '../local_stack/exportd_processes.ts';
import { LaunchError } from '../local_stack/launch_error.ts';
import type { Pool } from '../journal/database.ts';
import type { BenchAccount } from './account.ts';
import { exportdEnvironment, profilingOptions } from './exportd_environment.ts';
import type { Measurement } from './figures.ts';
import { destinationFor } from './formats.ts';
import { cpuSecondsOf, memoryOf, resetPeakMemory } from './process_figures.ts';
import type { ScratchStack } from './scratch_stack.ts';

/** One export of the interval by a worker that was started for it. */
export interface MeasuredRun extends Measurement {
  readonly seconds_from_command: number;
  readonly rows: number;
  readonly bytes: number;
  readonly idle_memory_bytes: number | null;
  readonly peak_memory_bytes: number | null;
}

/** What is exported, and as whom. */
export interface RunOrder {
  readonly format: string;
  readonly account: BenchAccount;
  readonly interval: { readonly start: string; readonly end: string };
  /** Whether the worker exports the interval once before, so that what is compiled and connected first is not measured. */
  readonly warm: boolean;
  /** Where the worker's CPU profiles go; none are made without it. */
  readonly profileFolder?: string | undefined;
}

interface ShownRun {
  readonly id: string;
  readonly status: string;
  readonly latest_error: string | null;
  readonly manifest_key: string | null;
}

const pollMs = 200;
const active = new Set(['Starting', 'Running', 'ContinuedAsNew']);

/**
 * Starts server and worker as anybody would, exports the interval once by a backfill of it, and stops them again: every
 * measurement has a fresh worker, whose memory and caches no other format has touched.
 * @throws LaunchError when the run does not complete
 */
export async function measureRun(
  stack: ScratchStack,
  pool: Pool,
  order: RunOrder,
  signal: AbortSignal,
): Promise<MeasuredRun> {
  const { folder } = stack;
  const { baseUrl, environment } = await exportdEnvironment(stack, order.format);
  const children = createChildren(folder);
  const kill = () => children.killAll();
  process.once('exit', kill);
  try {
    const { worker } = await startExportd(children, environment, baseUrl, {
      workerNodeOptions: profilingOptions(order.profileFolder),
    });
    const { teamId, apiKey } = order.account;
    const client = createApiClient(baseUrl, teamId, apiKey);
    const session = { stack, pool, client, workerPid: worker.pid, signal };
    const ended = worker.exited.then((how) => {
      throw new LaunchError(`The worker ${how}. The end of its log:\n${lastLines(worker.logFile)}`);
    });
    ended.catch(() => undefined);
    if (order.warm) {
      await Promise.race([exportOnce(session, order), ended]);
      await stack.emptyBucket();
    }
    return await Promise.race([exportOnce(session, order), ended]);
  } finally {
    await children.stopAll();
    process.off('exit', kill);
  }
}

/** A worker that runs, and how to reach it. */
interface Session {
  readonly stack: ScratchStack;
  readonly pool: Pool;
  readonly client: ApiClient;
  readonly workerPid: number;
  readonly signal: AbortSignal;
}

/** Exports the interval once, by an export that is made for it and deleted afterwards. */
async function exportOnce(session: Session, { format, interval }: RunOrder): Promise<MeasuredRun> {
  const { stack, pool, client, workerPid, signal } = session;
  const created = await client.request<{ id: string }>('POST', '', {
    name: `Bench ${format}`,
    model: 'events',
    interval: 'hour',
    paused: true,
    destination: destinationFor(format, stack),
  });
  const id = created?.id ?? '';
  const idle = memoryOf(workerPid);
  resetPeakMemory(workerPid);
  const cpuBefore = cpuSecondsOf(workerPid);
  const commandAt = Date.now();
  await client.request('POST', `${id}/backfill/`, { start_at: interval.start, end_at: interval.end });
  const run = await untilOver(client, id, signal);
  const peak = memoryOf(workerPid);
  const cpuAfter = cpuSecondsOf(workerPid);
  if (run.status !== 'Completed' || run.manifest_key === null)
    throw new LaunchError(`The run ended ${run.status}: ${run.latest_error ?? 'it does not say why'}`);
  const files = await filesOf(stack.objectStore, stack.bucket, run.manifest_key);
  const { beganAt, completedAt } = await timesOf(pool, id);
  await client.request('DELETE', `${id}/`);
  return {
    seconds: (completedAt - beganAt) / 1_000,
    seconds_from_command: (completedAt - commandAt) / 1_000,
    cpu_seconds: (cpuAfter ?? Number.NaN) - (cpuBefore ?? Number.NaN),
    rows: files.reduce((sum, file) => sum + file.rows, 0),
    bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    idle_memory_bytes: idle?.resident ?? null,
    peak_memory_bytes: peak?.peak ?? null,
  };
}

async function untilOver(client: ApiClient, id: string, signal: AbortSignal): Promise<ShownRun> {
  for (;;) {
    signal.throwIfAborted();
    const page = await client.request<{ results: ShownRun[] }>('GET', `${id}/runs/?limit=1`);
    const [run] = page?.results ?? [];
    if (run !== undefined && !active.has(run.status)) return run;
    await delay(pollMs);
  }
}

/** When the export's first run became Running and its last one was Completed, by the journal; milliseconds. */
async function timesOf(pool: Pool, batchExportId: string): Promise<{ beganAt: number; completedAt: number }> {
  const { rows } = await pool.query<{ began: number; completed: number }>(
    `select extract(epoch from min(recorded_at) filter (where event_type = 'RunExportBegan'))::float8 as began,
       extract(epoch from max(recorded_at) filter (where event_type = 'RunCompleted'))::float8 as completed
     from exportd.journal_events where stream_type = 'run'
       and stream_id in (select id from exportd.batch_export_runs where batch_export_id = $1)`,
    [batchExportId],
  );
  const [times] = rows;
  return {
    beganAt: (times?.began ?? Number.NaN) * 1_000,
    completedAt: (times?.completed ?? Number.NaN) * 1_000,
  };
}
