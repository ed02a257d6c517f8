import { workflowIds } from '../../contract/workflow_ids.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { finishQuery, listUnfinished } from '../../queries/statuses.ts';
import { checkExecutions } from './check_executions.ts';
import type { Pass } from './pass.ts';
import type { ReconcilerDependencies } from './reconciler.ts';

/**
 * Starts background queries that Temporal does not know, as after the loss of its namespace, and fails those that were
 * ended in Temporal. It skips queries younger than the reconcile interval: they may be starting.
 */
export async function reconcileQueries(dependencies: ReconcilerDependencies, pass: Pass): Promise<void> {
  const { journal, backgroundQueries, logger, settings } = dependencies;
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
        await finishQuery(
          journal.pool,
          query.execution_id,
          {
            status: 'failed',
            error_code: 'query_ended',
            error_message: 'The query was ended in Temporal.',
          },
          settings.EXPORTD_QUERY_STATUS_TTL,
        );
      }
      return true;
    },
  });
}
