import type { FastifyRequest } from 'fastify';
import { fieldChanges } from '../../journal/audit.ts';
import { ApiError, invalid, notFound } from '../api_error.ts';
import { type Preset, presets, type Scope } from '../scopes.ts';
import { type Caller, callerOf } from '../plugins/authentication.ts';
import { parseChoices } from '../requests.ts';
import type { ProjectRoutes } from '../route_context.ts';
import { offsetPage } from '../paging.ts';
import { errorResponses, noContent, pageOf } from '../schemas.ts';
import {
  createdKeySchema,
  createKeyBody,
  keyListQuery,
  keyPath,
  keySchema,
  revokeKeyQuery,
  rotateKeyBody,
} from './schema.ts';
import {
  type ApiKey,
  createKey,
  expiryProblem,
  findKey,
  keyFields,
  keyStatuses,
  listProjectKeys,
  revokeKey,
  rotateKey,
} from '../accounts/api_keys.ts';
import { findUser } from '../accounts/users.ts';
import { projectUrl } from '../request_urls.ts';

export const administersKeys = { config: { scope: 'key:admin' } } as const;

type KeyResponse = Omit<ApiKey, 'projects' | 'scopes'> & {
  projects: number[];
  scopes: ApiKey['scopes'][number][];
};

const toResponse = (key: ApiKey): KeyResponse => ({
  ...key,
  projects: [...key.projects],
  scopes: [...key.scopes],
});

/**
 * The scopes that a body asks for, all of them scopes of the caller.
 * @throws ApiError 400
 */
function requestedScopes(
  {
    scopes,
    preset,
  }: { readonly scopes?: readonly Scope[] | undefined; readonly preset?: Preset | undefined },
  caller: Caller,
): readonly Scope[] {
  const attr = preset === undefined ? 'scopes' : 'preset';
  if ((scopes === undefined) === (preset === undefined))
    throw invalid('Pass `scopes`, or the name of a `preset` instead of them.', attr);
  const requested = scopes ?? (preset === undefined ? [] : presets[preset].scopes);
  const lacking = requested.find((scope) => !caller.scopes.includes(scope));
  if (lacking !== undefined)
    throw invalid(`A key grants scopes that it has itself, and this one lacks '${lacking}'.`, attr);
  return requested;
}

const forbidden = (detail: string, attr: string | null = null): ApiError =>
  new ApiError(403, 'permission_denied', detail, { attr });

/** List, create, rotate and revoke the API keys of a project. */
export const keyRoutes: ProjectRoutes = (app, { pool, settings }) => {
  const maxLifetimeMs = settings.EXPORTD_KEY_MAX_LIFETIME;

  /** @throws ApiError 404 */
  const requireKey = async (request: FastifyRequest, id: string): Promise<ApiKey> => {
    const { project_id, project_ids } = callerOf(request);
    const found = await findKey(pool, { project_id, id, visible: project_ids });
    if (!found) throw notFound();
    return found;
  };
  /** Checks that the caller may create keys of a user, who exists. @throws ApiError 400 or 403 */
  const requireOwner = async (userId: number, { scopes }: Caller): Promise<void> => {
    if (!scopes.includes('installation:admin'))
      throw forbidden("Keys of other users need the scope 'installation:admin'.", 'user_id');
    const owner = await findUser(pool, userId);
    if (!owner) throw invalid('There is no user with this id.', 'user_id');
    if (owner.disabled_at !== null) throw invalid('The user is disabled. Enable the user first.', 'user_id');
  };
  /** Says that the calling key expires before this time; undefined if it does not. */
  const outlives = async (request: FastifyRequest, expiresAt: string | null): Promise<string | undefined> => {
    const own = await requireKey(request, callerOf(request).key_id);
    if (own.expires_at === null || expiresAt === null) return undefined;
    return Date.parse(expiresAt) <= Date.parse(own.expires_at)
      ? undefined
      : `A key lives no longer than the key that it is created with, which expires at ${own.expires_at}.`;
  };
  /** When the successor of a key would expire that is created now. */
  const successorExpiryMs = ({ created_at, expires_at }: ApiKey): number => {
    const lifetimeMs = expires_at === null ? Infinity : Date.parse(expires_at) - Date.parse(created_at);
    return Date.now() + Math.min(lifetimeMs, maxLifetimeMs ?? Infinity);
  };
  /** Also says in the audit trail what was created; not for which other projects, whose ids its readers may not know. */
  const createdResponse = async (request: FastifyRequest, { id, key }: { id: string; key: string }) => {
    const created = await requireKey(request, id);
    request.changedFields = keyFields(created);
    return { ...toResponse(created), key };
  };

  app.get(
    '/keys',
    {
      ...administersKeys,
      schema: {
        summary: 'List API keys',
        description: 'The keys of all users that give access to the project, newest first.',
        querystring: keyListQuery,
        response: { 200: pageOf(keySchema), ...errorResponses },
      },
    },
    async (request) => {
      const { project_id, project_ids } = callerOf(request);
      const statuses = parseChoices('status', request.query.status, keyStatuses);
      const filter = { project_id, statuses, visible: project_ids };
      const { count, results } = await listProjectKeys(pool, filter, request.query);
      return offsetPage(request, settings, request.query, { count, results: results.map(toResponse) });
    },
  );

  app.post(
    '/keys',
    {
      ...administersKeys,
      schema: {
        summary: 'Create API key',
        description:
          'Creates a key of the calling user, or with `installation:admin` of another one. It gets scopes and projects of the ' +
          'calling key alone, so that a key never grants more than it has.',
        body: createKeyBody,
        response: { 201: createdKeySchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      const { name, projects = [caller.project_id], expires_at = null } = request.body;
      const { user_id = caller.user_id } = request.body;
      const scopes = requestedScopes(request.body, caller);
      if (!projects.includes(caller.project_id))
        throw invalid(`Must contain ${caller.project_id}, the project of the path.`, 'projects');
      const foreign = projects.find((id) => !caller.project_ids.includes(id));
      if (foreign !== undefined)
        throw invalid(`The API key gives no access to project ${foreign}.`, 'projects');
      if (user_id !== caller.user_id) await requireOwner(user_id, caller);
      const problem = expiryProblem(expires_at, maxLifetimeMs) ?? (await outlives(request, expires_at));
      if (problem !== undefined) throw invalid(problem, 'expires_at');
      const created = await createKey(
        pool,
        {
          name,
          scopes,
          expires_at,
          project_ids: projects,
          user_id,
          created_by: caller.actor_id,
          created_with: caller.key_id,
        },
        maxLifetimeMs,
      );
      return reply
        .code(201)
        .header('location', projectUrl(request, settings, `/keys/${created.id}/`))
        .send(await createdResponse(request, created));
    },
  );

  app.get(
    '/keys/:id',
    {
      ...administersKeys,
      schema: {
        summary: 'Retrieve API key',
        params: keyPath,
        response: { 200: keySchema, ...errorResponses },
      },
    },
    async (request) => toResponse(await requireKey(request, request.params.id)),
  );

  app.post(
    '/keys/:id/rotate',
    {
      ...administersKeys,
      schema: {
        summary: 'Rotate API key',
        description:
          'Creates the successor of a key of the calling user: a new key with its name, scopes, projects and lifetime. Both ' +
          'work until the overlap ends. The calling key must have the scopes and projects of the key, and may not expire before ' +
          'the successor, unless it is the key itself.',
        params: keyPath,
        body: rotateKeyBody,
        response: { 201: createdKeySchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      const { id } = await requireKey(request, request.params.id);
      // Also the projects that the caller does not see.
      const whole = await findKey(pool, { project_id: caller.project_id, id, visible: null });
      if (!whole) throw notFound();
      if (whole.user.id !== caller.user_id)
        throw forbidden('A key is rotated by its owner. Revoke it, and let the owner create another.');
      if (
        !whole.scopes.every((scope) => caller.scopes.includes(scope)) ||
        !whole.projects.every((project) => caller.project_ids.includes(project))
      )
        throw forbidden('A key is rotated with a key that has all of its scopes and projects.');
      const own = await requireKey(request, caller.key_id);
      if (own.id !== id && own.expires_at !== null && Date.parse(own.expires_at) < successorExpiryMs(whole))
        throw forbidden(
          `The successor would live longer than the calling key, which expires at ${own.expires_at}. Rotate the key with itself.`,
        );
      const created = await rotateKey(pool, id, {
        overlapMs: request.body.overlap_seconds * 1_000,
        maxLifetimeMs,
        createdBy: caller.actor_id,
        createdWith: caller.key_id,
      });
      if (!created)
        throw new ApiError(409, 'conflict', 'The key has expired or was revoked. Create another.');
      return reply
        .code(201)
        .header('location', projectUrl(request, settings, `/keys/${created.id}/`))
        .send(await createdResponse(request, created));
    },
  );

  app.delete(
    '/keys/:id',
    {
      ...administersKeys,
      schema: {
        summary: 'Revoke API key',
        description:
          'Ends the key at once, with its sessions. A key that also covers projects that the calling key does not cover keeps ' +
          'those. Keys that were created with it stay, unless `descendants=true`.',
        params: keyPath,
        querystring: revokeKeyQuery,
        response: { 204: noContent, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { id, status } = await requireKey(request, request.params.id);
      const revocation = request.query.descendants === 'true' ? 'descendants' : 'key';
      await revokeKey(pool, id, callerOf(request).project_ids, revocation);
      request.changedFields = fieldChanges({ status }, { status: 'revoked' });
      return reply.code(204).send();
    },
  );
};
