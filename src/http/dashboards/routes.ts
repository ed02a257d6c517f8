import { callerOf } from '../authentication.ts';
import { offsetPage, projectUrl } from '../paging.ts';
import type { ProjectRoutes } from '../command_service.ts';
import { errorResponses, listQuery, noContent, pageOf } from '../schemas.ts';
import {
  createDashboard,
  deleteDashboard,
  listDashboards,
  requireDashboard,
  updateDashboard,
} from './dashboards.ts';
import {
  createDashboardBody,
  dashboardDetailSchema,
  dashboardPath,
  dashboardSchema,
  updateDashboardBody,
} from './schema.ts';

const read = { config: { scope: 'dashboard:read' } } as const;
const write = { config: { scope: 'dashboard:write' } } as const;

/** Create, list, retrieve, update and delete dashboards with the permissions of the key's user. */
export const dashboardRoutes: ProjectRoutes = (app, { pool, settings }) => {
  app.get(
    '/dashboards',
    {
      ...read,
      schema: {
        summary: 'List dashboards',
        description:
          'The dashboards that the user of the key may see: pinned ones first, then by name (ignoring case), then by id. ' +
          'Deleted dashboards and those with access level `none` are neither listed nor counted.',
        querystring: listQuery,
        response: { 200: pageOf(dashboardSchema), ...errorResponses },
      },
    },
    async (request) =>
      offsetPage(
        request,
        settings,
        request.query,
        await listDashboards(pool, callerOf(request), request.query),
      ),
  );

  app.post(
    '/dashboards',
    {
      ...write,
      schema: {
        summary: 'Create dashboard',
        description: 'The user of the key becomes the creator, who is always a manager.',
        body: createDashboardBody,
        response: { 201: dashboardDetailSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const id = await createDashboard(pool, callerOf(request), request.body);
      return reply
        .code(201)
        .header('location', projectUrl(request, settings, `/dashboards/${id}/`))
        .send(await requireDashboard(pool, callerOf(request), id));
    },
  );

  app.get(
    '/dashboards/:id',
    {
      ...read,
      schema: {
        summary: 'Retrieve dashboard',
        params: dashboardPath,
        response: { 200: dashboardDetailSchema, ...errorResponses },
      },
    },
    (request) => requireDashboard(pool, callerOf(request), request.params.id),
  );

  app.patch(
    '/dashboards/:id',
    {
      ...write,
      schema: {
        summary: 'Update dashboard',
        description:
          'Omitted fields keep their value; null resets a field to its default. Requires an editor; changing ' +
          '`restriction_level`, `default_access_level` or `access_controls` requires a manager. `deleted: true` deletes ' +
          'the dashboard, `deleted: false` restores it.',
        params: dashboardPath,
        body: updateDashboardBody,
        response: { 200: dashboardDetailSchema, ...errorResponses },
      },
    },
    (request) => updateDashboard(pool, callerOf(request), request.params.id, request.body),
  );

  app.delete(
    '/dashboards/:id',
    {
      ...write,
      schema: {
        summary: 'Delete dashboard',
        description: 'An update with `deleted: false` restores it.',
        params: dashboardPath,
        response: { 204: noContent, ...errorResponses },
      },
    },
    async (request, reply) => {
      await deleteDashboard(pool, callerOf(request), request.params.id);
      return reply.code(204).send();
    },
  );
};
