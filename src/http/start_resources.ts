import { startQueries } from './query/start_queries.ts';
import type { ServerParts, StartedResource } from './server_parts.ts';
import { startWebhooks } from './webhooks/webhook_resource.ts';

/** Starts what a server may do without, as `optionalResources` lists it. */
export const startResources = (parts: ServerParts): readonly StartedResource[] => [
  startWebhooks(parts),
  startQueries(parts),
];
