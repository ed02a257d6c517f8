import { findProjects } from '../accounts.ts';
import { callerOf } from '../authentication.ts';
import { offsetPage } from '../paging.ts';
import type { HttpApp, RouteContext } from '../command_service.ts';
import { errorResponses, listQuery, pageOf } from '../schemas.ts';
import { projectSchema } from './schema.ts';

/** List the projects of the caller's key. */
export function projectRoutes(app: HttpApp, { pool, settings }: RouteContext): void {
  app.get(
    '/api/projects',
    {
      schema: {
        summary: 'List projects',
        querystring: listQuery,
        response: { 200: pageOf(projectSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { limit, offset } = request.query;
      const projects = await findProjects(pool, callerOf(request).project_ids);
      return offsetPage(request, settings, request.query, {
        count: projects.length,
        results: projects.slice(offset, offset + limit),
      });
    },
  );
}
