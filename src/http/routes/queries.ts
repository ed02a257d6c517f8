import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { cancelQuery, handleQuery } from '../../queries/handle_query.ts';
import type { RefreshMode } from '../../queries/freshness.ts';
import { serializeQueryResponse, serializeStatus } from '../../queries/query_response.ts';
import { readStatus } from '../../queries/statuses.ts';
import { notFound } from '../api_error.ts';
import { callerOf } from '../authentication.ts';
import { disconnectSignal } from '../disconnect_signal.ts';
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

/** Bytes of a response that is sent as a whole, which takes less time than a stream. */
const maxWholeLength = 256 * 1024;

/** Sends JSON that is not parsed and checked again, nor copied: a result has many megabytes. */
function sendJson(reply: FastifyReply, parts: readonly Uint8Array[]): never {
  const length = parts.reduce((sum, part) => sum + part.byteLength, 0);
  const body = length > maxWholeLength ? Readable.from(parts) : Buffer.concat(parts, length);
  return reply.type('application/json; charset=utf-8').header('content-length', length).send(body) as never;
}

/** `async: true` runs a query in the background when `refresh` does not. */
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
          'Returns the results, or `query_status` when they are calculated in the background. Results are limited to 10,000 rows by default; `hasMore` is true when rows were cut, and batch exports have no such limit. A project can send 120 requests per hour by default. The headers `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (Unix time in seconds of the next free request) show the quota. A project runs 4 queries at the same time and a key 3 by default, and more wait. The response is 429 when the quota is used up or the wait is too long, and 503 when several projects use all slots; both have `Retry-After` in seconds. A client that disconnects cancels its query.',
        body: queryBody,
        response: { 200: queryResponseSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { query, client_query_id, filters_override, variables_override } = request.body;
      const response = await handleQuery(queries, {
        team_id: teamOf(request),
        key_id: callerOf(request).key_id,
        signal: disconnectSignal(reply),
        query,
        refresh: refreshOf(request.body),
        client_query_id: client_query_id ?? null,
        filters_override: filters_override ?? null,
        variables_override: variables_override ?? {},
      });
      return sendJson(reply, serializeQueryResponse(response));
    },
  );

  app.get(
    '/query/:id',
    {
      ...read,
      schema: {
        summary: 'Retrieve query',
        description:
          'Returns the status of a query, with its response once it is complete. Available for background queries and for queries with a `client_query_id`.',
        params: queryPath,
        querystring: statusQuery,
        response: { 200: retrievedQuerySchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const status = await readStatus(pool, teamOf(request), request.params.id);
      if (!status) throw notFound();
      return sendJson(reply, await serializeStatus(pool, status, queries.settings));
    },
  );

  app.delete(
    '/query/:id',
    {
      ...read,
      schema: {
        summary: 'Delete query',
        description:
          'Cancels the query, in the background or not. Responds after its statement has ended in the database.',
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
