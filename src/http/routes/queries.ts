import type { z } from 'zod';
import { handleQuery } from '../../queries/handle_query.ts';
import { cancelQuery } from '../../queries/cancel_query.ts';
import type { RefreshMode } from '../../queries/refresh_modes.ts';
import { statusWithResults } from '../../queries/status_response.ts';
import { readStatus } from '../../queries/statuses.ts';
import { notFound } from '../api_error.ts';
import { teamOf, type ProjectRoutes } from '../route_context.ts';
import { rateLimitQueries } from '../rate_limit.ts';
import { errorResponses, noContent } from '../schemas/common.ts';
import {
  queryResponseSchema,
  queryBody,
  queryPath,
  retrievedQuerySchema,
  statusQuery,
  type QueryBody,
} from '../schemas/query.ts';

const read = { config: { scope: 'query:read' } } as const;

/** `async: true` puts a query into the background, where `refresh` does not do so by itself. */
function refreshOf({ refresh, async }: Pick<QueryBody, 'refresh' | 'async'>): RefreshMode {
  const wanted = refresh ?? 'blocking';
  return async === true && !wanted.endsWith('async') ? 'async' : wanted;
}

/** Create, retrieve and cancel queries. */
export const queryRoutes: ProjectRoutes = (app, context) => {
  const { pool, queries } = context;

  app.post(
    '/query',
    {
      ...read,
      onRequest: (request, reply) => rateLimitQueries(context, request, reply),
      schema: {
        summary: 'Create query',
        description:
          'Answers with the results, or with `query_status` where they are calculated in the background. An answer has at most as many rows as the service allows, 10,000 by default: `hasMore` says that there are more, which batch exports can have. A project has 120 requests an hour by default: `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (seconds since 1970 when one more is free) count them; `Retry-After` of a 429 says how many seconds to wait.',
        body: queryBody,
        response: { 200: queryResponseSchema, ...errorResponses },
      },
    },
    (request) => {
      const { query, client_query_id, filters_override, variables_override } = request.body;
      return handleQuery(queries, {
        team_id: teamOf(request),
        query,
        refresh: refreshOf(request.body),
        client_query_id: client_query_id ?? null,
        filters_override: filters_override ?? null,
        variables_override: variables_override ?? {},
      }) as Promise<z.infer<typeof queryResponseSchema>>;
    },
  );

  app.get(
    '/query/:id',
    {
      ...read,
      schema: {
        summary: 'Retrieve query',
        description:
          'The status of a query with its answer once it is complete: of queries in the background, and of all to which the client gave an id.',
        params: queryPath,
        querystring: statusQuery,
        response: { 200: retrievedQuerySchema, ...errorResponses },
      },
    },
    async (request) => {
      const status = await readStatus(pool, teamOf(request), request.params.id);
      if (!status) throw notFound();
      return { query_status: await statusWithResults(pool, status) };
    },
  );

  app.delete(
    '/query/:id',
    {
      ...read,
      schema: {
        summary: 'Delete query',
        description:
          'Cancels the query, in the background or not: its statement has ended in the database when this answers.',
        params: queryPath,
        response: { 204: noContent, ...errorResponses },
      },
    },
    async (request, reply) => {
      if (!(await cancelQuery(queries, teamOf(request), request.params.id))) throw notFound();
      return reply.code(204).send();
    },
  );
};
