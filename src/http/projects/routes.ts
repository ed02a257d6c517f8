import { fieldChanges } from '../../journal/audit.ts';
import { ApiError, invalid, notFound } from '../api_error.ts';
import { callerOf } from '../plugins/authentication.ts';
import { offsetPage } from '../paging.ts';
import type { HttpApp, ProjectRoutes, RouteContext } from '../route_context.ts';
import { teamOf } from '../requests.ts';
import { emptyBody, errorResponses, listQuery, pageOf } from '../schemas.ts';
import {
  createProjectBody,
  createUserBody,
  disabledUserSchema,
  installationUserSchema,
  numberPath,
  projectSchema,
  projectUserSchema,
  renameProjectBody,
} from './schema.ts';
import { InvalidAccount } from '../accounts/invalid_account.ts';
import { createProject, findProjects, renameProject } from '../accounts/projects.ts';
import {
  createUser,
  disableUser,
  enableUser,
  LastOwner,
  listProjectUsers,
  listUsers,
} from '../accounts/users.ts';

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

/** List, create and disable users, and create and rename projects, of the whole installation. */
export function installationRoutes(app: HttpApp, { pool, settings }: RouteContext): void {
  app.get(
    '/api/users',
    {
      ...administersInstallation,
      schema: {
        summary: 'List all users',
        description: 'The users of all projects, oldest first.',
        querystring: listQuery,
        response: { 200: pageOf(installationUserSchema), ...errorResponses },
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
        response: { 201: installationUserSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const user = await createUser(pool, request.body).catch(
        notTaken('email', 'A user with this address exists.'),
      );
      request.createdObject = `users/${user.id}`;
      request.changedFields = fieldChanges({}, request.body).filter(({ after }) => after !== '');
      return reply.code(201).send(user);
    },
  );

  app.post(
    '/api/users/:id/disable',
    {
      ...administersInstallation,
      schema: {
        summary: 'Disable user',
        description:
          'Ends the keys and sessions of the user at once and permanently, and no key can be created for the user until ' +
          '`enable`. Keys that the user created for others stay (`active_keys_of_others`). The last user with an active key ' +
          'that has `installation:admin` cannot be disabled.',
        params: numberPath,
        body: emptyBody.optional(),
        response: { 200: disabledUserSchema, ...errorResponses },
      },
    },
    async (request) => {
      const disabled = await disableUser(pool, Number(request.params.id), callerOf(request)).catch(
        (error: unknown) => {
          throw error instanceof LastOwner ? new ApiError(409, 'conflict', error.message) : error;
        },
      );
      if (!disabled) throw notFound();
      request.changedFields = disabled.changes;
      return { ...disabled.user, revoked_keys: disabled.revokedKeys };
    },
  );

  app.post(
    '/api/users/:id/enable',
    {
      ...administersInstallation,
      schema: {
        summary: 'Enable user',
        description: 'Keys can be created for the user again. Those that ended stay revoked.',
        params: numberPath,
        body: emptyBody.optional(),
        response: { 200: installationUserSchema, ...errorResponses },
      },
    },
    async (request) => {
      const enabled = await enableUser(pool, Number(request.params.id));
      if (!enabled) throw notFound();
      request.changedFields = enabled.changes;
      return enabled.user;
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
      request.changedFields = fieldChanges({}, request.body);
      return reply.code(201).send(project);
    },
  );

  app.patch(
    '/api/projects/:id',
    {
      ...administersInstallation,
      schema: {
        summary: 'Rename project',
        description: 'A project of the calling key. Its id, which rows of the source name, stays.',
        params: numberPath,
        body: renameProjectBody,
        response: { 200: projectSchema, ...errorResponses },
      },
    },
    async (request) => {
      const caller = callerOf(request);
      const id = Number(request.params.id);
      if (!caller.project_ids.includes(id)) throw notFound();
      // The trail of this project has it.
      request.caller = { ...caller, project_id: id };
      const renamed = await renameProject(pool, id, request.body.name);
      if (!renamed) throw notFound();
      request.changedFields = renamed.changes;
      return renamed.project;
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
