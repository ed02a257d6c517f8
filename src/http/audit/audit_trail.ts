import type { FastifyReply, FastifyRequest } from 'fastify';
import { basePathOf, type Settings } from '../../config/settings.ts';
import { type FieldChange, fieldChanges, type NewAuditEvent, recordAuditEvent } from '../../journal/audit.ts';
import type { Pool } from '../../journal/database.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { ApiError } from '../api_error.ts';
import type { Resource } from '../resource.ts';
import type { HttpApp } from '../route_context.ts';
import { userAgentOf } from '../plugins/sessions.ts';

/** The actions of the operations of every deployment that change something or send a secret, by method and path below the project. */
const commonActions: Readonly<Record<string, string>> = {
  'POST /console/session': 'session.sign_in',
  'DELETE /console/session': 'session.sign_out',
  'DELETE /console/sessions': 'session.sign_out_everywhere',
  'POST /batch_exports': 'batch_export.create',
  'PATCH /batch_exports/:id': 'batch_export.update',
  'PUT /batch_exports/:id': 'batch_export.update',
  'DELETE /batch_exports/:id': 'batch_export.delete',
  'POST /batch_exports/test': 'batch_export.test',
  'POST /batch_exports/:id/test': 'batch_export.test',
  'POST /batch_exports/run_test_step_new': 'batch_export.test',
  'POST /batch_exports/:id/run_test_step': 'batch_export.test',
  'POST /batch_exports/:id/pause': 'batch_export.pause',
  'POST /batch_exports/:id/unpause': 'batch_export.unpause',
  'POST /batch_exports/retry_failed': 'batch_export.retry_failed',
  'POST /batch_exports/:id/backfill': 'backfill.create',
  'POST /batch_exports/:batch_export_id/backfills': 'backfill.create',
  'POST /batch_exports/:batch_export_id/intervals/:start/difference': 'difference.decide',
  'POST /batch_exports/:batch_export_id/table/check': 'table.check',
  'POST /batch_exports/:batch_export_id/table/repair': 'table.repair',
  'POST /batch_exports/:batch_export_id/backfills/:id/cancel': 'backfill.cancel',
  'POST /batch_exports/:batch_export_id/backfills/:id/pause': 'backfill.pause',
  'POST /batch_exports/:batch_export_id/backfills/:id/unpause': 'backfill.unpause',
  'POST /batch_exports/:batch_export_id/runs/:id/retry': 'run.retry',
  'POST /batch_exports/:batch_export_id/runs/:id/cancel': 'run.cancel',
  'POST /batch_exports/:batch_export_id/intervals/:start/verifications': 'verification.create',
  'POST /source/map': 'source.map',
  'POST /keys': 'key.create',
  'DELETE /keys/:id': 'key.revoke',
  'POST /keys/:id/rotate': 'key.rotate',
  'POST /api/users': 'user.create',
  'POST /api/users/:id/disable': 'user.disable',
  'POST /api/users/:id/enable': 'user.enable',
  'POST /api/projects': 'project.create',
  'PATCH /api/projects/:id': 'project.rename',
};

/** Actions whose bodies are small and hold no secret: the trail has their fields. */
const recordedBodies: ReadonlySet<string> = new Set([
  'batch_export.retry_failed',
  'batch_export.unpause',
  'backfill.create',
  'run.retry',
]);

/** Operations with a body that only read. */
const readingOperations: ReadonlySet<string> = new Set([
  'POST /batch_exports/check',
  'POST /batch_exports/:id/check',
  'POST /query/check_auth_for_async',
  'POST /batch_exports/preview',
  'POST /batch_exports/estimate',
  'POST /batch_exports/:id/preview',
  'POST /batch_exports/:id/estimate',
  'POST /console/query/check',
]);

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Method and path below the project, as in `commonActions`. */
const operationOf = (method: string, url: string): string =>
  `${method} ${url.replace(/^\/api\/(projects|environments)\/:project_id(?=\/)/, '')}`;

/**
 * Records the requests of an application that change something, before they are answered. Reads are not recorded. Call it
 * before routes are added.
 */
export function addAuditHooks(
  app: HttpApp,
  {
    pool,
    logger,
    settings,
    resources,
  }: {
    readonly pool: Pool;
    readonly logger: Logger;
    readonly settings: Pick<Settings, 'EXPORTD_BASE_URL'>;
    readonly resources: readonly Pick<Resource, 'actions'>[];
  },
): void {
  const actions: Readonly<Record<string, string>> = Object.fromEntries(
    [commonActions, ...resources.map((one) => one.actions ?? {})].flatMap((one) => Object.entries(one)),
  );
  app.decorateRequest('createdObject', null);
  app.decorateRequest('changedFields', null);
  const basePath = basePathOf(settings);
  /** The codes of error responses. */
  const errorCodes = new WeakMap<FastifyRequest, string>();

  const recordChange = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { statusCode: status } = reply;
    const { caller } = request;
    const action = actions[operationOf(request.method, request.routeOptions.url ?? '')];
    const isChange = status < 400 || status >= 500;
    if (action === undefined || !caller || !isChange || isDryRun(request)) return;
    const event: NewAuditEvent = {
      team_id: caller.project_id,
      user_id: caller.actor_id,
      key_id: caller.key_id,
      address: request.ip,
      client: userAgentOf(request),
      action,
      object: objectOf(request, reply, action, basePath),
      outcome: status >= 500 ? 'failed' : status === 202 ? 'accepted' : 'done',
      status,
      detail: errorCodes.get(request) ?? null,
      changes: [...(request.changedFields ?? bodyFields(request, action))],
    };
    try {
      await recordAuditEvent(pool, event);
    } catch (error) {
      logger.error({ err: error, event }, 'Could not store an event of the audit trail.');
    }
  };

  app.addHook('onRoute', ({ method, url, config }) => {
    for (const one of [method].flat()) {
      const operation = operationOf(one, url);
      const isKnown = safeMethods.has(one) || operation in actions || readingOperations.has(operation);
      if (config?.scope !== undefined && !isKnown)
        throw new Error(
          `${operation} needs an action in audit_trail.ts or in those of its resource, or is an operation that only reads.`,
        );
    }
  });
  app.addHook('onError', (request, _reply, error, done) => {
    if (error instanceof ApiError) errorCodes.set(request, error.code);
    done();
  });
  app.addHook('onSend', async (request, reply) => {
    if (!safeMethods.has(request.method)) await recordChange(request, reply);
  });
}

const isDryRun = ({ body }: FastifyRequest): boolean =>
  typeof body === 'object' && body !== null && 'dry_run' in body && body.dry_run === true;

const bodyFields = ({ body }: FastifyRequest, action: string): readonly FieldChange[] =>
  recordedBodies.has(action) && typeof body === 'object' && body !== null ? fieldChanges({}, body) : [];

/** The path of the object below its project: what was created, else what the path names. */
function objectOf(request: FastifyRequest, reply: FastifyReply, action: string, basePath: string): string {
  if (request.createdObject !== null) return request.createdObject;
  const location = reply.getHeader('location');
  if (action.endsWith('.create') && typeof location === 'string')
    return pathInProject(new URL(location, 'http://host').pathname.slice(basePath.length));
  const pattern = (request.routeOptions.url ?? '').split('/');
  const lastId = pattern.findLastIndex((part) => part.startsWith(':'));
  const params = request.params as Readonly<Record<string, unknown>>;
  const named = pathInProject(
    pattern
      .slice(0, pattern[lastId] === ':project_id' ? lastId + 2 : lastId + 1)
      .map((part) => (part.startsWith(':') ? encodeURIComponent(String(params[part.slice(1)])) : part))
      .join('/'),
  );
  if (action === 'query.run') return [named, clientQueryIdOf(request)].filter(Boolean).join('/');
  return lastId < 0 ? 'session' : named;
}

const clientQueryIdOf = ({ body }: FastifyRequest): string | undefined => {
  const { client_query_id: id } = (body ?? {}) as { client_query_id?: unknown };
  return typeof id === 'string' ? encodeURIComponent(id) : undefined;
};

const pathInProject = (path: string): string =>
  path
    .replace(/^\/api\/(projects|environments)\/[^/]+\//, '')
    .replace(/^\/api\//, '')
    .replace(/^console\//, '')
    .replace(/\/+$/, '');
