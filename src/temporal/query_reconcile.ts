import type { Client } from '@temporalio/client';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { BackgroundQueries } from '../queries/query_desk.ts';
import { endQuery, listUnended } from '../queries/statuses.ts';
import type { Logger } from '../telemetry/logger.ts';
import { queryWorkflowId } from '../../workflows/messages.ts';
import { describeExecution } from './executions.ts';

/** What a pass over the queries in the background needs. */
export interface QueryReconcileDependencies {
  readonly client: Client;
  readonly pool: Pool;
  readonly background: BackgroundQueries;
  readonly logger: Logger;
  readonly settings: Pick<Settings, 'EXPORTD_RECONCILE_INTERVAL_MS' | 'EXPORTD_QUERY_STATUS_MS'>;
}

/**
 * Starts queries again that Temporal does not know, such as after its namespace was lost, and ends those that were ended
 * in Temporal alone. Queries of the last pass's time are left alone: they may be just beginning.
 */
export async function reconcileQueries({
  client,
  pool,
  background,
  logger,
  settings,
}: QueryReconcileDependencies): Promise<void> {
  for (const query of await listUnended(pool, settings.EXPORTD_RECONCILE_INTERVAL_MS)) {
    const execution = await describeExecution(client, queryWorkflowId(query));
    if (execution?.status === 'RUNNING') continue;
    if (execution === undefined || execution.status === 'COMPLETED') {
      logger.warn({ query_id: query.id }, 'A query in the background is started again.');
      await background.start(query);
    } else {
      await endQuery(
        pool,
        query.execution_id,
        { status: 'failed', error_code: 'query_ended', error_message: 'The query was ended in Temporal.' },
        settings.EXPORTD_QUERY_STATUS_MS,
      );
    }
  }
}
