import type { FastifyReply, FastifyRequest } from 'fastify';
import { clauseKeywords, reservedWords } from '@exportd/dialect/query_text';
import { describeFunctions, describeTables } from '@exportd/dialect/vocabulary';
import { compilerProject } from '../../../queries/dialect_reader.ts';
import { createProjectSchemas, type EditorRequest, readNames } from '../../../queries/editor.ts';
import type { QueryService } from '../../../queries/handle_query.ts';
import { QueryError } from '../../../queries/query_errors.ts';
import { callerOf } from '../../plugins/authentication.ts';
import { disconnectSignal, readsQueries, teamOf } from '../../requests.ts';
import { type ProjectRoutes } from '../../route_context.ts';
import { errorResponses } from '../../schemas.ts';
import { checkedQuerySchema, checkQueryBody, projectNamesSchema, vocabularySchema } from './schema.ts';

const keywords = [...new Set([...clauseKeywords, ...reservedWords, 'ASC', 'DESC', 'END'])];

const requestOf = (request: FastifyRequest, reply: FastifyReply): EditorRequest => ({
  team_id: teamOf(request),
  key_id: callerOf(request).key_id,
  signal: disconnectSignal(reply),
});

/** What an editor of queries needs. None of it runs a query, so it does not count against their rate limit. */
export const queryEditorRoutes =
  (queries: QueryService): ProjectRoutes =>
  (app, { pool, settings }) => {
    const { source, running, executor } = queries;
    const service = { pool, source, running, executor, settings };
    const schemas = createProjectSchemas(service);

    app.get(
      '/console/query/vocabulary',
      { ...readsQueries, schema: { hide: true, response: { 200: vocabularySchema, ...errorResponses } } },
      async (request, reply) => {
        const project = compilerProject(await schemas.read(requestOf(request, reply)));
        return {
          tables: describeTables(project).map(({ name, fields }) => ({ name, fields: [...fields] })),
          functions: [...describeFunctions()],
          keywords,
        };
      },
    );

    app.get(
      '/console/query/names',
      { ...readsQueries, schema: { hide: true, response: { 200: projectNamesSchema, ...errorResponses } } },
      async (request, reply) => {
        const names = await readNames(service, requestOf(request, reply));
        return {
          events: [...names.events],
          event_properties: [...names.event_properties],
          person_properties: [...names.person_properties],
        };
      },
    );

    app.post(
      '/console/query/check',
      {
        ...readsQueries,
        schema: {
          hide: true,
          body: checkQueryBody,
          response: { 200: checkedQuerySchema, ...errorResponses },
        },
      },
      async (request, reply) => {
        const checked = await schemas.read(requestOf(request, reply));
        try {
          await executor.check({ ...checked, query: request.body.query, infersTypes: true });
          return { error: null };
        } catch (error) {
          if (!(error instanceof QueryError)) throw error;
          const position = error.position ?? { line: 1, column: 1, offset: 0, length: 0 };
          return { error: { detail: error.message, ...position } };
        }
      },
    );
  };
