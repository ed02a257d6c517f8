import { workflowIds } from '../../contract/workflow_ids.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { readStartableRun } from '../../decisions/startable_runs.ts';
import { deterministicId } from '../../journal/journal.ts';
import { describeExecution, isExecutionOf } from '../clients/executions.ts';
import { isStuck } from './check_executions.ts';
import { endedRuns } from './expected_executions.ts';
import type { Pass } from './pass.ts';
import type { ReconcilerDependencies } from './reconciler.ts';

/** Ends executions of runs with a terminal status: their cancellation was lost, or they are stuck. */
export async function cancelOrphanedExecutions(
  dependencies: ReconcilerDependencies,
  pass: Pass,
): Promise<void> {
  const { journal, executionLists } = dependencies;
  const listed = (await executionLists.running(workflowTypes.run)).flatMap(({ run_id }) => run_id ?? []);
  const runIds = listed.flatMap((id) => [id, deterministicId('continue', id)]);
  await pass.forEachItem(
    await endedRuns(journal.pool, runIds),
    (id) => id,
    (id) => endExecution(dependencies, pass, id),
  );
}

async function endExecution(
  { journal, client, runs, settings }: ReconcilerDependencies,
  pass: Pass,
  runId: string,
): Promise<boolean> {
  const run = await readStartableRun(journal.pool, runId);
  if (!run) return false;
  const workflowId = workflowIds(settings).run(run);
  const execution = await describeExecution(client, workflowId);
  pass.counts.described += 1;
  if (execution?.status !== 'RUNNING' || !isExecutionOf(run, execution)) return false;
  if (!isStuck(execution)) {
    await runs.cancel(run);
    return true;
  }
  pass.counts.stuck += 1;
  await client.workflow
    .getHandle(workflowId, execution.temporal_run_id)
    .terminate('The run has ended, and its workflow is stuck.');
  return true;
}
