import { findProjects, listProjectUsers } from '../accounts.ts';
import { callerOf } from '../authentication.ts';
import { offsetPage } from '../paging.ts';
import { type HttpApp, type ProjectRoutes, type RouteContext, teamOf } from '../command_service.ts';
import { errorResponses, listQuery, pageOf } from '../schemas.ts';
import { projectSchema, projectUserSchema } from './schema.ts';

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

/** List the users of a project. */
export const projectUserRoutes: ProjectRoutes = (app, { pool, settings }) => {
  app.get(
    '/users',
    {
      config: { scope: 'key:admin' },
      schema: {
        summary: 'List users',
        description: 'Who owns an active key of the project. Users are created with `exportd user create`.',
        querystring: listQuery,
        response: { 200: pageOf(projectUserSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { limit, offset } = request.query;
      const users = await listProjectUsers(pool, teamOf(request));
      return offsetPage(request, settings, request.query, {
        count: users.length,
        results: users.slice(offset, offset + limit),
      });
    },
  );
};
