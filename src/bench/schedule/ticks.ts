import { setTimeout as delay } from 'node:timers/promises';
import { policiesOf } from '../../decisions/policies.ts';
import { nominalLengthMs } from '../../domain/intervals.ts';
import { runWorkflowId, scheduleWorkflowId } from '../../contract/workflow_ids.ts';
import { rounded } from '../figures.ts';
import { averageCost } from './average_cost.ts';
import type { TicksResult } from './document.ts';
import { firstTasks } from './histories.ts';
import { settingsOf, type ScheduleBench } from './session.ts';
import { watchUse } from './stack_use.ts';
import { delaysOfRuns, dueTimes, type TickedRun } from './tick_delays.ts';
import { statementsSoFar } from './statement_count.ts';

const pollMs = 1_000;
const reportEveryMs = 15_000;
/** Time to prepare before the first tick that counts. */
const leadMs = 5_000;
/** After the last run is due, this much and as many intervals: then what has not completed is counted as such. */
const patienceMs = 600_000;
const samples = 50;

/** What is measured. */
export interface TicksOrder {
  readonly exports: number;
  readonly interval: string;
  readonly ticks: number;
  /** The setting of the workers. */
  readonly jitter: number;
  /** Told the intervals before they end, to put rows into them. */
  readonly prepare: (start: Date, end: Date) => Promise<void>;
}

/** Waits for the next ticks of all exports, which run already, and measures what becomes of them. */
export async function measureTicks(bench: ScheduleBench, order: TicksOrder): Promise<TicksResult> {
  const { stack, pool, client, environment, countsStatements, report, signal } = bench;
  const lengthMs = nominalLengthMs(order.interval);
  await untilIdle(bench);
  const firstEnd = Math.ceil((Date.now() + leadMs) / lengthMs) * lengthMs;
  const lastEnd = firstEnd + (order.ticks - 1) * lengthMs;
  await order.prepare(new Date(firstEnd - lengthMs), new Date(lastEnd));
  report(`The next tick is at ${new Date(firstEnd).toISOString()}`);
  await delay(Math.max(0, firstEnd - Date.now() - 1_000), undefined, { signal });

  const use = watchUse(stack);
  const statementsBefore = countsStatements ? await statementsSoFar(pool) : 0;
  const began = Date.now();
  const runs = await untilOver(bench, order, { firstEnd, lastEnd });
  const used = await use.end();
  const statements = countsStatements ? (await statementsSoFar(pool)) - statementsBefore : null;

  const settings = settingsOf({ ...environment, EXPORTD_JITTER_SHORT_FRACTION: String(order.jitter) });
  const dueAt = dueTimes(order.interval, policiesOf(settings).jitterMs);
  const completed = runs.filter(({ status }) => status === 'Completed');
  const taken = await firstTasks(client, runs.map(runWorkflowId));
  const keys = await stack.objectKeys();
  const sampled = runs.filter((_, index) => index % Math.ceil(runs.length / samples) === 0);
  const exportIds = [...new Set(sampled.map((run) => run.batch_export_id))];
  const ofSchedules = await averageCost(client, exportIds.map(scheduleWorkflowId), began);
  return {
    jitter: order.jitter,
    ticks: order.ticks,
    expected_runs: order.exports * order.ticks,
    completed_runs: completed.length,
    manifests: completed.filter(({ manifest_key }) => keys.has(manifest_key ?? '')).length,
    runs_with_rows: completed.filter(({ records_completed }) => records_completed > 0).length,
    ...delaysOfRuns(runs, dueAt, taken),
    run: await averageCost(client, sampled.map(runWorkflowId)),
    schedule_events_per_run: rounded(ofSchedules.events / order.ticks),
    schedule_actions_per_run: rounded(ofSchedules.actions / order.ticks),
    statements_per_run: statements === null ? null : rounded(statements / runs.length),
    use: used,
  };
}

/** Waits until the runs of earlier ticks are over, so that all start from rest; no longer than they take by themselves. */
async function untilIdle({ pool, report, signal }: ScheduleBench): Promise<void> {
  const deadline = performance.now() + patienceMs;
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

async function untilOver(
  { pool, report, signal }: ScheduleBench,
  order: TicksOrder,
  { firstEnd, lastEnd }: { readonly firstEnd: number; readonly lastEnd: number },
): Promise<TickedRun[]> {
  const lengthMs = nominalLengthMs(order.interval);
  const deadline = lastEnd + order.jitter * lengthMs + order.ticks * lengthMs + patienceMs;
  const expected = order.exports * order.ticks;
  let reported = performance.now();
  for (;;) {
    const { rows } = await pool.query<TickedRun>(
      `select id, batch_export_id, data_interval_start, data_interval_end, status, manifest_key, records_completed,
         created_at, finished_at from exportd.batch_export_runs
       where backfill_id is null and retry_number = 0 and data_interval_end between $1 and $2`,
      [new Date(firstEnd), new Date(lastEnd)],
    );
    const over = rows.filter(({ finished_at }) => finished_at !== null).length;
    if (over === expected || Date.now() > deadline) return rows;
    if (performance.now() - reported > reportEveryMs) {
      reported = performance.now();
      report(`Of ${String(expected)} runs ${String(rows.length)} were opened and ${String(over)} are over`);
    }
    await delay(pollMs, undefined, { signal });
  }
}
