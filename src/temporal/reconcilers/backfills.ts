import { workflowIds } from '../../contract/workflow_ids.ts';
import { describeExecution } from '../clients/executions.ts';
import { activeBackfills } from './expected_executions.ts';
import { forEachItem, isStuck, type ReconcilerDependencies } from './reconciler.ts';

/** Starts missing backfills and restarts stuck ones. */
export async function reconcileBackfills(dependencies: ReconcilerDependencies): Promise<void> {
  const { journal, client, backfills, settings } = dependencies;
  await forEachItem(dependencies, await activeBackfills(journal.pool), async (id) => {
    const execution = await describeExecution(client, workflowIds(settings).backfill(id));
    if (execution?.status !== 'RUNNING') await backfills.start(id);
    else if (isStuck(execution)) await backfills.restart(id);
  });
}
