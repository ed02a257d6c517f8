import { workflowIds } from '../../contract/workflow_ids.ts';
import { finishQuery, listUnfinished } from '../../queries/statuses.ts';
import { describeExecution } from '../clients/executions.ts';
import type { ReconcilerDependencies } from './reconciler.ts';

/**
 * Starts background queries that Temporal does not know, as after the loss of its namespace, and fails those that were
 * ended in Temporal. It skips queries younger than the reconcile interval: they may be starting.
 */
export async function reconcileQueries({
  client,
  journal: { pool },
  backgroundQueries,
  logger,
  settings,
}: Pick<ReconcilerDependencies, 'client' | 'journal' | 'backgroundQueries' | 'logger'> & {
  readonly settings: Pick<
    ReconcilerDependencies['settings'],
    'EXPORTD_TASK_QUEUE_PREFIX' | 'EXPORTD_RECONCILE_INTERVAL' | 'EXPORTD_QUERY_STATUS_TTL'
  >;
}): Promise<void> {
  for (const query of await listUnfinished(pool, settings.EXPORTD_RECONCILE_INTERVAL)) {
    const execution = await describeExecution(client, workflowIds(settings).query(query));
    if (execution?.status === 'RUNNING') continue;
    if (execution === undefined || execution.status === 'COMPLETED') {
      logger.warn({ query_id: query.id }, 'Starting a background query again.');
      await backgroundQueries.start(query);
    } else {
      await finishQuery(
        pool,
        query.execution_id,
        { status: 'failed', error_code: 'query_ended', error_message: 'The query was ended in Temporal.' },
        settings.EXPORTD_QUERY_STATUS_TTL,
      );
    }
  }
}
