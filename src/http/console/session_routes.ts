import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import { version } from '../../telemetry/version.ts';
import { findProjects, findUser } from '../accounts.ts';
import { ApiError } from '../api_error.ts';
import { callerOfKey, type Caller } from '../authentication.ts';
import type { HttpApp } from '../route_context.ts';
import { errorResponses, noContent } from '../schemas/common.ts';
import { sessionResponse, signInBody, type Session } from '../schemas/console_session.ts';
import { clearSessionCookie, requireSameOrigin, sessionKeyOf, setSessionCookie } from './session_cookie.ts';
import { createSignInLimiter } from './sign_in_limiter.ts';

const path = '/console/session';

/** Signs in to the console and out of it. The session is the API key in a cookie: no state is kept in the server. */
export function sessionRoutes(
  app: HttpApp,
  { pool, settings }: { readonly pool: Pool; readonly settings: Settings },
): void {
  const limiter = createSignInLimiter({ maxFailures: 10, windowMs: 60_000, now: Date.now });

  app.post(
    path,
    {
      schema: {
        hide: true,
        body: signInBody,
        response: { 200: sessionResponse, ...errorResponses },
      },
      onRequest: (request, _reply, done) => {
        requireSameOrigin(request);
        limiter.admit(request.ip);
        done();
      },
    },
    async (request, reply) => {
      const { key } = request.body;
      const caller = await callerOfKey(pool, key);
      if (!caller) {
        limiter.recordFailure(request.ip);
        throw new ApiError(
          401,
          'authentication_failed',
          'This API key is unknown or revoked. "npx exportd key create" makes another.',
          { attr: 'key' },
        );
      }
      void setSessionCookie(request, reply, settings, key);
      return { session: await sessionOf(pool, settings, caller) };
    },
  );

  app.get(
    path,
    { schema: { hide: true, response: { 200: sessionResponse, ...errorResponses } } },
    async (request, reply) => {
      void reply.header('cache-control', 'no-store');
      const key = sessionKeyOf(request);
      if (key === undefined) return { session: null };
      const caller = await callerOfKey(pool, key);
      if (caller) return { session: await sessionOf(pool, settings, caller) };
      void clearSessionCookie(request, reply, settings);
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
    async (request, reply) => clearSessionCookie(request, reply, settings).code(204).send(),
  );
}

async function sessionOf(pool: Pool, settings: Settings, caller: Caller): Promise<Session> {
  const [[project], user] = await Promise.all([
    findProjects(pool, [caller.project_id]),
    findUser(pool, caller.user_id),
  ]);
  if (!project || !user) throw new Error(`The project or user of API key ${caller.key_id} does not exist.`);
  return {
    user: { id: user.id, first_name: user.first_name, last_name: user.last_name, email: user.email },
    project,
    scopes: [...caller.scopes],
    version,
    temporal_ui: settings.TEMPORAL_UI_URL ?? null,
  };
}
