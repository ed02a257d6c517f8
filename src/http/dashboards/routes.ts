import { callerOf } from '../plugins/authentication.ts';
import { offsetPage } from '../paging.ts';
import type { ProjectRoutes } from '../route_context.ts';
import { errorResponses, listQuery, pageOf } from '../schemas.ts';
import { listDashboards } from './dashboards.ts';
import { dashboardSchema } from './schema.ts';

/** Lists dashboards with the access of the key's user. */
export const dashboardRoutes: ProjectRoutes = (app, { pool, settings }) => {
  app.get(
    '/dashboards',
    {
      config: { scope: 'dashboard:read' },
      schema: {
        summary: 'List dashboards',
        description:
          'The dashboards that the user of the key may see: pinned ones first, then by name (ignoring case), then by id. ' +
          'Those with access level `none` are neither listed nor counted.',
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
};
