import { bounds } from '../../config/bounds.ts';
import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import { version } from '../../telemetry/version.ts';
import { ApiError } from '../api_error.ts';
import type { Authentication, Caller } from '../plugins/authentication.ts';
import { endedSessions, type Session, sessionResponse, signInBody } from '../projects/schema.ts';
import type { HttpApp } from '../route_context.ts';
import { errorResponses, noContent } from '../schemas.ts';
import { findKey } from '../accounts/api_keys.ts';
import { findProjects } from '../accounts/projects.ts';
import { findUser } from '../accounts/users.ts';
import { requireSameOrigin } from '../plugins/same_origin.ts';
import { endSession, endSessionsOfUser, sessionHashOf, startSession } from '../plugins/sessions.ts';

const path = '/console/session';

/** What the routes of sessions use. */
interface SessionContext {
  readonly pool: Pool;
  readonly settings: Settings;
  readonly authentication: Authentication;
  /** Returns the URL of the list of a project's workflows in the Temporal UI; null when no UI is configured. */
  readonly projectLink: (projectId: number) => string | null;
}

/** Signs in to the console with an API key, and out of it. */
export function sessionRoutes(
  app: HttpApp,
  { pool, settings, authentication, projectLink }: SessionContext,
): void {
  app.post(
    path,
    {
      bodyLimit: bounds.sessionBody.max,
      schema: {
        hide: true,
        body: signInBody,
        response: { 200: sessionResponse, ...errorResponses },
      },
      onRequest: (request, _reply, done) => {
        requireSameOrigin(request);
        done();
      },
    },
    async (request, reply) => {
      const { key } = request.body;
      const caller = await authentication.callerOfKey(request, key);
      if (!caller)
        throw new ApiError(
          401,
          'authentication_failed',
          'This API key is unknown, expired or revoked. "npx exportd key create --database --project 1 --preset owner" makes another.',
          { attr: 'key' },
        );
      await startSession(pool, settings, caller.key_id, request, reply);
      request.caller = caller;
      return { session: await sessionOf(pool, projectLink, caller) };
    },
  );

  app.get(
    path,
    { schema: { hide: true, response: { 200: sessionResponse, ...errorResponses } } },
    async (request, reply) => {
      void reply.header('cache-control', 'no-store');
      if (!sessionHashOf(request, settings)) return { session: null };
      const caller = await authentication.callerOfSession(request);
      if (caller) return { session: await sessionOf(pool, projectLink, caller) };
      await endSession(pool, settings, request, reply);
      return { session: null };
    },
  );

  app.delete(
    path,
    {
      schema: { hide: true, response: { 204: noContent, ...errorResponses } },
      onRequest: (request, _reply, done) => {
        requireSameOrigin(request);
        done();
      },
    },
    async (request, reply) => {
      request.caller = (await authentication.callerOfSession(request)) ?? null;
      await endSession(pool, settings, request, reply);
      return reply.code(204).send();
    },
  );

  app.delete(
    '/console/sessions',
    {
      schema: { hide: true, response: { 200: endedSessions, ...errorResponses } },
      onRequest: (request, _reply, done) => {
        requireSameOrigin(request);
        done();
      },
    },
    async (request, reply) => {
      const caller = await authentication.callerOfSession(request);
      if (!caller) throw new ApiError(401, 'not_authenticated', 'Sign in first.');
      request.caller = caller;
      const ended = await endSessionsOfUser(pool, caller.user_id);
      await endSession(pool, settings, request, reply);
      return { ended };
    },
  );
}

async function sessionOf(
  pool: Pool,
  projectLink: SessionContext['projectLink'],
  caller: Caller,
): Promise<Session> {
  const { key_id: id, project_id } = caller;
  const [projects, user, actor, key] = await Promise.all([
    findProjects(pool, caller.project_ids),
    findUser(pool, caller.user_id),
    findUser(pool, caller.actor_id),
    findKey(pool, { id, project_id, visible: null }),
  ]);
  const [project] = projects;
  if (!project || !user || !actor || !key)
    throw new Error(`The project or user of API key ${caller.key_id} does not exist.`);
  return {
    user: { id: user.id, first_name: user.first_name, last_name: user.last_name, email: user.email },
    actor: { id: actor.id, email: actor.email },
    project,
    projects,
    scopes: [...caller.scopes],
    key: { id, name: key.name, prefix: key.prefix },
    version,
    temporal_ui: projectLink(project.id),
  };
}
