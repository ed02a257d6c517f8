import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { draftSql } from '../../queries/draft_sql/draft_sql.ts';
import type { RefreshMode } from '../../queries/freshness.ts';
import { cancelQuery, handleQuery, type QueryService } from '../../queries/handle_query.ts';
import { serializeQueryResponse, serializeStatus } from '../../queries/responses.ts';
import type { QueryRateLimiter } from '../../queries/rate_limiter.ts';
import { readStatus } from '../../queries/statuses.ts';
import { ApiError, notFound, retryAfter } from '../api_error.ts';
import { callerOf } from '../plugins/authentication.ts';
import { disconnectSignal, readsQueries, sendEmpty, teamOf } from '../requests.ts';
import { type ProjectRoutes } from '../route_context.ts';
import { errorResponses, noContent } from '../schemas.ts';
import {
  draftedSqlSchema,
  draftSqlQuery,
  queryBody,
  type QueryBody,
  queryPath,
  queryResponseSchema,
  retrievedQuerySchema,
  statusQuery,
} from './schema.ts';

/**
 * Counts a request to the query endpoint and sets the rate limit headers. Runs right after authentication, so requests
 * with invalid bodies are counted too.
 * @throws ApiError 429
 */
async function rateLimitQueries(
  limiter: QueryRateLimiter,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { project_id: team_id, actor_id, session_id } = callerOf(request);
  const isPerson = session_id !== null;
  const decision = await limiter.admit({ team_id, user_id: isPerson ? actor_id : null });
  reply.headers({
    'x-ratelimit-limit': String(decision.limit),
    'x-ratelimit-remaining': String(decision.remaining),
    'x-ratelimit-reset': String(Math.ceil(decision.resets_at.getTime() / 1_000)),
  });
  if (decision.admitted) return;
  const until = decision.resets_at.toISOString();
  const limit = isPerson
    ? `a person at the console can run ${decision.limit} queries per hour (EXPORTD_CONSOLE_QUERIES_PER_HOUR)`
    : `the API keys of a project can run ${decision.limit} queries per hour (EXPORTD_QUERIES_PER_HOUR)`;
  throw new ApiError(
    429,
    'throttled',
    `Rate limit exceeded until ${until}: ${limit}. Retry in ${decision.wait_seconds} seconds. For large volumes of data, use a batch export.`,
    retryAfter(decision.wait_seconds),
  );
}

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
export const queryRoutes =
  (queries: QueryService, limiter: QueryRateLimiter): ProjectRoutes =>
  (app, { pool }) => {
    app.post(
      '/query',
      {
        ...readsQueries,
        onRequest: (request, reply) => rateLimitQueries(limiter, request, reply),
        schema: {
          summary: 'Create query',
          description:
            'Returns the results, or `query_status` when they are calculated in the background. Results are limited to 10,000 rows by default; `hasMore` is true when rows were cut, and batch exports have no such limit. The API keys of a project can send 120 requests per hour by default. The headers `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (Unix time in seconds of the next free request) show the quota. A project runs 4 queries at the same time and a key 3 by default, and more wait. The response is 429 when the quota is used up or the wait is too long, and 503 when several projects use all slots; both have `Retry-After` in seconds. A client that disconnects cancels its query.',
          body: queryBody,
          response: { 200: queryResponseSchema, ...errorResponses },
        },
      },
      async (request, reply) => {
        const { query, client_query_id, filters_override, variables_override } = request.body;
        const response = await handleQuery(queries, {
          team_id: teamOf(request),
          key_id: callerOf(request).key_id,
          user_id: callerOf(request).user_id,
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
        ...readsQueries,
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
        const status = await readStatus(pool, teamOf(request), request.params.id, callerOf(request).user_id);
        if (!status) throw notFound();
        return sendJson(reply, await serializeStatus(pool, status, queries.settings));
      },
    );

    app.delete(
      '/query/:id',
      {
        ...readsQueries,
        schema: {
          summary: 'Delete query',
          description:
            'Cancels the query, in the background or not. Responds after its statement has ended in the database.',
          params: queryPath,
          response: { 204: noContent, ...errorResponses },
        },
      },
      async (request, reply) => {
        const { user_id } = callerOf(request);
        const query = { team_id: teamOf(request), user_id, id: request.params.id };
        if (!(await cancelQuery(queries, query))) throw notFound();
        return reply.code(204).send();
      },
    );
  };

/** Check whether a key may run queries, before starting one in the background. */
export const queryAuthorizationRoutes: ProjectRoutes = (app) => {
  app.post(
    '/query/check_auth_for_async',
    {
      ...readsQueries,
      schema: {
        summary: 'Check auth for async',
        description:
          'Returns 200 when the key may run queries. Runs no query and does not count against the rate limit.',
        response: { 200: noContent, ...errorResponses },
      },
    },
    (_request, reply) => {
      sendEmpty(reply);
    },
  );
};

/** Draft queries in the SQL dialect from plain English. */
export const draftSqlRoutes =
  (queries: QueryService, limiter: QueryRateLimiter): ProjectRoutes =>
  (app, { pool, settings }) => {
    app.get(
      '/query/draft_sql',
      {
        ...readsQueries,
        onRequest: (request, reply) => rateLimitQueries(limiter, request, reply),
        schema: {
          summary: 'Retrieve draft SQL',
          description:
            'Drafts a query in the SQL dialect from `prompt` in plain English, such as "signups per week by country in the last 3 months". The query compiles and is not run. A draft counts against the rate limit of queries. The response is 400 with the code `required`, `too_long` or `unclear` when the prompt is missing, longer than 400 characters or not understood.',
          querystring: draftSqlQuery,
          response: { 200: draftedSqlSchema, ...errorResponses },
        },
      },
      async (request, reply) => {
        const { prompt = null, current_query = null } = request.query;
        const { source, running, executor, logger } = queries;
        const service = { pool, source, running, executor, settings, logger };
        const from = {
          team_id: teamOf(request),
          key_id: callerOf(request).key_id,
          signal: disconnectSignal(reply),
        };
        return { sql: await draftSql(service, { ...from, prompt, current_query }) };
      },
    );
  };
