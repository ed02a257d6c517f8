import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { createPolicies, type Policies } from '../../../src/decisions/policies.ts';
import { configRules } from '../../../src/temporal/capabilities.ts';
import { workflowIds } from '../../../src/contract/workflow_inputs.ts';
import { nominalLengthMs } from '../../../src/domain/intervals.ts';
import type { Deployment } from '../exportd.ts';
import { averageCost, firstTasks } from '../histories.ts';
import { rounded } from '../results.ts';
import type { Scratch } from '../scratch.ts';

/** What the control plane is measured on. */
export interface ScheduleBench extends Scratch {
  readonly client: Client;
  readonly deployment: Deployment;
}

const pollMs = 1_000;
const reportEveryMs = 15_000;
/** Minimum time before the first measured tick. */
const leadMs = 5_000;
/** The timeout after the last run is due, in addition to one interval per tick. */
const timeoutMs = 600_000;
const samples = 50;

/** The ticks to measure. */
interface TicksRequest {
  readonly exports: number;
  readonly interval: string;
  readonly ticks: number;
  /** Jitter of the workers, as a fraction of the interval. */
  readonly jitter: number;
  /** Inserts rows into the intervals before they end. */
  readonly prepare: (start: Date, end: Date) => Promise<void>;
}

/** How the ticks went. An interval is due at its end plus its jitter. */
export type TicksResult = Awaited<ReturnType<typeof measureTicks>>;

/** Waits for the next ticks of the existing exports and measures their runs. */
export async function measureTicks(bench: ScheduleBench, request: TicksRequest) {
  const { stack, client, report, signal } = bench;
  const lengthMs = nominalLengthMs(request.interval);
  await waitUntilIdle(bench);
  const firstEnd = Math.ceil((Date.now() + leadMs) / lengthMs) * lengthMs;
  const lastEnd = firstEnd + (request.ticks - 1) * lengthMs;
  await request.prepare(new Date(firstEnd - lengthMs), new Date(lastEnd));
  report(`The next tick is at ${new Date(firstEnd).toISOString()}`);
  await delay(Math.max(0, firstEnd - Date.now() - 1_000), undefined, { signal });

  const startedAt = Date.now();
  const runs = await waitUntilFinished(bench, request, { firstEnd, lastEnd });

  const { settings } = bench.deployment;
  const dueAt = dueTimes(request.interval, createPolicies(settings, configRules).jitterMs);
  const completed = runs.filter(({ status }) => status === 'Completed');
  const ids = workflowIds(settings);
  const startTimes = await firstTasks(client, runs.map(ids.run));
  const keys = await stack.objectKeys();
  const sampled = runs.filter((_, index) => index % Math.ceil(runs.length / samples) === 0);
  const exportIds = [...new Set(sampled.map((run) => run.batch_export_id))];
  const ofSchedules = await averageCost(client, exportIds.map(ids.schedule), startedAt);
  return {
    jitter: request.jitter,
    ticks: request.ticks,
    expected_runs: request.exports * request.ticks,
    completed_runs: completed.length,
    /** Runs whose manifest is in the bucket. */
    manifests: completed.filter(({ manifest_key }) => keys.has(manifest_key ?? '')).length,
    runs_with_rows: completed.filter(({ records_completed }) => records_completed > 0).length,
    ...delaysOfRuns(runs, dueAt, (run) => startTimes.get(ids.run(run))),
    run: await averageCost(client, sampled.map(ids.run)),
    /** Of the schedule's workflow, per tick. */
    schedule_events_per_run: rounded(ofSchedules.events / request.ticks),
    schedule_actions_per_run: rounded(ofSchedules.actions / request.ticks),
  };
}

/** Waits until the runs of earlier ticks have finished, within the timeout. */
async function waitUntilIdle({ pool, report, signal }: ScheduleBench): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  let reported = performance.now();
  for (;;) {
    const { rows } = await pool.query<{ active: number }>(
      `select count(*) as active from exportd.batch_export_runs where status in ('Starting', 'Running')`,
    );
    const active = rows[0]?.active ?? 0;
    if (active === 0 || performance.now() > deadline) return;
    if (performance.now() - reported > reportEveryMs) {
      reported = performance.now();
      report(`Waiting for ${String(active)} runs of an earlier tick`);
    }
    await delay(pollMs, undefined, { signal });
  }
}

async function waitUntilFinished(
  { pool, report, signal }: ScheduleBench,
  request: TicksRequest,
  { firstEnd, lastEnd }: { readonly firstEnd: number; readonly lastEnd: number },
): Promise<TickedRun[]> {
  const lengthMs = nominalLengthMs(request.interval);
  const deadline = lastEnd + request.jitter * lengthMs + request.ticks * lengthMs + timeoutMs;
  const expected = request.exports * request.ticks;
  let reported = performance.now();
  for (;;) {
    const { rows } = await pool.query<TickedRun>(
      `select id, batch_export_id, data_interval_start, data_interval_end, status, manifest_key, records_completed,
         created_at, finished_at from exportd.batch_export_runs
       where backfill_id is null and retry_number = 0 and data_interval_end between $1 and $2`,
      [new Date(firstEnd), new Date(lastEnd)],
    );
    const finished = rows.filter(({ finished_at }) => finished_at !== null).length;
    if (finished === expected || Date.now() > deadline) return rows;
    if (performance.now() - reported > reportEveryMs) {
      reported = performance.now();
      report(`${String(rows.length)} of ${String(expected)} runs created, ${String(finished)} finished`);
    }
    await delay(pollMs, undefined, { signal });
  }
}

/** A run of a tick, from the read model. */
export interface TickedRun {
  readonly id: string;
  readonly batch_export_id: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly status: string;
  readonly manifest_key: string | null;
  readonly records_completed: number;
  /** Time of the event that created the run. */
  readonly created_at: string;
  readonly finished_at: string | null;
}

/** When a run is due: the end of its interval plus its jitter, in milliseconds. */
export const dueTimes =
  (interval: string, jitterMs: Policies['jitterMs']) =>
  (run: TickedRun): number =>
    Date.parse(run.data_interval_end) +
    jitterMs(run.batch_export_id, interval, { start: run.data_interval_start, end: run.data_interval_end });

/**
 * The delays of runs: until the event that created the run, the first workflow task of its execution, and Completed.
 * `firstTaskOf` returns the start time of a run's first workflow task.
 */
export function delaysOfRuns(
  runs: readonly TickedRun[],
  dueAt: (run: TickedRun) => number,
  firstTaskOf: (run: TickedRun) => number | undefined,
) {
  const after = (time: (run: TickedRun) => number | undefined) =>
    delaysOf(
      runs.flatMap((run) => {
        const at = time(run);
        return at === undefined ? [] : [at - dueAt(run)];
      }),
    );
  return {
    due_to_created: after(({ created_at }) => Date.parse(created_at)),
    due_to_first_task: after(firstTaskOf),
    due_to_completed: after(({ status, finished_at }) =>
      status === 'Completed' && finished_at !== null ? Date.parse(finished_at) : undefined,
    ),
  };
}

/** Distribution of a delay in seconds; null without measurements. */
export interface Delays {
  readonly count: number;
  readonly p50: number | null;
  readonly p99: number | null;
  readonly maximum: number | null;
}

/**
 * The smallest value that is not exceeded by at least this share of the values.
 * @throws RangeError without values
 */
export function percentileOf(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (value === undefined) throw new RangeError('The percentile of no values is undefined.');
  return value;
}

/** Delays in seconds. They come from several clocks, so one may be slightly negative. */
export function delaysOf(milliseconds: readonly number[]): Delays {
  const count = milliseconds.length;
  if (count === 0) return { count, p50: null, p99: null, maximum: null };
  const seconds = (share: number) => rounded(percentileOf(milliseconds, share) / 1_000);
  return { count, p50: seconds(0.5), p99: seconds(0.99), maximum: seconds(1) };
}
