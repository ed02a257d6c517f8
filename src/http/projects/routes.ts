import { findProjects } from '../accounts.ts';
import { offsetPage } from '../paging.ts';
import { type HttpApp, type RouteContext, teamOf } from '../command_service.ts';
import { errorResponses, listQuery, pageOf } from '../schemas.ts';
import { projectSchema } from './schema.ts';

/** List the project of the caller's key. */
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
      const projects = await findProjects(pool, [teamOf(request)]);
      return offsetPage(request, settings, request.query, {
        count: projects.length,
        results: projects.slice(offset, offset + limit),
      });
    },
  );
}
