import { countSlowQueries, createRunningQueries } from '../../queries/running_queries.ts';
import { createQuerySlots, foregroundLimits } from '../../queries/query_slots.ts';
import { connectQueriesToSource } from '../../queries/query_source.ts';
import { createThreadExecutor } from '../../queries/threads/thread_executor.ts';
import { createQueryClient } from '../../temporal/clients/query_client.ts';
import type { StartedResource, ServerParts } from '../server_parts.ts';
import { queryResource } from './query_resource.ts';

/** Starts what runs the queries of a server. */
export function startQueries({
  settings,
  pool,
  logger,
  metrics,
  client,
  track,
}: ServerParts): StartedResource {
  const source = connectQueriesToSource(settings);
  const executor = createThreadExecutor(settings);
  const background = createQueryClient(client, settings);
  const resource = queryResource({
    settings,
    pool,
    logger,
    source,
    executor,
    running: createRunningQueries({
      pool,
      slots: createQuerySlots(foregroundLimits(settings)),
      logger,
      slow: countSlowQueries(metrics, settings),
    }),
    background: {
      start: (query) => track(() => background.start(query)),
      cancel: (query) => track(() => background.cancel(query)),
    },
  });
  return {
    resource,
    pools: { queries: source.pool },
    close: async () => {
      await Promise.all([source.close(), executor.close()]);
    },
  };
}
