import { loadavg } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { readSettings } from '../../config/settings.ts';
import { createPolicies } from '../../decisions/policies.ts';
import { createPool } from '../../journal/database.ts';
import { LaunchError } from '../../local_stack/launch_error.ts';
import type { Report } from '../../local_stack/report.ts';
import { openJournal } from '../../projections/open_journal.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createBackfillClient } from '../../temporal/clients/backfill_client.ts';
import { createExecutionLists } from '../../temporal/clients/execution_lists.ts';
import { createMaintenanceClient } from '../../temporal/clients/maintenance_client.ts';
import { createNotificationClient } from '../../temporal/clients/notification_client.ts';
import { createQueryClient } from '../../temporal/clients/query_client.ts';
import { createRunStarter } from '../../temporal/clients/run_starter.ts';
import { createScheduleClient } from '../../temporal/clients/schedule_client.ts';
import { createClient } from '../../temporal/connections.ts';
import { createReconcileLoops, type ReconcileLoops } from '../../temporal/reconcilers/reconcile_loops.ts';
import { createSignalRecovery } from '../../temporal/reconcilers/signal_recovery.ts';
import { ensureSearchAttributes } from '../../temporal/search_attributes.ts';
import { createBenchAccount } from '../bench_account.ts';
import { describeMachine } from '../describe_machine.ts';
import { createScratchStack } from '../scratch_stack.ts';
import { rounded } from '../statistics.ts';
import { createExports } from './create_exports.ts';
import type { MeasuredPass, ReconcilersBenchResult } from './result.ts';

export interface ReconcilersBenchOptions {
  readonly exports: number;
  /** How many of the exports have an active run. */
  readonly runs: number;
  readonly passes: number;
  /** Folder of the scratch servers' data, deleted afterwards. */
  readonly folder: string;
  readonly useEnvironment: boolean;
}

/** Executions of newer items are not missed: somebody may be starting them. */
const untilNotNewMs = 11_000;
/** More passes than a recovery needs. */
const maxRecoveryPasses = 100;

/**
 * Creates live exports in a scratch database, lets the reconcilers start their executions in an empty namespace, and
 * measures passes that find nothing to repair. No worker runs, so nothing else uses Temporal.
 * @throws LaunchError when a server does not start or executions stay missing. @throws the reason of an aborted signal
 */
export async function runReconcilersBench(
  { exports, runs, passes, folder, useEnvironment }: ReconcilersBenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<ReconcilersBenchResult> {
  const startedAt = new Date();
  const loadBefore = loadavg()[0] ?? 0;
  const stack = await createScratchStack(folder, { useEnvironment }, report);
  const pool = createPool(stack.databaseUrl, { max: 10 });
  const settings = readSettings({
    DATABASE_URL: stack.databaseUrl,
    TEMPORAL_ADDRESS: stack.temporal.address,
    EXPORTD_TASK_QUEUE_PREFIX: `bench-reconcilers-${startedAt.getTime()}`,
    EXPORTD_LOG_LEVEL: 'warn',
  });
  const temporal = await createClient(settings);
  try {
    const { client } = temporal;
    const journal = openJournal(pool);
    const executionLists = createExecutionLists(client, settings);
    const loops = createReconcileLoops({
      journal,
      client,
      executionLists,
      policies: createPolicies(settings),
      schedules: createScheduleClient(client, settings),
      runs: createRunStarter(client, settings),
      backfills: createBackfillClient(client, pool, settings),
      maintenance: createMaintenanceClient(client, settings),
      notifications: createNotificationClient(client, pool, settings),
      backgroundQueries: createQueryClient(client, settings),
      signalRecovery: createSignalRecovery(client, executionLists, journal),
      ensureSearchAttributes: (aborted) => ensureSearchAttributes(temporal, settings, aborted),
      logger: createLogger('bench', settings),
      settings,
    });
    const { teamId } = await createBenchAccount(pool);
    report(`Creating ${exports} exports, ${runs} of them with an active run`);
    await createExports(journal, { teamId, exports, runs, now: startedAt });
    await wait(untilNotNewMs, undefined, { signal });
    const recovery = await recover(loops, report, signal);
    const steady: MeasuredPass[] = [];
    for (let pass = 0; pass < passes; pass += 1) {
      signal.throwIfAborted();
      steady.push(await measurePass(loops));
      const { seconds, requests } = steady.at(-1) ?? { seconds: 0, requests: 0 };
      report(`Pass ${pass + 1}: ${requests} requests, ${seconds} s`);
    }
    return {
      started_at: startedAt.toISOString(),
      seconds: rounded((Date.now() - startedAt.getTime()) / 1_000),
      machine: await describeMachine(pool),
      load: { before: rounded(loadBefore), after: rounded(loadavg()[0] ?? 0) },
      exports,
      runs,
      recovery,
      steady,
    };
  } finally {
    await Promise.all([pool.end(), temporal.close()]);
    report('Deleting the scratch data');
    await stack.remove();
  }
}

/** Repeats passes until one has repaired nothing. */
async function recover(
  loops: ReconcileLoops,
  report: Report,
  signal: AbortSignal,
): Promise<ReconcilersBenchResult['recovery']> {
  let seconds = 0;
  let requests = 0;
  for (let passes = 0; passes < maxRecoveryPasses; passes += 1) {
    signal.throwIfAborted();
    const pass = await measurePass(loops);
    if (Object.values(pass.reconcilers).every(({ repaired, deferred }) => repaired + deferred === 0))
      return { seconds: rounded(seconds), requests, passes };
    seconds += pass.seconds;
    requests += pass.requests;
    report(`Recovering: ${requests} requests, ${rounded(seconds)} s`);
  }
  throw new LaunchError('Executions stay missing. See the log above.');
}

async function measurePass(loops: ReconcileLoops): Promise<MeasuredPass> {
  await loops.runOnce();
  const results = loops
    .statistics()
    .flatMap(({ name, last_pass }) => (last_pass ? [{ name, last_pass }] : []));
  return {
    seconds: rounded(results.reduce((sum, { last_pass }) => sum + last_pass.seconds, 0)),
    requests: results.reduce((sum, { last_pass }) => sum + last_pass.requests, 0),
    reconcilers: Object.fromEntries(
      results.map(({ name, last_pass }) => [name, { ...last_pass, seconds: rounded(last_pass.seconds) }]),
    ),
  };
}
