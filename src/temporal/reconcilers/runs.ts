import { workflowIds } from '../../contract/workflow_ids.ts';
import { endRun } from '../../decisions/run_outcomes.ts';
import { readStartableRun, type StartableRun } from '../../decisions/startable_runs.ts';
import { describeExecution, isExecutionOf } from '../clients/executions.ts';
import { activeRuns, isActiveRun } from './expected_executions.ts';
import { forEachItem, isStuck, type ReconcilerDependencies } from './reconciler.ts';

/** Records ends of runs that only Temporal knows of, starts missing executions, and restarts stuck ones. */
export async function reconcileRuns(dependencies: ReconcilerDependencies): Promise<void> {
  const runIds = await activeRuns(dependencies.journal.pool);
  await forEachItem(dependencies, runIds, (runId) => reconcileRun(dependencies, runId));
}

async function reconcileRun(dependencies: ReconcilerDependencies, runId: string): Promise<void> {
  const { journal, client, runs, logger, settings } = dependencies;
  const run = await readStartableRun(journal.pool, runId);
  if (!run) return;
  const latest = await describeExecution(client, workflowIds(settings).run(run));
  const execution = latest && isExecutionOf(run, latest) ? latest : undefined;
  if (execution?.status === 'TERMINATED') {
    await end(dependencies, run, 'Terminated', 'Terminated in Temporal.');
  } else if (execution?.status === 'TIMED_OUT') {
    await end(dependencies, run, 'TimedOut', 'The run exceeded its timeout.');
  } else if (execution?.status === 'CANCELLED') {
    await end(dependencies, run, 'Cancelled', 'Cancelled in Temporal.');
  } else if (execution?.status === 'RUNNING') {
    if (!isStuck(execution)) return;
    logger.warn({ run_id: runId }, "Restarting a run's workflow, which is stuck.");
    await runs.restart(run);
  } else if (await isActiveRun(journal.pool, runId)) {
    // Still active after the description, so its execution is missing: Temporal knows none, or the interval's latest
    // execution is that of another run.
    if (execution)
      logger.warn(
        { run_id: runId, status: execution.status },
        'Starting a run again, whose workflow ended without recording an outcome.',
      );
    await runs.start(run);
  }
}

/** Records an outcome that only Temporal knew of, and wakes the workflows that wait for it. */
async function end(
  { journal, policies, schedules, backfills }: ReconcilerDependencies,
  run: StartableRun,
  status: 'Terminated' | 'TimedOut' | 'Cancelled',
  latestError: string,
): Promise<void> {
  await endRun(journal, policies, run.run_id, { status, latest_error: latestError });
  await schedules.start(run.batch_export_id);
  if (run.backfill_id !== null) await backfills.start(run.backfill_id);
}
