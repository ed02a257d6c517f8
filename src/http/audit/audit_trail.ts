import type { FastifyReply, FastifyRequest } from 'fastify';
import { Counter, type Registry } from 'prom-client';
import { type NewAuditEvent, recordAuditEvents } from '../../journal/audit.ts';
import type { Pool } from '../../journal/database.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { ApiError } from '../api_error.ts';
import { clientOf, type FailedAuthentication, userAgentOf } from '../authentication.ts';
import type { HttpApp } from '../command_service.ts';

/** The actions of the operations that change something or send a secret, by method and path below the project. */
const actions: Readonly<Record<string, string>> = {
  'POST /console/session': 'session.sign_in',
  'DELETE /console/session': 'session.sign_out',
  'DELETE /console/sessions': 'session.sign_out_everywhere',
  'POST /batch_exports': 'batch_export.create',
  'PATCH /batch_exports/:id': 'batch_export.update',
  'DELETE /batch_exports/:id': 'batch_export.delete',
  'POST /batch_exports/test': 'batch_export.test',
  'POST /batch_exports/:id/test': 'batch_export.test',
  'POST /batch_exports/:id/pause': 'batch_export.pause',
  'POST /batch_exports/:id/unpause': 'batch_export.unpause',
  'POST /batch_exports/retry_failed': 'batch_export.retry_failed',
  'POST /batch_exports/:id/backfill': 'backfill.create',
  'POST /batch_exports/:batch_export_id/backfills': 'backfill.create',
  'POST /batch_exports/:batch_export_id/intervals/acknowledge': 'interval.acknowledge',
  'POST /batch_exports/:batch_export_id/table/check': 'table.check',
  'POST /batch_exports/:batch_export_id/table/repair': 'table.repair',
  'POST /batch_exports/:batch_export_id/backfills/:id/cancel': 'backfill.cancel',
  'POST /batch_exports/:batch_export_id/backfills/:id/pause': 'backfill.pause',
  'POST /batch_exports/:batch_export_id/backfills/:id/unpause': 'backfill.unpause',
  'POST /batch_exports/:batch_export_id/runs/:id/retry': 'run.retry',
  'POST /batch_exports/:batch_export_id/runs/:id/cancel': 'run.cancel',
  'POST /batch_exports/:batch_export_id/intervals/:start/verifications': 'verification.create',
  'POST /webhooks': 'webhook.create',
  'PATCH /webhooks/:id': 'webhook.update',
  'DELETE /webhooks/:id': 'webhook.delete',
  'POST /webhooks/:id/test': 'webhook.test',
  'POST /webhooks/:id/deliveries/:delivery_id/resend': 'webhook.resend',
  'POST /source/map': 'source.map',
  'POST /query': 'query.run',
  'DELETE /query/:id': 'query.cancel',
  'POST /keys': 'key.create',
  'DELETE /keys/:id': 'key.revoke',
  'POST /keys/:id/rotate': 'key.rotate',
  'POST /api/users': 'user.create',
  'POST /api/projects': 'project.create',
};

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

/** Method and path below the project, as in `actions`. */
const operationOf = (method: string, url: string): string =>
  `${method} ${url.replace(/^\/api\/(projects|environments)\/:project_id(?=\/)/, '')}`;

const actionOf = ({ method, routeOptions }: FastifyRequest): string | undefined =>
  actions[operationOf(method, routeOptions.url ?? '')];

/** Attempts of a minute that are counted in one event. */
interface Refusals {
  readonly minute: number;
  readonly event: NewAuditEvent;
  /** Those that no stored event counts yet. */
  pending: number;
}

/** Above this, refusals of a minute are counted together, so that an attacker with many addresses fills nothing. */
const maxRefusals = 1_000;
const flushIntervalMs = 10_000;

/** Records who changed what, and what was refused. */
interface AuditTrail {
  /** Records the requests of an application. Call it before routes are added. */
  addHooks(app: HttpApp): void;
  /** Counts a request without a valid key, and warns once per address and minute. */
  recordFailedAuthentication(outcome: FailedAuthentication, address: string): void;
  /** Stores the refusals that were only counted. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Creates the trail. Changes are stored before they are answered; refused attempts beside their responses, the first of an
 * address, route and minute at once and the number of the others when it is over. Reads are not recorded.
 */
export function createAuditTrail({
  pool,
  logger,
  metrics,
}: {
  readonly pool: Pool;
  readonly logger: Logger;
  readonly metrics: Registry;
}): AuditTrail {
  const failedAuthentications = new Counter({
    name: 'exportd_http_failed_authentications_total',
    help: 'Requests without a valid API key: missing, or rejected with 401, or limited with 429.',
    labelNames: ['outcome'],
    registers: [metrics],
  });
  const refusals = new Map<string, Refusals>();
  /** The addresses that the log has named in the current minute. */
  const warned = new Set<string>();
  let currentMinute = 0;
  let writing = Promise.resolve();

  const store = async (events: readonly NewAuditEvent[]): Promise<void> => {
    try {
      if (events.length > 0) await recordAuditEvents(pool, events);
    } catch (error) {
      logger.error({ err: error, events }, 'Could not store events of the audit trail.');
    }
  };
  /** One statement at a time, whatever is refused meanwhile. */
  const storeBeside = (events: readonly NewAuditEvent[]): Promise<void> => {
    writing = writing.then(() => store(events));
    return writing;
  };

  const flush = (olderThan = Infinity): Promise<void> => {
    const events: NewAuditEvent[] = [];
    for (const [id, { minute, event, pending }] of refusals) {
      if (minute >= olderThan) continue;
      if (pending > 0) events.push({ ...event, count: pending });
      refusals.delete(id);
    }
    return storeBeside(events);
  };
  const timer = setInterval(() => void flush(minuteNow()), flushIntervalMs);
  timer.unref();

  const recordFailedAuthentication: AuditTrail['recordFailedAuthentication'] = (outcome, address) => {
    failedAuthentications.inc({ outcome });
    const minute = minuteNow();
    if (minute !== currentMinute) {
      currentMinute = minute;
      warned.clear();
    }
    if (warned.has(address) || warned.size >= maxRefusals) return;
    warned.add(address);
    logger.warn(
      { address, outcome },
      'Failed authentication. More of this address in this minute are only counted.',
    );
  };

  const recordRefusal = (request: FastifyRequest, status: number, code: string | null): void => {
    const minute = minuteNow();
    if (code === 'not_authenticated') recordFailedAuthentication('missing', clientOf(request.ip));
    const route = `${request.method} ${request.routeOptions.url ?? ''}`;
    const event = { ...eventOf(request, route), outcome: 'refused', status, detail: code } as const;
    const id = [minute, event.address, event.key_id, route, status, code].join(' ');
    const counted = refusals.get(id);
    if (counted) counted.pending += 1;
    else if (refusals.size < maxRefusals) {
      refusals.set(id, { minute, event, pending: 0 });
      void storeBeside([event]);
    } else countTogether(minute, status);
  };
  /** Counts what has no entry of its own. */
  const countTogether = (minute: number, status: number): void => {
    const id = `${minute} ${status}`;
    const counted = refusals.get(id) ?? {
      minute,
      event: {
        ...nobody,
        action: 'various',
        object: null,
        outcome: 'refused',
        status,
        detail: null,
        count: 1,
      },
      pending: 0,
    };
    counted.pending += 1;
    refusals.set(id, counted);
  };

  const recordChange = (request: FastifyRequest, reply: FastifyReply): Promise<void> | undefined => {
    const { statusCode: status } = reply;
    const action = actionOf(request);
    const isChange = status < 400 || status >= 500;
    if (action === undefined || !request.caller || !isChange || isDryRun(request)) return undefined;
    const outcome = status >= 500 ? 'failed' : status === 202 ? 'accepted' : 'done';
    return store([
      {
        ...eventOf(request, objectOf(request, reply, action)),
        outcome,
        status,
        detail: errorCodes.get(request) ?? null,
      },
    ]);
  };

  /** The codes of error responses. */
  const errorCodes = new WeakMap<FastifyRequest, string>();

  return {
    addHooks: (app) => {
      app.addHook('onRoute', ({ method, url, config }) => {
        for (const one of [method].flat()) {
          const operation = operationOf(one, url);
          const isKnown = safeMethods.has(one) || operation in actions || readingOperations.has(operation);
          if (config?.scope !== undefined && !isKnown)
            throw new Error(
              `${operation} needs an action in audit_trail.ts, or is an operation that only reads.`,
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
      app.addHook('onResponse', (request, { statusCode: status }, done) => {
        if ([401, 403, 429].includes(status) || (status === 404 && request.isForeignProject))
          recordRefusal(request, status, errorCodes.get(request) ?? null);
        done();
      });
    },
    recordFailedAuthentication,
    flush: () => flush(),
    close: async () => {
      clearInterval(timer);
      await flush();
    },
  };
}

const minuteNow = (): number => Math.floor(Date.now() / 60_000);

const nobody = { team_id: null, user_id: null, key_id: null, address: null, client: null };

/** Who sent a request, and what it does with an object. */
function eventOf(request: FastifyRequest, object: string) {
  const { caller } = request;
  return {
    team_id: caller?.project_id ?? null,
    user_id: caller?.actor_id ?? null,
    key_id: caller?.key_id ?? null,
    address: request.ip,
    client: userAgentOf(request),
    action: actionOf(request) ?? 'read',
    object,
    count: 1,
  };
}

const isDryRun = ({ body }: FastifyRequest): boolean =>
  typeof body === 'object' && body !== null && 'dry_run' in body && body.dry_run === true;

/** The path of the object below its project: what was created, else what the path names. */
function objectOf(request: FastifyRequest, reply: FastifyReply, action: string): string {
  if (request.createdObject !== null) return request.createdObject;
  const location = reply.getHeader('location');
  if (action.endsWith('.create') && typeof location === 'string')
    return pathInProject(new URL(location, 'http://host').pathname);
  const pattern = (request.routeOptions.url ?? '').split('/');
  const lastId = pattern.findLastIndex((part) => part.startsWith(':'));
  const path = request.url.split('?', 1)[0]?.split('/') ?? [];
  const named = pathInProject(
    path.slice(0, pattern[lastId] === ':project_id' ? lastId + 2 : lastId + 1).join('/'),
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
    .replace(/^console\//, '')
    .replace(/\/+$/, '');
