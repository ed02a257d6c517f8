import { callerOf } from '../authentication.ts';
import type { ProjectRoutes } from '../route_context.ts';
import { deleteDashboard, updateDashboard } from '../dashboards/update_dashboard.ts';
import { createDashboard } from '../dashboards/create_dashboard.ts';
import { offsetPage, projectUrl } from '../paging.ts';
import { listDashboards, requireDashboard } from '../read_models/dashboards.ts';
import { errorResponses, listQuery, noContent, pageOf } from '../schemas/common.ts';
import {
  createDashboardBody,
  dashboardDetailSchema,
  dashboardPath,
  dashboardSchema,
  updateDashboardBody,
} from '../schemas/dashboard.ts';

const read = { config: { scope: 'dashboard:read' } } as const;
const write = { config: { scope: 'dashboard:write' } } as const;

/** Create, list, retrieve, update and delete dashboards, as far as the key's user may. */
export const dashboardRoutes: ProjectRoutes = (app, { pool, settings }) => {
  app.get(
    '/dashboards',
    {
      ...read,
      schema: {
        summary: 'List dashboards',
        description:
          'Those that the user of the key may see, pinned ones first, then by name in any case, then by id. ' +
          'Deleted ones, and those at access level `none`, are neither listed nor counted.',
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
        description: 'The user of the key becomes its creator, who is a manager of it always.',
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
          'Absent keeps, null resets to the default. Editors may change it; `restriction_level`, ' +
          '`default_access_level` and `access_controls` only managers. `deleted: true` deletes it, `deleted: false` ' +
          'restores one that was deleted.',
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
        description: 'Its row stays: an update with `deleted: false` restores it.',
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
