import fastifyCookie from '@fastify/cookie';
import fastifySwagger from '@fastify/swagger';
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import findMyWay from 'find-my-way';
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Transform } from 'node:stream';
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import { Histogram, type Registry } from 'prom-client';
import { searchAttributes } from '../../workflows/activity_options.ts';
import { roundedInteger, withExactNumbers } from '../client/exact_numbers.ts';
import { createTurns } from '../concurrency/keyed_semaphore.ts';
import { bounds, boundText } from '../config/bounds.ts';
import type { KeyRing } from '../config/key_ring.ts';
import { basePathOf, type Settings } from '../config/settings.ts';
import { type DeploymentSettings, workflowIds } from '../contract/workflow_inputs.ts';
import { createEncoderPool } from '../encoding/encode_blocks.ts';
import type { Pool } from '../journal/database.ts';
import type { QueryService } from '../queries/handle_query.ts';
import { createQueryRateLimiter } from '../queries/query_slots.ts';
import type { Logger } from '../telemetry/logger.ts';
import { sendsTraces } from '../telemetry/tracing.ts';
import type { WebhookTestClient } from '../temporal/clients/notification_client.ts';
import type { DestinationTestClient, VerificationClient } from '../temporal/clients/verification_client.ts';
import { beginSpan, failSpan, SpanKind } from '../tracing/spans.ts';
import { ApiError, invalid, notFound } from './api_error.ts';
import { addAuditHooks } from './audit/audit_trail.ts';
import { auditRoutes, consoleAuditRoutes } from './audit/routes.ts';
import { createAuthentication, createAuthenticationLimiter } from './authentication.ts';
import type { DryRunService } from './backfills/dry_run.ts';
import { backfillRoutes } from './backfills/routes.ts';
import {
  batchExportActionRoutes,
  batchExportCheckRoutes,
  batchExportRoutes,
  destinationTestRoutes,
} from './batch_exports/routes.ts';
import {
  createCommandOutcomes,
  createCommandService,
  type HttpApp,
  type RouteContext,
  type RunExecutions,
  type ScheduleSignaller,
} from './command_service.ts';
import { consoleRoutes } from './console/console_routes.ts';
import { consoleCoverageRoutes } from './console/coverage.ts';
import { consoleExportRoutes } from './console/export.ts';
import { intervalDetailRoutes, verificationRoutes } from './console/interval_routes.ts';
import { consoleOverviewRoutes } from './console/overview.ts';
import { previewRoutes } from './console/previews.ts';
import { consoleQueryRoutes } from './console/query_editor.ts';
import { type SessionContext, sessionRoutes } from './console/session_routes.ts';
import { dashboardRoutes } from './dashboards/routes.ts';
import { attrOf, sendError } from './error_handler.ts';
import { intervalRoutes, logRoutes, readingRoutes } from './intervals/routes.ts';
import { keyRoutes } from './keys/routes.ts';
import { monitoringRoutes, type ServerMonitor } from './monitoring.ts';
import { addApiDocs, documentOptions } from './openapi/openapi.ts';
import { installationRoutes, projectRoutes, projectUserRoutes } from './projects/routes.ts';
import { draftSqlRoutes, queryAuthorizationRoutes, queryRoutes } from './query/routes.ts';
import { createRefusals } from './refusals.ts';
import { createRequestShares } from './request_shares.ts';
import { failedRunRoutes, runRoutes } from './runs/routes.ts';
import { tableRoutes } from './tables/routes.ts';
import type { ResendService } from './webhooks/requested_deliveries.ts';
import { webhookDeliveryRoutes, webhookRoutes } from './webhooks/routes.ts';

/** How paths are matched, by the router and by what tells an unknown path from a method that a path does not have. */
const routerOptions = {
  ignoreTrailingSlash: true,
  // Query ids are chosen by clients, and percent encoding lengthens them.
  maxParamLength: 2_000,
};

/**
 * Responds 405 with the header `Allow` to methods that a path does not have, also where a path with a parameter has them, as
 * `query/:id` has those of `query/check`. Call it before routes are added. It keeps the paths in a router of its own: a route
 * for each other method of each path were thousands, which every start would wait for.
 */
function rejectOtherMethods(app: FastifyInstance): void {
  const paths = findMyWay(routerOptions);
  const methodsOf = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    let known = methodsOf.get(url);
    if (!known) {
      methodsOf.set(url, (known = new Set()));
      paths.on('GET', url, () => undefined, known);
    }
    for (const one of [method].flat()) known.add(one);
    if (known.has('GET')) known.add('HEAD');
  });
  // Runs before the body is parsed, so that an invalid body does not hide the 405.
  app.addHook('onRequest', (request, _reply, done) => {
    const known = paths.find('GET', request.url)?.store as ReadonlySet<string> | null | undefined;
    if (!known || known.has(request.method)) {
      done();
      return;
    }
    const allow = [...known].sort().join(', ');
    const message = `Method ${request.method} is not allowed. Allowed methods: ${allow}.`;
    done(new ApiError(405, 'method_not_allowed', message, { headers: { allow } }));
  });
}

/**
 * Parses JSON bodies. An empty body is accepted with any content type, since clients send
 * `Content-Type: application/json` with requests that have no body.
 */
function addBodyParsers(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, bytes, done) => {
    // Decoding would silently store replacement characters.
    if (!isUtf8(bytes)) {
      done(new ApiError(400, 'parse_error', 'JSON parse error: the body is not valid UTF-8.'));
      return;
    }
    // Parsing ten thousands of names or lists keeps all other requests waiting.
    const problem = sizeProblem(bytes);
    if (problem !== undefined) {
      done(invalid(problem, null));
      return;
    }
    const text = bytes.toString();
    if (text.trim() === '') {
      done(null, undefined);
      return;
    }
    const parsed = (error: Error | null, body?: unknown) => {
      if (error) {
        done(new ApiError(400, 'parse_error', `JSON parse error: ${error.message}`));
        return;
      }
      const rounded = roundedInteger(text);
      if (rounded === undefined) done(null, body);
      else
        done(
          invalid(
            `The integer ${rounded.slice(0, 40)} has more digits than a number keeps. Send it as a string.`,
            null,
          ),
        );
    };
    void parseJson(request, text, parsed);
  });
  app.addContentTypeParser<string>('*', { parseAs: 'string' }, (_request, text, done) => {
    if (text === '') done(null, undefined);
    else
      done(
        new ApiError(
          415,
          'unsupported_media_type',
          'Unsupported content type. Send the body as application/json.',
        ),
      );
  });
  app.addHook('preParsing', (request, _reply, body, done) => {
    // A body of a million chunks of a byte would take 400 MB.
    done(null, request.headers['transfer-encoding'] === undefined ? body : body.pipe(joinChunks()));
  });
  app.addHook('preValidation', (request, _reply, done) => {
    // Body schemas treat a missing body as an empty object.
    if (request.body === undefined && request.routeOptions.schema?.body !== undefined) request.body = {};
    for (const part of [request.body, request.query, request.params]) {
      const problem = findProblem(part);
      if (problem) {
        done(invalid(problem.detail, attrOf(problem.path)));
        return;
      }
    }
    done();
  });
}

/** Joins chunks to blocks of at most 64 KiB. */
function joinChunks(): Transform {
  let block = Buffer.allocUnsafe(65_536);
  let length = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      for (let at = 0; at < chunk.length;) {
        const copied = chunk.copy(block, length, at);
        at += copied;
        length += copied;
        if (length < block.length) continue;
        this.push(block);
        block = Buffer.allocUnsafe(block.length);
        length = 0;
      }
      done();
    },
    flush(done) {
      done(null, block.subarray(0, length));
    },
  });
}

const [quote, backslash, colon, comma] = Buffer.from('"\\:,');

/** Writes responses; numbers that JavaScript cannot hold keep all of their digits. */
const exactSerializer: typeof serializerCompiler = (route) => {
  const write = serializerCompiler(route);
  return (data) => withExactNumbers(() => write(data));
};

/** Why JSON is too wide to be parsed, told without parsing it; undefined if it is not. */
function sizeProblem(json: Buffer): string | undefined {
  let [fields, commas] = [0, 0];
  let isInString = false;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === quote) isInString = !isInString;
    else if (isInString) {
      if (byte === backslash) at += 1;
    } else if (byte === colon) fields += 1;
    else if (byte === comma) commas += 1;
  }
  if (fields > bounds.bodyFields.max)
    return `A body has at most ${boundText(bounds.bodyFields)} fields, with those of inner objects.`;
  return commas >= bounds.bodyValues.max
    ? `A body has at most ${boundText(bounds.bodyValues)} values, with those of inner lists and objects.`
    : undefined;
}

/** Why a value of a request is rejected, and where it is. */
interface ValueProblem {
  readonly detail: string;
  readonly path: readonly string[];
}

/**
 * Finds the first value that is nested too deeply, has too many items, or that PostgreSQL cannot store. The
 * bounds are larger than those of any schema: they keep validation, and its messages, short. Undefined if there is none.
 */
function findProblem(value: unknown, levels = bounds.bodyDepth.max): ValueProblem | undefined {
  if (typeof value === 'string')
    return isStorable(value)
      ? undefined
      : { detail: 'Null characters and unpaired surrogates are not allowed.', path: [] };
  if (typeof value !== 'object' || value === null) return undefined;
  if (levels === 0)
    return {
      detail: `The body is nested too deeply: at most ${boundText(bounds.bodyDepth)} are allowed.`,
      path: [],
    };
  if (Array.isArray(value) && value.length > bounds.bodyItems.max)
    return { detail: `A list has at most ${boundText(bounds.bodyItems)} items.`, path: [] };
  for (const [key, inner] of Object.entries(value)) {
    if (!isStorable(key))
      return { detail: 'Null characters and unpaired surrogates are not allowed.', path: ['?'] };
    if (key.length > bounds.bodyFieldName.max)
      return { detail: `The name of a field has at most ${boundText(bounds.bodyFieldName)}.`, path: [] };
    const problem = findProblem(inner, levels - 1);
    if (problem) return { ...problem, path: [key, ...problem.path] };
  }
  return undefined;
}

/** Whether PostgreSQL can store a string. */
const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();

/** How long browsers use https alone once they have, in seconds: a year. */
const httpsSeconds = 31_536_000;

/** Adds the headers that every response has. */
function addSecurityHeaders(
  app: FastifyInstance,
  { EXPORTD_BASE_URL }: Pick<Settings, 'EXPORTD_BASE_URL'>,
): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    // Files of the console have names that change with their content, and say so.
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store');
    reply.header('x-content-type-options', 'nosniff');
    if (request.protocol === 'https' || EXPORTD_BASE_URL?.startsWith('https:') === true)
      reply.header('strict-transport-security', `max-age=${httpsSeconds}`);
    done(null, payload);
  });
}

/** The methods that routes have. Metrics name no others, since a client can send any method. */
const knownMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS']);

/**
 * Counts requests by route. What a client without a key can send adds a bounded number of series: requests that no route
 * has, and those that are not authenticated, are counted without their path.
 */
function countRequests(app: HttpApp, metrics: Registry): void {
  const seconds = new Histogram({
    name: 'exportd_http_request_duration_seconds',
    help: 'Duration of requests by route.',
    labelNames: ['method', 'route', 'status'],
    registers: [metrics],
  });
  app.addHook('onResponse', (request, reply, done) => {
    const method = knownMethods.has(request.method) ? request.method : 'other';
    const labels = { method, route: routeOf(request, reply), status: String(reply.statusCode) };
    seconds.observe(labels, reply.elapsedTime / 1_000);
    done();
  });
}

/** The route of a request for metrics: `unmatched` if no route has its path and method, `unauthenticated` without a key. */
function routeOf({ routeOptions: { url }, caller }: FastifyRequest, { statusCode }: FastifyReply): string {
  if (url === undefined || statusCode === 405) return 'unmatched';
  return url.startsWith('/api/') && caller === null && statusCode !== 200 ? 'unauthenticated' : url;
}

/**
 * Gives every request to the API a span, in the trace of the caller if it sent one. It shows method, route and status, and
 * neither the URL nor anything of headers and body. Call it before other hooks are added.
 */
export function addRequestSpans(app: FastifyInstance): void {
  const begun = new WeakMap<FastifyRequest, ReturnType<typeof beginSpan>>();
  const errors = new WeakMap<FastifyRequest, Error>();

  app.addHook('onRequest', (request, _reply, done) => {
    const { url: route } = request.routeOptions;
    if (!route?.startsWith('/api/')) {
      done();
      return;
    }
    const attributes = { 'http.request.method': request.method, 'http.route': route };
    const { traceparent } = request.headers;
    const parent = typeof traceparent === 'string' ? traceparent : null;
    const current = beginSpan(`${request.method} ${route}`, { kind: SpanKind.SERVER, attributes }, parent);
    begun.set(request, current);
    current.run(done);
  });

  // The body is parsed in callbacks of the connection, outside of the span.
  app.addHook('preValidation', (request, _reply, done) => {
    const current = begun.get(request);
    if (current) current.run(done);
    else done();
  });

  app.addHook('onError', (request, _reply, error, done) => {
    errors.set(request, error);
    done();
  });

  app.addHook('onResponse', (request, reply, done) => {
    const span = begun.get(request)?.span;
    if (span) {
      span.setAttribute('http.response.status_code', reply.statusCode);
      // An error of the caller is a response like any other.
      if (reply.statusCode >= 500) failSpan(span, errors.get(request));
      span.end();
    }
    done();
  });
}

/**
 * Links to the Temporal UI: of a run to the workflow id of its interval, which lists all runs of that interval; of an export
 * and of a project to their workflows, by their search attributes.
 */
function createTemporalLinks(
  settings: DeploymentSettings & Pick<Settings, 'TEMPORAL_UI_URL' | 'TEMPORAL_NAMESPACE'>,
): Pick<RouteContext, 'runLink' | 'exportLink'> & Pick<SessionContext, 'projectLink'> {
  const { TEMPORAL_UI_URL, TEMPORAL_NAMESPACE } = settings;
  if (TEMPORAL_UI_URL === undefined)
    return { runLink: () => null, exportLink: () => null, projectLink: () => null };
  const base = `${TEMPORAL_UI_URL.replace(/\/+$/, '')}/namespaces/${encodeURIComponent(TEMPORAL_NAMESPACE)}/workflows`;
  return {
    runLink: (run) => `${base}/${encodeURIComponent(workflowIds(settings).run(run))}`,
    exportLink: (id) => `${base}?query=${encodeURIComponent(`${searchAttributes.batchExport.name}="${id}"`)}`,
    projectLink: (id) => `${base}?query=${encodeURIComponent(`${searchAttributes.project.name}="${id}"`)}`,
  };
}

/** What the HTTP API is built from. */
export interface HttpDependencies {
  readonly settings: Settings;
  /** Needs one connection more than concurrent requests use, to listen for command outcomes. */
  readonly pool: Pool;
  /** Read-only; for dry runs. */
  readonly source: DryRunService['source'];
  readonly signaller: ScheduleSignaller;
  readonly destinationTests: DestinationTestClient;
  readonly webhookTests: WebhookTestClient;
  readonly verifications: VerificationClient;
  /** Starts the deliveries that are sent again. */
  readonly notifications: ResendService['notifications'];
  readonly executions: RunExecutions;
  readonly queries: QueryService;
  readonly keyRing: KeyRing;
  /** Fingerprint requests that have an Idempotency-Key. The first key makes them, all recognize them. */
  readonly requestKeys: readonly Buffer[];
  readonly logger: Logger;
  /** Connections of their own, so that keys are found while all others are busy. */
  readonly authenticationPool: Pool;
  readonly monitor: ServerMonitor;
  readonly metrics: Registry;
}

const projectRoots = ['/api/projects/:project_id', '/api/environments/:project_id'];
const resources = [
  batchExportRoutes,
  batchExportCheckRoutes,
  destinationTestRoutes,
  batchExportActionRoutes,
  failedRunRoutes,
  runRoutes,
  backfillRoutes,
  intervalRoutes,
  intervalDetailRoutes,
  verificationRoutes,
  previewRoutes,
  readingRoutes,
  tableRoutes,
  logRoutes,
  webhookRoutes,
  webhookDeliveryRoutes,
  dashboardRoutes,
  keyRoutes,
  projectUserRoutes,
  auditRoutes,
  queryAuthorizationRoutes,
  draftSqlRoutes,
  queryRoutes,
];
/** What only the console reads. */
const consoleResources = [
  consoleOverviewRoutes,
  consoleExportRoutes,
  consoleCoverageRoutes,
  consoleQueryRoutes,
  consoleAuditRoutes,
];

/** How often connections are checked for requests that take too long, in milliseconds. */
const timeoutCheckMs = 1_000;

/** Failed authentications are counted for this long, in milliseconds. */
const authenticationWindowMs = 60_000;

/**
 * Closes connections that never sent anything, such as those that browsers open in advance. Node counts them neither among
 * idle ones nor, once it closes, among those that take too long, so that closing would wait for their clients.
 */
function closeUnusedConnections(app: HttpApp): void {
  const connections = new Set<Socket>();
  app.server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  app.addHook('preClose', (done) => {
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy();
    done();
  });
}

/** The URL of a request as routes know it: without the path of `EXPORTD_BASE_URL`. */
function withoutBasePath(url: string, basePath: string): string {
  const rest = basePath !== '' && url.startsWith(basePath) ? url.slice(basePath.length) : url;
  // Another path may begin with the same characters.
  if (rest !== '' && !/^[/?]/.test(rest)) return url;
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Builds the application without listening. Closing it leaves `dependencies` open. */
export async function createApp(dependencies: HttpDependencies): Promise<HttpApp> {
  const { settings, pool, logger } = dependencies;
  const basePath = basePathOf(settings);
  const loggerInstance: FastifyBaseLogger = logger;
  const app: HttpApp = fastify({
    loggerInstance,
    logController: new LogController({ disableRequestLogging: true }),
    routerOptions,
    bodyLimit: settings.EXPORTD_HTTP_MAX_BODY_SIZE,
    requestTimeout: settings.EXPORTD_HTTP_REQUEST_TIMEOUT,
    http: {
      headersTimeout: settings.EXPORTD_HTTP_REQUEST_TIMEOUT,
      connectionsCheckingInterval: timeoutCheckMs,
    },
    // A proxy that serves exportd below a path may leave the path in or take it out.
    rewriteUrl: ({ url = '/' }) => withoutBasePath(url, basePath),
    trustProxy: settings.EXPORTD_TRUSTED_PROXIES ?? false,
    return503OnClosing: true,
    // Without them, fastify loads two compilers of JSON Schema.
    schemaController: {
      compilersFactory: {
        buildValidator: () => validatorCompiler as never,
        buildSerializer: () => exactSerializer as never,
      },
    },
    // Requests with an undecodable URL reach neither a route nor the error handler.
    frameworkErrors: (error, request, reply) => {
      void sendError(error, request, reply);
    },
  }).withTypeProvider<ZodTypeProvider>();
  app.server.maxConnections = bounds.connections.max;
  closeUnusedConnections(app);
  paceConnections(app.server);
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(exactSerializer);
  app.setErrorHandler(sendError);
  app.decorateRequest('caller', null);
  app.decorateRequest('createdObject', null);
  app.decorateRequest('changedFields', null);
  addAuditHooks(app, dependencies);
  const refusals = createRefusals(dependencies);
  app.addHook('onResponse', (request, { statusCode }, done) => {
    refusals.recordResponse(request, statusCode);
    done();
  });
  if (sendsTraces(settings)) addRequestSpans(app);
  addSecurityHeaders(app, settings);
  addBodyParsers(app);
  rejectOtherMethods(app);
  if (settings.EXPORTD_CONSOLE) await app.register(fastifyCookie);

  await app.register(fastifySwagger, documentOptions);

  const limiter = createAuthenticationLimiter({
    maxFailures: settings.EXPORTD_MAX_FAILED_AUTHENTICATIONS,
    windowMs: authenticationWindowMs,
    now: Date.now,
    onFailure: (outcome, address) => refusals.recordFailedAuthentication(outcome, address),
  });
  const authentication = createAuthentication({ ...dependencies, limiter, refusals });
  app.addHook('onClose', () => authentication.close());
  const outcomes = createCommandOutcomes(pool, logger);
  app.addHook('onClose', () => outcomes.close());
  // Closing waits for pending responses, and queries can run longer than the shutdown timeout.
  app.addHook('preClose', (done) => {
    dependencies.queries.running.interrupt();
    done();
  });
  const commandService = createCommandService({
    ...dependencies,
    outcomes,
    timeoutMs: settings.EXPORTD_COMMAND_TIMEOUT,
  });
  const { projectLink, ...links } = createTemporalLinks(settings);
  const encoders = createEncoderPool({ threads: 1 });
  app.addHook('onClose', () => encoders.close());
  const context: RouteContext = {
    ...dependencies,
    encoders,
    shares: createRequestShares(),
    commandService,
    queryRateLimiter: createQueryRateLimiter(pool, settings.EXPORTD_QUERIES_PER_HOUR),
    ...links,
  };

  countRequests(app, dependencies.metrics);
  monitoringRoutes(app, dependencies.monitor, authentication);
  if (settings.EXPORTD_CONSOLE) {
    consoleRoutes(app, settings);
    sessionRoutes(app, { ...dependencies, authentication, projectLink });
  } else
    app.setNotFoundHandler(() => {
      throw notFound();
    });
  await addApiDocs(app, settings);
  await app.register(async (scope: HttpApp) => {
    scope.addHook('onRequest', (request) => authentication.authenticate(request));
    projectRoutes(scope, context);
    installationRoutes(scope, context);
    for (const prefix of projectRoots)
      await scope.register(
        (project: HttpApp, _options, done) => {
          for (const addRoutes of resources) addRoutes(project, context);
          if (settings.EXPORTD_CONSOLE) for (const addRoutes of consoleResources) addRoutes(project, context);
          done();
        },
        { prefix },
      );
  });
  return app;
}

/** What Node's parser gets at once: about ten of the shortest requests. */
const headBytes = 512;
/** The same within the body of a request. */
const bodyBytes = 16_384;
/** How many slices are parsed before other events of the process have their turn. */
const slicesOfTurn = 4;

/**
 * Makes the connections of a server take turns. Node reads 64 KiB at a time and starts every request in it before anything
 * else happens, so 20 connections with 1,000 pipelined requests each would silence the server for over a second. Here a
 * connection hands over a slice, then the next connection its slice. What does not fit waits until the requests before it
 * are answered, and its connection is not read.
 */
function paceConnections(server: Server): void {
  const paces = new WeakMap<Socket, Pace>();
  const wait = createTurns(slicesOfTurn);
  server.on('connection', (socket: Socket) => {
    paces.set(socket, paceConnection(socket, wait));
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    paces.get(request.socket)?.began(request, response);
  });
}

/** The pace of a connection. */
interface Pace {
  /** A request has arrived, up to its body. */
  began(request: IncomingMessage, response: ServerResponse): void;
}

/** Splits what a connection reads into slices. `wait` calls back when it is the turn of the next slice. */
function paceConnection(socket: Socket, wait: (handOver: () => void) => void): Pace {
  const push = socket.push.bind(socket);
  const read = socket._read.bind(socket);
  let rest: Buffer = Buffer.alloc(0);
  let waits = false;
  let unanswered = 0;
  let newest: IncomingMessage | undefined;
  const isInBody = () => newest?.complete === false;
  const handOver = () => {
    waits = false;
    // A connection whose responses are not read is paused by Node; it resumes with the event.
    if (socket.destroyed || socket.isPaused() || (unanswered > 0 && !isInBody())) return;
    const bytes = isInBody() ? bodyBytes : headBytes;
    const slice = rest.subarray(0, bytes);
    rest = rest.subarray(bytes);
    push(slice);
  };
  const takeTurn = () => {
    if (waits || rest.length === 0) return;
    waits = true;
    wait(handOver);
  };
  socket.push = (chunk: Buffer | null) => {
    if (chunk === null || chunk.length <= headBytes) return push(chunk);
    rest = chunk;
    takeTurn();
    return false;
  };
  socket._read = (size) => {
    if (rest.length === 0) read(size);
    else takeTurn();
  };
  socket.on('resume', takeTurn);
  // With a listener of its own, Node's parser takes the data of the stream instead of reading the socket itself.
  socket.on('data', () => undefined);
  return {
    began: (request, response) => {
      newest = request;
      unanswered += 1;
      response.once('close', () => {
        unanswered -= 1;
        takeTurn();
      });
    },
  };
}
