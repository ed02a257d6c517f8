import {
  createProject,
  createUser,
  findProjects,
  InvalidAccount,
  listProjectUsers,
  listUsers,
} from '../accounts.ts';
import { invalid } from '../api_error.ts';
import { callerOf } from '../plugins/authentication.ts';
import { offsetPage } from '../paging.ts';
import { type HttpApp, type ProjectRoutes, type RouteContext } from '../route_context.ts';
import { teamOf } from '../requests.ts';
import { errorResponses, listQuery, pageOf, userSchema } from '../schemas.ts';
import { createProjectBody, createUserBody, projectSchema, projectUserSchema } from './schema.ts';

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

const administersInstallation = { config: { scope: 'installation:admin' } } as const;

/** Replaces the error of a value that is taken, which names the value. @throws ApiError 400 */
const notTaken = (attr: string, detail: string) => (error: unknown) => {
  throw error instanceof InvalidAccount ? invalid(detail, attr) : error;
};

/** List and create users, and create projects, of the whole installation. */
export function installationRoutes(app: HttpApp, { pool, settings }: RouteContext): void {
  app.get(
    '/api/users',
    {
      ...administersInstallation,
      schema: {
        summary: 'List all users',
        description: 'The users of all projects, oldest first.',
        querystring: listQuery,
        response: { 200: pageOf(userSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { limit, offset } = request.query;
      const users = await listUsers(pool);
      return offsetPage(request, settings, request.query, {
        count: users.length,
        results: users.slice(offset, offset + limit),
      });
    },
  );

  app.post(
    '/api/users',
    {
      ...administersInstallation,
      schema: {
        summary: 'Create user',
        description: 'A user has rights through keys alone: create one with `user_id`.',
        body: createUserBody,
        response: { 201: userSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const user = await createUser(pool, request.body).catch(
        notTaken('email', 'A user with this address exists.'),
      );
      request.createdObject = `users/${user.id}`;
      return reply.code(201).send(user);
    },
  );

  app.post(
    '/api/projects',
    {
      ...administersInstallation,
      schema: {
        summary: 'Create project',
        description: 'The calling key gets access to the project; other keys do not.',
        body: createProjectBody,
        response: { 201: projectSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const project = await createProject(pool, {
        ...request.body,
        key_id: callerOf(request).key_id,
      }).catch(notTaken('id', 'A project with this id exists.'));
      request.createdObject = `projects/${project.id}`;
      return reply.code(201).send(project);
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
        description: 'Who owns an active key of the project. `GET /api/users/` has all.',
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
