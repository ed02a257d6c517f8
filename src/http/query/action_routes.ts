import { fieldChanges } from '../../journal/audit.ts';
import { checkSteps } from '../../queries/actions.ts';
import {
  type ActionFields,
  ActionNameTaken,
  createAction,
  deleteAction,
  findStoredAction,
  listActions,
  maxActions,
  type StoredAction,
  updateAction,
} from '../../queries/stored_actions.ts';
import { invalid, notFound } from '../api_error.ts';
import { offsetPage } from '../paging.ts';
import { numberPath } from '../projects/schema.ts';
import { readsQueries, teamOf, writesQueries } from '../requests.ts';
import type { ProjectRoutes } from '../route_context.ts';
import { errorResponses, listQuery, noContent, pageOf } from '../schemas.ts';
import { type ActionResponse, actionSchema, createActionBody, updateActionBody } from './action_schema.ts';
import { projectUrl } from '../request_urls.ts';

const toResponse = ({ steps, ...action }: StoredAction): ActionResponse => ({
  ...action,
  steps: steps.map(({ event = null, properties, url = null, url_matching = null }) => ({
    event,
    properties: (properties ?? []).map((filter) => ({ ...filter })),
    url,
    url_matching,
  })),
});

/** @throws ApiError 400 */
const rejectTakenName = (error: unknown): never => {
  throw error instanceof ActionNameTaken
    ? invalid('This project has an action of this name.', 'name')
    : error;
};

/** Create, list, retrieve, update and delete actions, which queries use. */
export const actionRoutes: ProjectRoutes = (app, { settings, pool }) => {
  app.get(
    '/actions',
    {
      ...readsQueries,
      schema: {
        summary: 'List actions',
        description: 'By name.',
        querystring: listQuery,
        response: { 200: pageOf(actionSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { count, results } = await listActions(pool, teamOf(request), request.query);
      return offsetPage(request, settings, request.query, { count, results: results.map(toResponse) });
    },
  );

  app.post(
    '/actions',
    {
      ...writesQueries,
      schema: {
        summary: 'Create action',
        description:
          'An action names events by their names, URLs and properties. Queries use it as `ActionsNode`, as `actionId`, and in the dialect as `matchesAction(…)`.',
        body: createActionBody,
        response: { 201: actionSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { name, description, steps } = request.body;
      checkSteps(steps);
      const fields: ActionFields = { name, description: description ?? '', steps };
      const action = await createAction(pool, teamOf(request), fields).catch(rejectTakenName);
      if (!action) throw invalid(`A project has at most ${maxActions} actions.`, null);
      request.changedFields = fieldChanges({}, fields);
      return reply
        .code(201)
        .header('location', projectUrl(request, settings, `/actions/${action.id}/`))
        .send(toResponse(action));
    },
  );

  app.get(
    '/actions/:id',
    {
      ...readsQueries,
      schema: {
        summary: 'Retrieve action',
        params: numberPath,
        response: { 200: actionSchema, ...errorResponses },
      },
    },
    async (request) => {
      const found = await findStoredAction(pool, teamOf(request), Number(request.params.id));
      if (!found) throw notFound();
      return toResponse(found);
    },
  );

  app.patch(
    '/actions/:id',
    {
      ...writesQueries,
      schema: {
        summary: 'Update action',
        description: 'Changes what queries that use the action answer, also saved ones.',
        params: numberPath,
        body: updateActionBody,
        response: { 200: actionSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { name, description, steps } = request.body;
      if (steps !== undefined) checkSteps(steps);
      const action = { team_id: teamOf(request), id: Number(request.params.id) };
      const found = await findStoredAction(pool, action.team_id, action.id);
      if (!found) throw notFound();
      const fields: Partial<ActionFields> = {
        ...(name !== undefined && { name }),
        ...(description !== undefined && { description: description ?? '' }),
        ...(steps !== undefined && { steps }),
      };
      const updated = await updateAction(pool, action, fields).catch(rejectTakenName);
      if (!updated) throw notFound();
      request.changedFields = fieldChanges(found, fields);
      return toResponse(updated);
    },
  );

  app.delete(
    '/actions/:id',
    {
      ...writesQueries,
      schema: {
        summary: 'Delete action',
        description: 'Queries that use it respond with 400 from now on, and name it.',
        params: numberPath,
        response: { 204: noContent, ...errorResponses },
      },
    },
    async (request, reply) => {
      const action = { team_id: teamOf(request), id: Number(request.params.id) };
      const found = await findStoredAction(pool, action.team_id, action.id);
      if (!found || !(await deleteAction(pool, action))) throw notFound();
      const { name, description, steps } = found;
      request.changedFields = fieldChanges(
        { name, description, steps },
        { name: null, description: null, steps: null },
      );
      return reply.code(204).send();
    },
  );
};
