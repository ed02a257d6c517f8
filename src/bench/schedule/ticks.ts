import { setTimeout as delay } from 'node:timers/promises';
import { createPolicies } from '../../decisions/policies.ts';
import { nominalLengthMs } from '../../domain/intervals.ts';
import { workflowIds } from '../../contract/workflow_ids.ts';
import { rounded } from '../statistics.ts';
import { averageCost } from './average_cost.ts';
import type { TicksResult } from './result.ts';
import { firstTasks } from './histories.ts';
import { settingsOf, type ScheduleBench } from './with_exportd.ts';
import { watchUsage } from './stack_usage.ts';
import { delaysOfRuns, dueTimes, type TickedRun } from './tick_delays.ts';
import { statementsSoFar } from './statement_count.ts';

const pollMs = 1_000;
const reportEveryMs = 15_000;
/** Minimum time before the first measured tick. */
const leadMs = 5_000;
/** The timeout after the last run is due, in addition to one interval per tick. */
const timeoutMs = 600_000;
const samples = 50;

/** The ticks to measure. */
export interface TicksRequest {
  readonly exports: number;
  readonly interval: string;
  readonly ticks: number;
  /** Jitter of the workers, as a fraction of the interval. */
  readonly jitter: number;
  /** Inserts rows into the intervals before they end. */
  readonly prepare: (start: Date, end: Date) => Promise<void>;
}

/** Waits for the next ticks of the existing exports and measures their runs. */
export async function measureTicks(bench: ScheduleBench, request: TicksRequest): Promise<TicksResult> {
  const { stack, pool, client, environment, countsStatements, report, signal } = bench;
  const lengthMs = nominalLengthMs(request.interval);
  await waitUntilIdle(bench);
  const firstEnd = Math.ceil((Date.now() + leadMs) / lengthMs) * lengthMs;
  const lastEnd = firstEnd + (request.ticks - 1) * lengthMs;
  await request.prepare(new Date(firstEnd - lengthMs), new Date(lastEnd));
  report(`The next tick is at ${new Date(firstEnd).toISOString()}`);
  await delay(Math.max(0, firstEnd - Date.now() - 1_000), undefined, { signal });

  const usage = watchUsage(stack);
  const statementsBefore = countsStatements ? await statementsSoFar(pool) : 0;
  const startedAt = Date.now();
  const runs = await waitUntilFinished(bench, request, { firstEnd, lastEnd });
  const used = await usage.end();
  const statements = countsStatements ? (await statementsSoFar(pool)) - statementsBefore : null;

  const settings = settingsOf({ ...environment, EXPORTD_JITTER_SHORT_FRACTION: String(request.jitter) });
  const dueAt = dueTimes(request.interval, createPolicies(settings).jitterMs);
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
    manifests: completed.filter(({ manifest_key }) => keys.has(manifest_key ?? '')).length,
    runs_with_rows: completed.filter(({ records_completed }) => records_completed > 0).length,
    ...delaysOfRuns(runs, dueAt, (run) => startTimes.get(ids.run(run))),
    run: await averageCost(client, sampled.map(ids.run)),
    schedule_events_per_run: rounded(ofSchedules.events / request.ticks),
    schedule_actions_per_run: rounded(ofSchedules.actions / request.ticks),
    statements_per_run: statements === null ? null : rounded(statements / runs.length),
    usage: used,
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
