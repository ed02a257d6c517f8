import { workflowIds, workflowTypes } from '../../contract/workflow_ids.ts';
import type { BackgroundQueries } from '../../queries/handle_query.ts';
import { deleteExpiredQueries } from '../../queries/results.ts';
import { finishQuery, listUnfinished } from '../../queries/statuses.ts';
import { checkExecutions, type Reconciler } from './check_executions.ts';

/** The reconcilers of queries, by their names in logs and metrics. */
export function createQueryReconcilers(
  backgroundQueries: BackgroundQueries,
): Readonly<Record<'queries' | 'expired_queries', Reconciler>> {
  /**
   * Starts background queries that Temporal does not know, as after the loss of its namespace, and fails those that were
   * ended in Temporal. It skips queries younger than the reconcile interval: they may be starting.
   */
  const reconcileQueries: Reconciler = async (dependencies, pass) => {
    const { journal, logger, settings } = dependencies;
    const queries = await listUnfinished(journal.pool, settings.EXPORTD_RECONCILE_INTERVAL);
    await checkExecutions(dependencies, pass, {
      workflowType: workflowTypes.backgroundQuery,
      expected: queries.map((query) => ({
        id: query.execution_id,
        query,
        workflow_id: workflowIds(settings).query(query),
      })),
      repair: async ({ query }, execution) => {
        if (execution?.status === 'RUNNING') return false;
        if (execution === undefined || execution.status === 'COMPLETED') {
          logger.warn({ query_id: query.id }, 'Starting a background query again.');
          await backgroundQueries.start(query);
        } else {
          await finishQuery(journal.pool, query.execution_id, {
            status: 'failed',
            error_code: 'query_ended',
            error_message: 'The query was ended in Temporal.',
          });
        }
        return true;
      },
    });
  };
  /** Deletes statuses and results of queries that have expired. */
  const deleteExpiredQueryResults: Reconciler = async ({ journal, settings }) => {
    await deleteExpiredQueries(journal.pool, settings);
  };
  return { queries: reconcileQueries, expired_queries: deleteExpiredQueryResults };
}
