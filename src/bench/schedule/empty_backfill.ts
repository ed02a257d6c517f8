import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { createApiClient } from '../../local_stack/demo/api_client.ts';
import { LaunchError } from '../../local_stack/launch_error.ts';
import { workflowIds } from '../../contract/workflow_ids.ts';
import type { BenchAccount } from '../bench_account.ts';
import { medianOf, rounded } from '../statistics.ts';
import { startOfHour } from '../start_of_hour.ts';
import type { BackfillResult, NoopResult } from './result.ts';
import { averageCost, type SampledRun } from './average_cost.ts';
import { createExport } from './create_exports.ts';
import { costOf, executionsOf, readEvents } from './histories.ts';
import { settingsOf, type ScheduleBench } from './with_exportd.ts';
import { watchUsage } from './stack_usage.ts';
import { statementsSoFar } from './statement_count.ts';

const hourMs = 3_600_000;
const pollMs = 250;
const reportEveryMs = 10_000;

/** A backfill without its comparison with no-op workflows. */
export type MeasuredBackfill = Omit<BackfillResult, 'ratio_to_noop' | 'ratio_to_noop_at_same_concurrency'>;

/**
 * Backfills empty hours of a paused export.
 * @throws LaunchError when one of its runs does not complete
 */
export async function measureEmptyBackfill(
  bench: ScheduleBench,
  account: BenchAccount,
  intervals: number,
): Promise<MeasuredBackfill> {
  const { stack, pool, client, baseUrl, environment, countsStatements } = bench;
  const api = createApiClient(baseUrl, account.teamId, account.apiKey);
  const exportId = await createExport(stack, api, { name: 'backfill', interval: 'hour', paused: true });
  const end = startOfHour();
  const usage = watchUsage(stack);
  const statementsBefore = countsStatements ? await statementsSoFar(pool) : 0;
  const startedAt = Date.now();
  await api.request('POST', `${exportId}/backfill/`, {
    start_at: new Date(end - intervals * hourMs).toISOString(),
    end_at: new Date(end).toISOString(),
  });
  const { id, finishedAt, stateBytes } = await waitUntilFinished(bench, exportId, intervals);
  const used = await usage.end();
  const statements = countsStatements ? (await statementsSoFar(pool)) - statementsBefore : null;
  const seconds = (finishedAt - startedAt) / 1_000;
  const { rows: sample } = await pool.query<SampledRun>(
    `select batch_export_id, data_interval_start, data_interval_end from exportd.batch_export_runs
     where backfill_id = $1 order by md5(id::text) limit 50`,
    [id],
  );
  const ids = workflowIds(settingsOf(environment));
  const backfillTotal = await backfillCost(client, ids.backfill(id));
  return {
    intervals,
    concurrency: settingsOf(environment).EXPORTD_BACKFILL_CONCURRENCY,
    seconds: rounded(seconds),
    runs_per_second: rounded(intervals / seconds),
    run: await averageCost(client, sample.map(ids.run)),
    backfill_events_per_run: rounded(backfillTotal.events / intervals),
    backfill_actions_per_run: rounded(backfillTotal.actions / intervals),
    statements_per_run: statements === null ? null : rounded(statements / intervals),
    backfill_state_bytes: stateBytes,
    usage: used,
  };
}

async function waitUntilFinished(
  { pool, report, signal }: ScheduleBench,
  exportId: string,
  intervals: number,
): Promise<{ id: string; finishedAt: number; stateBytes: number }> {
  let stateBytes = 0;
  let reported = performance.now();
  for (;;) {
    signal.throwIfAborted();
    const { rows } = await pool.query<{
      id: string;
      finished_at: string | null;
      state_bytes: number;
      done: number;
      failed: number;
    }>(
      `select backfill.id, backfill.finished_at, octet_length(stream.state::text) as state_bytes,
         (select count(*) from exportd.batch_export_runs run
          where run.backfill_id = backfill.id and run.status = 'Completed') as done,
         (select count(*) from exportd.batch_export_runs run where run.backfill_id = backfill.id
            and run.status not in ('Starting', 'Running', 'Completed')) as failed
       from exportd.backfills backfill
       join exportd.stream_states stream on stream.stream_type = 'backfill' and stream.stream_id = backfill.id
       where backfill.batch_export_id = $1`,
      [exportId],
    );
    const [found] = rows;
    if (found) {
      stateBytes = Math.max(stateBytes, found.state_bytes);
      if (found.failed > 0)
        throw new LaunchError(`${String(found.failed)} runs of the backfill did not complete.`);
      if (found.finished_at !== null)
        return { id: found.id, finishedAt: Date.parse(found.finished_at), stateBytes };
      if (performance.now() - reported > reportEveryMs) {
        reported = performance.now();
        report(`Backfilled ${String(found.done)} of ${String(intervals)} intervals`);
      }
    }
    await delay(pollMs);
  }
}

async function backfillCost(client: Client, workflowId: string) {
  let [events, actions] = [0, 0];
  for (const execution of await executionsOf(client, workflowId)) {
    const cost = costOf(await readEvents(client, execution));
    events += cost.events;
    actions += cost.actions;
  }
  return { events, actions };
}

/** Compares the backfill with the no-op workflows of the same benchmark. */
export function compareWithNoop(backfill: MeasuredBackfill, noop: readonly NoopResult[]): BackfillResult {
  const rateOf = (of: readonly NoopResult[]) => medianOf(of.map(({ per_second }) => per_second));
  const maxConcurrency = Math.max(...noop.map(({ concurrency }) => concurrency));
  const rate = backfill.runs_per_second;
  return {
    ...backfill,
    ratio_to_noop: rounded(rate / rateOf(noop.filter(({ concurrency }) => concurrency === maxConcurrency))),
    ratio_to_noop_at_same_concurrency: rounded(
      rate / rateOf(noop.filter(({ concurrency }) => concurrency === backfill.concurrency)),
    ),
  };
}
