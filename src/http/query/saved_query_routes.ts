import type { FastifyRequest } from 'fastify';
import { fieldChanges } from '../../journal/audit.ts';
import type { QueryService } from '../../queries/handle_query.ts';
import { readQueryProject } from '../../queries/postgres_warehouse.ts';
import {
  createSavedQuery,
  deleteSavedQuery,
  findSavedQuery,
  listSavedQueries,
  maxSavedQueries,
  type SavedQuery,
  SavedQueryNameTaken,
  TooManySavedQueries,
  updateSavedQuery,
} from '../../queries/saved_queries.ts';
import { ApiError, invalid, notFound } from '../api_error.ts';
import { offsetPage } from '../paging.ts';
import { callerOf } from '../plugins/authentication.ts';
import { readsQueries, teamOf, writesQueries } from '../requests.ts';
import type { ProjectRoutes } from '../route_context.ts';
import { errorResponses, noContent, pageOf } from '../schemas.ts';
import {
  createSavedQueryBody,
  savedQueryListQuery,
  savedQueryPath,
  savedQuerySchema,
  updateSavedQueryBody,
} from './saved_query_schema.ts';
import { projectUrl } from '../request_urls.ts';

/** The fields that the audit trail has of a saved query: not its text, which can hold anything. */
const auditedFields = ({ name, version }: SavedQuery): object => ({ name, version });

const conflict = (detail: string, attr: string): ApiError => new ApiError(409, 'conflict', detail, { attr });

const saver = ({ last_updated_by }: SavedQuery): string => last_updated_by ?? 'A user';

/** Save, list, change and delete queries of a project by name. */
export const savedQueryRoutes =
  ({ executor }: Pick<QueryService, 'executor'>): ProjectRoutes =>
  (app, { pool, settings }) => {
    /** @throws QueryError, QuerySchemaError with the path of the invalid field */
    const requireValid = async (request: FastifyRequest, query: SavedQuery['query']): Promise<void> => {
      const { project, now } = await readQueryProject(pool, teamOf(request));
      await executor.parse({ query, filters_override: null, project, now });
    };
    /** @throws ApiError 404 */
    const requireSaved = async (request: FastifyRequest, id: string): Promise<SavedQuery> => {
      const found = await findSavedQuery(pool, teamOf(request), id);
      if (!found) throw notFound();
      return found;
    };
    /** The response to a name of another query. */
    const nameTaken = async (request: FastifyRequest, name: string): Promise<ApiError> => {
      const { results } = await listSavedQueries(pool, teamOf(request), { name, limit: 1, offset: 0 });
      const [other] = results;
      const saved = other
        ? `: ${saver(other)} saved version ${other.version} at ${other.last_updated_at}`
        : '';
      return conflict(
        `The project has a query "${name}"${saved}. Update that one, or use another name.`,
        'name',
      );
    };

    app.get(
      '/saved_queries',
      {
        ...readsQueries,
        schema: {
          summary: 'List saved queries',
          description: 'The saved queries of the project by name, ignoring case.',
          querystring: savedQueryListQuery,
          response: { 200: pageOf(savedQuerySchema), ...errorResponses },
        },
      },
      async (request) =>
        offsetPage(
          request,
          settings,
          request.query,
          await listSavedQueries(pool, teamOf(request), request.query),
        ),
    );

    app.post(
      '/saved_queries',
      {
        ...writesQueries,
        schema: {
          summary: 'Create saved query',
          description:
            'Saves a query under a name. The response is 409 if the project has a query with this name.',
          body: createSavedQueryBody,
          response: { 201: savedQuerySchema, ...errorResponses },
        },
      },
      async (request, reply) => {
        const { name, query } = request.body;
        await requireValid(request, query);
        const user_id = callerOf(request).actor_id;
        const saved = await createSavedQuery(pool, teamOf(request), { name, query, user_id }).catch(
          async (error: unknown) => {
            if (error instanceof SavedQueryNameTaken) throw await nameTaken(request, name);
            if (error instanceof TooManySavedQueries)
              throw invalid(`A project can have ${maxSavedQueries} saved queries. Delete one first.`, null);
            throw error;
          },
        );
        request.changedFields = fieldChanges({}, auditedFields(saved));
        return reply
          .code(201)
          .header('location', projectUrl(request, settings, `/saved_queries/${saved.id}/`))
          .send(saved);
      },
    );

    app.get(
      '/saved_queries/:id',
      {
        ...readsQueries,
        schema: {
          summary: 'Retrieve saved query',
          params: savedQueryPath,
          response: { 200: savedQuerySchema, ...errorResponses },
        },
      },
      async (request) => requireSaved(request, request.params.id),
    );

    app.patch(
      '/saved_queries/:id',
      {
        ...writesQueries,
        schema: {
          summary: 'Update saved query',
          description:
            'Changes name or query. `version` is the one that the change is based on: the response is 409 if another change came first.',
          params: savedQueryPath,
          body: updateSavedQueryBody,
          response: { 200: savedQuerySchema, ...errorResponses },
        },
      },
      async (request) => {
        const { id } = request.params;
        const { name, query, version } = request.body;
        const former = await requireSaved(request, id);
        if (query !== undefined) await requireValid(request, query);
        const user_id = callerOf(request).actor_id;
        const key = { team_id: teamOf(request), id, version };
        const changes = {
          user_id,
          ...(name !== undefined && { name }),
          ...(query !== undefined && { query }),
        };
        const saved = await updateSavedQuery(pool, key, changes).catch(async (error: unknown) => {
          throw error instanceof SavedQueryNameTaken ? await nameTaken(request, name ?? former.name) : error;
        });
        if (!saved) {
          const current = await requireSaved(request, id);
          throw conflict(
            `${saver(current)} saved version ${current.version} at ${current.last_updated_at}, and this change is based on version ${version}. Read it first, then send its version.`,
            'version',
          );
        }
        request.changedFields = fieldChanges(auditedFields(former), auditedFields(saved));
        return saved;
      },
    );

    app.delete(
      '/saved_queries/:id',
      {
        ...writesQueries,
        schema: {
          summary: 'Delete saved query',
          params: savedQueryPath,
          response: { 204: noContent, ...errorResponses },
        },
      },
      async (request, reply) => {
        const { id } = request.params;
        const { name } = await requireSaved(request, id);
        if (!(await deleteSavedQuery(pool, teamOf(request), id))) throw notFound();
        request.changedFields = fieldChanges({ name }, {});
        return reply.code(204).send();
      },
    );
  };
