import fastifyCookie from '@fastify/cookie';
import fastifySwagger from '@fastify/swagger';
import fastify, { LogController, type FastifyBaseLogger } from 'fastify';
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Registry } from 'prom-client';
import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { QueryService } from '../queries/handle_query.ts';
import { createQueryRateLimiter } from '../queries/rate_limiter.ts';
import type { Logger } from '../telemetry/logger.ts';
import { sendsTraces } from '../telemetry/tracing.ts';
import type { DestinationTestClient, VerificationClient } from '../temporal/clients/verification_client.ts';
import type { WebhookTestClient } from '../temporal/clients/notification_client.ts';
import type { ResendService } from './resend_delivery.ts';
import { rejectOtherMethods, collectRoutes } from './allowed_methods.ts';
import { notFound } from './api_error.ts';
import { authenticate } from './authentication.ts';
import type { RunExecutions } from './cancelled_runs.ts';
import { createCommandOutcomes } from './command_outcomes.ts';
import { createCommandService, type ScheduleSignaller } from './command_service.ts';
import type { HttpApp, RouteContext } from './route_context.ts';
import type { DryRunService } from './dry_run.ts';
import { sendError } from './error_handler.ts';
import { addBodyParsers } from './body_parsers.ts';
import { addRequestSpans } from './request_spans.ts';
import { backfillRoutes } from './routes/backfills.ts';
import { batchExportRoutes } from './routes/batch_exports.ts';
import { batchExportCheckRoutes } from './routes/batch_export_checks.ts';
import { consoleRoutes } from './console/console_routes.ts';
import { createLiveChanges } from './console/live_changes.ts';
import { sessionRoutes } from './console/session_routes.ts';
import { consoleExportRoutes } from './routes/console_export.ts';
import { consoleIntervalRoutes } from './routes/console_interval.ts';
import { consoleLiveRoutes } from './routes/console_live.ts';
import { consoleOverviewRoutes } from './routes/console_overview.ts';
import { consolePreviewRoutes } from './routes/console_previews.ts';
import { consoleQueryRoutes } from './routes/console_queries.ts';
import { consoleVerificationRoutes } from './routes/console_verifications.ts';
import { dashboardRoutes } from './routes/dashboards.ts';
import { destinationTestRoutes } from './routes/destination_tests.ts';
import { draftSqlRoutes } from './routes/draft_sql.ts';
import { failedRunRoutes } from './routes/failed_runs.ts';
import { intervalRoutes } from './routes/intervals.ts';
import { logRoutes } from './routes/logs.ts';
import { addApiDocs } from './openapi/api_docs.ts';
import { documentOptions } from './openapi/document_options.ts';
import { monitoringRoutes } from './routes/monitoring.ts';
import { projectRoutes } from './routes/projects.ts';
import { queryRoutes } from './routes/queries.ts';
import { queryAuthorizationRoutes } from './routes/query_authorization.ts';
import { runRoutes } from './routes/runs.ts';
import { batchExportActionRoutes } from './routes/batch_export_actions.ts';
import { webhookDeliveryRoutes } from './routes/webhook_deliveries.ts';
import { webhookRoutes } from './routes/webhooks.ts';
import { createRunLink } from './run_link.ts';

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
  readonly logger: Logger;
  /** The number of workers that poll the schedules' task queue; rejects when Temporal cannot be reached. */
  readonly countPollers: () => Promise<number>;
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
  logRoutes,
  webhookRoutes,
  webhookDeliveryRoutes,
  dashboardRoutes,
  queryAuthorizationRoutes,
  draftSqlRoutes,
  queryRoutes,
];
/** What only the console reads. */
const consoleResources = [
  consoleOverviewRoutes,
  consoleLiveRoutes,
  consoleExportRoutes,
  consoleIntervalRoutes,
  consoleVerificationRoutes,
  consolePreviewRoutes,
  consoleQueryRoutes,
];

/** How soon a console shows what changed. */
const liveChangesPollMs = 1_000;

/** Builds the application without listening. Closing it leaves `dependencies` open. */
export async function createApp(dependencies: HttpDependencies): Promise<HttpApp> {
  const { settings, pool, logger } = dependencies;
  const loggerInstance: FastifyBaseLogger = logger;
  const app: HttpApp = fastify({
    loggerInstance,
    logController: new LogController({ disableRequestLogging: true }),
    // Query ids are chosen by clients, and percent encoding lengthens them.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 2_000 },
    bodyLimit: settings.EXPORTD_HTTP_MAX_BODY_SIZE,
    return503OnClosing: true,
    // Requests with an undecodable URL reach neither a route nor the error handler.
    frameworkErrors: (error, request, reply) => {
      void sendError(error, request, reply);
    },
  }).withTypeProvider<ZodTypeProvider>();
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(sendError);
  app.setNotFoundHandler(() => {
    throw notFound();
  });
  app.decorateRequest('caller', null);
  if (sendsTraces(settings)) addRequestSpans(app);
  addBodyParsers(app);
  const routes = collectRoutes(app);
  if (settings.EXPORTD_CONSOLE) await app.register(fastifyCookie);

  await app.register(fastifySwagger, documentOptions);

  const outcomes = createCommandOutcomes(pool, { pollMs: settings.EXPORTD_COMMAND_POLL_INTERVAL, logger });
  app.addHook('onClose', () => outcomes.close());
  const liveChanges = createLiveChanges(pool, { pollMs: liveChangesPollMs, logger });
  // Its streams have no end of their own, and closing waits for responses.
  app.addHook('preClose', () => liveChanges.close());
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
  const context: RouteContext = {
    ...dependencies,
    commandService,
    liveChanges,
    queryRateLimiter: createQueryRateLimiter(pool, settings.EXPORTD_QUERIES_PER_HOUR),
    runLink: createRunLink(settings),
  };

  monitoringRoutes(app, dependencies);
  if (settings.EXPORTD_CONSOLE) {
    consoleRoutes(app);
    sessionRoutes(app, dependencies);
  }
  app.get('/api/schema', { schema: { hide: true } }, () => app.swagger());
  await addApiDocs(app);
  await app.register(async (scope: HttpApp) => {
    scope.addHook('onRequest', (request) => authenticate(pool, request));
    projectRoutes(scope, context);
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
  rejectOtherMethods(app, routes);
  return app;
}
