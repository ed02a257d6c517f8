import { describeExecution } from '../clients/executions.ts';
import { isStuck } from './check_executions.ts';
import type { Pass } from './pass.ts';
import type { ReconcilerDependencies } from './reconciler.ts';

/** Starts the maintenance of the deployment when it does not run, and restarts it when it is stuck. */
export async function reconcileMaintenance(
  { client, maintenance }: ReconcilerDependencies,
  pass: Pass,
): Promise<void> {
  pass.counts.expected += 1;
  await pass.forEachItem(
    [maintenance.workflowId],
    (workflowId) => workflowId,
    async (workflowId) => {
      const execution = await describeExecution(client, workflowId);
      pass.counts.described += 1;
      if (execution?.status !== 'RUNNING') await maintenance.start();
      else if (isStuck(execution)) await maintenance.restart();
      else return false;
      return true;
    },
  );
}
