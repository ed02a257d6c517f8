import { workflowIds } from '../../contract/workflow_ids.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { renewTimeLimits } from '../../failures/operator_faults.ts';
import { endRun } from '../../decisions/run_outcomes.ts';
import { readStartableRun, type StartableRun } from '../../decisions/startable_runs.ts';
import { isExecutionOf, type Execution } from '../clients/executions.ts';
import { checkExecutions, isStuck, replacementReason } from './check_executions.ts';
import { activeRuns, isActiveRun } from './expected_executions.ts';
import type { Pass } from './pass.ts';
import type { ReconcilerDependencies } from './reconciler.ts';

/** Records ends of runs that only Temporal knows of, starts missing executions, and restarts stuck ones. */
export async function reconcileRuns(dependencies: ReconcilerDependencies, pass: Pass): Promise<void> {
  const { journal, settings } = dependencies;
  await checkExecutions(dependencies, pass, {
    workflowType: workflowTypes.run,
    expected: (await activeRuns(journal.pool, settings.EXPORTD_RECONCILE_INTERVAL)).map((run) => ({
      ...run,
      workflow_id: workflowIds(settings).run(run),
    })),
    // An execution of another run of the same interval has the same workflow id.
    isOf: ({ id }, execution) => isExecutionOf({ run_id: id }, execution),
    repair: ({ id }, latest) => repairRun(dependencies, id, latest),
  });
}

async function repairRun(
  dependencies: ReconcilerDependencies,
  runId: string,
  latest: Execution | undefined,
): Promise<boolean> {
  const { journal, runs, logger } = dependencies;
  const execution = latest && isExecutionOf({ run_id: runId }, latest) ? latest : undefined;
  if (execution?.status === 'RUNNING' && !isStuck(execution)) return false;
  const run = await readStartableRun(journal.pool, runId);
  if (!run) return false;
  if (execution?.status === 'TERMINATED') {
    await end(dependencies, run, 'Terminated', 'Terminated in Temporal.');
  } else if (execution?.status === 'TIMED_OUT') {
    if (await renewTimeLimits(journal.pool, runId, execution.temporal_run_id))
      await runs.start(run, 'it waited for the operator for longer than its time limit.');
    else await end(dependencies, run, 'TimedOut', 'The run exceeded its timeout.');
  } else if (execution?.status === 'CANCELLED') {
    await end(dependencies, run, 'Cancelled', 'Cancelled in Temporal.');
  } else if (execution?.status === 'RUNNING') {
    logger.warn({ run_id: runId }, "Restarting a run's workflow, which is stuck.");
    await runs.restart(run, replacementReason(execution));
  } else if (await isActiveRun(journal.pool, runId)) {
    // Still active after the description, so its execution is missing: Temporal knows none, or the interval's latest
    // execution is that of another run.
    if (execution)
      logger.warn(
        { run_id: runId, status: execution.status },
        'Starting a run again, whose workflow ended without recording an outcome.',
      );
    await runs.start(run, replacementReason(execution));
  } else return false;
  return true;
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
