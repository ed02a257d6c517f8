import { describeExecution } from '../clients/executions.ts';
import { forEachItem, isStuck, type ReconcilerDependencies } from './reconciler.ts';

/** Starts the maintenance of the deployment when it does not run, and restarts it when it is stuck. */
export async function reconcileMaintenance(dependencies: ReconcilerDependencies): Promise<void> {
  const { client, maintenance } = dependencies;
  await forEachItem(dependencies, [maintenance.workflowId], async (workflowId) => {
    const execution = await describeExecution(client, workflowId);
    if (execution?.status !== 'RUNNING') await maintenance.start();
    else if (isStuck(execution)) await maintenance.restart();
  });
}
