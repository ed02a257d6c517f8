import { workflowIds } from '../../contract/workflow_ids.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { readStartableRun } from '../../decisions/startable_runs.ts';
import { deterministicId } from '../../journal/journal.ts';
import { describeExecution, isExecutionOf, runIdOf, runningExecutions } from '../clients/executions.ts';
import { endedRuns } from './expected_executions.ts';
import { forEachItem, isStuck, type ReconcilerDependencies } from './reconciler.ts';

/** Ends executions of runs with a terminal status: their cancellation was lost, or they are stuck. */
export async function cancelOrphanedExecutions(dependencies: ReconcilerDependencies): Promise<void> {
  const { journal, client, runs, settings } = dependencies;
  const running: string[] = [];
  for await (const { memo } of runningExecutions(client, settings, workflowTypes.run)) {
    const runId = runIdOf(memo);
    if (runId !== undefined) running.push(runId, deterministicId('continue', runId));
  }
  await forEachItem(dependencies, await endedRuns(journal.pool, running), async (id) => {
    const run = await readStartableRun(journal.pool, id);
    if (!run) return;
    const workflowId = workflowIds(settings).run(run);
    const execution = await describeExecution(client, workflowId);
    if (!execution || !isExecutionOf(run, execution) || !isStuck(execution)) await runs.cancel(run);
    else
      await client.workflow
        .getHandle(workflowId, execution.temporal_run_id)
        .terminate('The run has ended, and its workflow is stuck.');
  });
}
