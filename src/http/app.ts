import fastifyCookie from '@fastify/cookie';
import fastifySwagger from '@fastify/swagger';
import fastify from 'fastify';
import { type FastifyBaseLogger, LogController } from 'fastify';
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Registry } from 'prom-client';
import { withExactNumbers } from '../client/exact_numbers.ts';
import type { KeyRing } from '../config/key_ring.ts';
import { basePathOf, type Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { sendsTraces } from '../telemetry/tracing.ts';
import type { JobClient } from '../temporal/clients/job_client.ts';
import { notFound } from './api_error.ts';
import { addAuditHooks } from './audit/audit_trail.ts';
import type { DryRunService } from './backfills/dry_run.ts';
import type { RunExecutions } from './cancelled_runs.ts';
import { createCommandOutcomes } from './command_outcomes.ts';
import { createCommandService, type ScheduleSignaller } from './command_service.ts';
import { consoleRoutes } from './console/console_routes.ts';
import { sessionRoutes } from './console/session_routes.ts';
import { jobRoutes } from './jobs/routes.ts';
import { monitoringRoutes, type ServerMonitor } from './monitoring.ts';
import { addApiDocs, documentOptions } from './openapi/openapi.ts';
import { addAuthentication } from './plugins/authentication.ts';
import { addBodyParsers } from './plugins/bodies.ts';
import { addConnectionShares } from './plugins/connections.ts';
import { createErrorHandler } from './plugins/errors.ts';
import { addSecurityHeaders } from './plugins/headers.ts';
import { refuseOwnPath, withoutBasePath } from './plugins/base_path.ts';
import { rejectOtherMethods, routerOptions } from './plugins/methods.ts';
import { countRequests } from './plugins/metrics.ts';
import { paceConnections } from './plugins/pacing.ts';
import { addRefusals } from './plugins/refusals.ts';
import { addRequestSpans } from './plugins/spans.ts';
import { createRequestShares } from './request_shares.ts';
import { consoleResources, jobOperations, projectResources, wholeResources } from './resources.ts';
import type { Resource } from './resource.ts';
import type { HttpApp, RouteContext } from './route_context.ts';
import { createTemporalLinks } from './temporal_links.ts';
import { createEncoderPool } from '../encoding/encoder_pool.ts';

/** What the HTTP API is built from. */
export interface HttpDependencies {
  readonly settings: Settings;
  /** Needs one connection more than concurrent requests use, to listen for command outcomes. */
  readonly pool: Pool;
  /** Read-only; for dry runs. */
  readonly source: DryRunService['source'];
  readonly signaller: ScheduleSignaller;
  readonly jobs: JobClient;
  readonly executions: RunExecutions;
  /** What this deployment does beside exports. */
  readonly resources: readonly Resource[];
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

/** How often connections are checked for requests that take too long, in milliseconds. */
const timeoutCheckMs = 1_000;

/** Writes responses; numbers that JavaScript cannot hold keep all of their digits. */
const exactSerializer: typeof serializerCompiler = (route) => {
  const write = serializerCompiler(route);
  return (data) => withExactNumbers(() => write(data));
};

/** Builds the application without listening: plugins, then resources. Closing it leaves `dependencies` open. */
export async function createApp(dependencies: HttpDependencies): Promise<HttpApp> {
  const { settings, metrics, resources } = dependencies;
  const app = createFastify(dependencies);
  paceConnections(app);
  addAuditHooks(app, dependencies);
  const refusals = addRefusals(app, dependencies);
  if (sendsTraces(settings)) addRequestSpans(app);
  addSecurityHeaders(app, settings);
  addBodyParsers(app);
  rejectOtherMethods(app);
  refuseOwnPath(app, basePathOf(settings));
  if (settings.EXPORTD_CONSOLE) await app.register(fastifyCookie);
  await app.register(fastifySwagger, documentOptions);
  const authentication = addAuthentication(app, { ...dependencies, refusals });
  countRequests(app, metrics);

  const { projectLink, ...links } = createTemporalLinks(settings);
  const context = { ...createContext(app, dependencies), ...links };
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
    addConnectionShares(scope);
    for (const addRoutes of wholeResources) addRoutes(scope, context);
    const routes = [
      ...projectResources,
      jobRoutes([...jobOperations, ...resources.flatMap(({ jobs = [] }) => jobs)]),
      ...resources.flatMap((one) => one.routes),
    ];
    if (settings.EXPORTD_CONSOLE)
      routes.push(...consoleResources, ...resources.flatMap((one) => one.pages ?? []));
    for (const prefix of projectRoots)
      await scope.register(
        (project: HttpApp, _options, done) => {
          for (const addRoutes of routes) addRoutes(project, context);
          done();
        },
        { prefix },
      );
  });
  return app;
}

/** Fastify with its limits, its parsers of schemas and its handler of errors. */
function createFastify({ settings, logger, resources }: HttpDependencies): HttpApp {
  const sendError = createErrorHandler(resources.flatMap(({ errorOf }) => errorOf ?? []));
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
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(exactSerializer);
  app.setErrorHandler(sendError);
  return app;
}

/** What routes use beside their dependencies, and how it ends with the application. */
function createContext(
  app: HttpApp,
  dependencies: HttpDependencies,
): Omit<RouteContext, 'runLink' | 'exportLink'> {
  const { settings, pool, logger, resources } = dependencies;
  const outcomes = createCommandOutcomes(pool, logger);
  app.addHook('onClose', () => outcomes.close());
  app.addHook('preClose', (done) => {
    for (const { interrupt } of resources) interrupt?.();
    done();
  });
  const encoders = createEncoderPool({ threads: 1 });
  app.addHook('onClose', () => encoders.close());
  return {
    ...dependencies,
    encoders,
    shares: createRequestShares(),
    commandService: createCommandService({
      ...dependencies,
      outcomes,
      timeoutMs: settings.EXPORTD_COMMAND_TIMEOUT,
    }),
  };
}
