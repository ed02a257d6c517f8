import { setTimeout as wait } from 'node:timers/promises';
import { readSettings } from '../../config/settings.ts';
import { createPolicies } from '../../decisions/policies.ts';
import { LaunchError } from '../../local_stack/launch_error.ts';
import type { Report } from '../../local_stack/report.ts';
import { openJournal } from '../../projections/open_journal.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createWorkflowClients } from '../../temporal/clients/workflow_clients.ts';
import { createExecutionLists } from '../../temporal/clients/execution_lists.ts';
import { createClient } from '../../temporal/connections.ts';
import { createReconcileLoops, type ReconcileLoops } from '../../temporal/reconcilers/reconcile_loops.ts';
import { createSignalRecovery } from '../../temporal/reconcilers/signal_recovery.ts';
import { ensureSearchAttributes } from '../../temporal/search_attributes.ts';
import { createBenchAccount } from '../bench_account.ts';
import { measureOnScratch, type ScratchOptions } from '../measure_on_scratch.ts';
import { rounded } from '../statistics.ts';
import { createExports } from './create_exports.ts';
import type { MeasuredPass, ReconcilersBenchResult } from './result.ts';

export interface ReconcilersBenchOptions extends ScratchOptions {
  readonly exports: number;
  /** How many of the exports have an active run. */
  readonly runs: number;
  readonly passes: number;
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
  options: ReconcilersBenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<ReconcilersBenchResult> {
  const { exports, runs, passes } = options;
  return measureOnScratch(options, report, async ({ stack, pool, startedAt }) => {
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
        ...createWorkflowClients(client, pool, settings),
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
        exports,
        runs,
        recovery,
        steady,
      };
    } finally {
      await temporal.close();
    }
  });
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
