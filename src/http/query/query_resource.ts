import type { QueryService } from '../../queries/handle_query.ts';
import { createQueryRateLimiter } from '../../queries/rate_limiter.ts';
import { queryEditorRoutes } from '../console/pages/query_editor.ts';
import type { Resource } from '../resource.ts';
import { actionRoutes } from './action_routes.ts';
import { queryError } from './errors.ts';
import { draftSqlRoutes, queryAuthorizationRoutes, queryRoutes } from './routes.ts';
import { savedQueryRoutes } from './saved_query_routes.ts';

/** Queries, drafts of queries and their editor. */
export function queryResource(
  queries: QueryService & { readonly settings: Parameters<typeof createQueryRateLimiter>[1] },
): Resource {
  const limiter = createQueryRateLimiter(queries.pool, queries.settings);
  return {
    routes: [
      queryAuthorizationRoutes,
      draftSqlRoutes(queries, limiter),
      queryRoutes(queries, limiter),
      actionRoutes,
      savedQueryRoutes(queries),
    ],
    pages: [queryEditorRoutes(queries)],
    actions: {
      'POST /query': 'query.run',
      'DELETE /query/:id': 'query.cancel',
      'POST /actions': 'action.create',
      'PATCH /actions/:id': 'action.update',
      'DELETE /actions/:id': 'action.delete',
      'POST /saved_queries': 'saved_query.create',
      'PATCH /saved_queries/:id': 'saved_query.update',
      'DELETE /saved_queries/:id': 'saved_query.delete',
    },
    errorOf: queryError,
    interrupt: () => queries.running.interrupt(),
  };
}
