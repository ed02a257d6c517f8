import closeWithGrace from 'close-with-grace';
import { createKeyRing, deriveKeys } from '../config/key_ring.ts';
import { listenError, type Settings } from '../config/settings.ts';
import { createPool } from '../journal/database.ts';
import { createSource } from '../source/postgres_source.ts';
import { createLogger, type Logger } from '../telemetry/logger.ts';
import { createMetrics, registerPoolMetrics } from '../telemetry/metrics.ts';
import { startTracing } from '../telemetry/tracing.ts';
import { countPollers, createRunExecutionWatch, describeTaskQueues } from '../temporal/clients/executions.ts';
import { createJobClient } from '../temporal/clients/job_client.ts';
import { createClient } from '../temporal/connections.ts';
import {
  type Monitor,
  type MonitoringServer,
  startMonitoringServer,
} from '../telemetry/monitoring_server.ts';
import { createApp } from './app.ts';
import { registerDeploymentMetrics, registerExportMetrics } from './metrics.ts';
import { createServerMonitor } from './monitoring.ts';
import { startResources } from './resources.ts';
import { shareConnections } from './plugins/connections.ts';
import { createCommandSignaller } from '../temporal/clients/schedule_client.ts';
import { createServerAlarm } from '../failures/server_alarm.ts';

/** Pending calls, which must settle before the connection that they use is closed. */
interface PendingCalls {
  /** Makes a call and tracks it until it settles. */
  track<Result>(call: () => Promise<Result>): Promise<Result>;
  /** Resolves when no call is pending. */
  settled(): Promise<void>;
}

/** Tracks calls, also those whose callers stopped waiting. */
function createPendingCalls(): PendingCalls {
  const pending = new Set<Promise<unknown>>();
  return {
    track: async (call) => {
      const result = call();
      pending.add(result);
      try {
        return await result;
      } finally {
        pending.delete(result);
      }
    },
    settled: async () => {
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}

/** A request needs a few short statements; one connection listens for command outcomes. */
const databaseConnections = 20;
/** Keys are found by these alone, whatever the statements of requests do. */
const authenticationConnections = 2;
/** Dry runs of a project, which may use a third, count rows one at a time, so they hardly compete with exports. */
const sourceConnections = 3;

/** The keys of `HttpDependencies.requestKeys`. @throws SettingsError without a symmetric key */
export const deriveRequestKeys = ({
  EXPORTD_ENCRYPTION_KEYS,
}: Pick<Settings, 'EXPORTD_ENCRYPTION_KEYS'>): readonly Buffer[] =>
  deriveKeys(EXPORTD_ENCRYPTION_KEYS ?? '', 'exportd fingerprints of requests');

/** A listening server. */
export interface RunningServer {
  /** The URL that it listens on. */
  readonly url: string;
  /** The URL of its health and metrics, if they have a port. */
  readonly monitoringUrl: string | undefined;
  close(): Promise<void>;
}

/**
 * Starts the HTTP server with all its dependencies. Starts without Temporal too: commands respond 503 until it is up.
 * @throws SettingsError when a setting is missing or the port is in use.
 */
export async function startServer(settings: Settings, logger: Logger): Promise<RunningServer> {
  const tracing = await startTracing('server', settings, logger);
  const keyRing = createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS);
  const requestKeys = deriveRequestKeys(settings);
  const connect = (max: number) =>
    createPool(settings.DATABASE_URL, {
      max,
      connectTimeoutMs: settings.EXPORTD_CONTROL_CONNECT_TIMEOUT,
      statementTimeoutMs: settings.EXPORTD_CONTROL_STATEMENT_TIMEOUT,
    });
  const pool = connect(databaseConnections);
  shareConnections(pool, settings.EXPORTD_CONTROL_CONNECT_TIMEOUT);
  const authenticationPool = connect(authenticationConnections);
  const temporal = await createClient(settings);
  const source = createSource({
    sourceUrl: settings.SOURCE_DATABASE_URL,
    settings: { ...settings, EXPORTD_SOURCE_CONNECTIONS: sourceConnections },
  });
  const metrics = createMetrics('server');
  const signaller = createCommandSignaller(temporal, pool, settings);
  const executions = createRunExecutionWatch(temporal.client, settings);
  const jobs = createJobClient(temporal.client, pool, settings);
  const calls = createPendingCalls();
  const started = startResources({
    settings,
    pool,
    logger,
    metrics,
    client: temporal.client,
    track: (call) => calls.track(call),
  });
  registerPoolMetrics(metrics, {
    control: pool,
    authentication: authenticationPool,
    source_pages: source.pools.pages,
    source_counts: source.pools.counts,
    source_checks: source.pools.checks,
    ...Object.fromEntries(started.flatMap(({ pools = {} }) => Object.entries(pools))),
  });
  registerExportMetrics(metrics, { pool, logger, settings });
  registerDeploymentMetrics(metrics, {
    pool,
    describeTaskQueues: () => calls.track(() => describeTaskQueues(temporal.client, settings)),
  });
  const release = async () => {
    // A Temporal call that outlives its connection would crash the process; each call has a deadline.
    await calls.settled();
    await temporal.close();
    await Promise.all([source.close(), ...started.map((one) => one.close?.())]);
    await Promise.all([pool.end(), authenticationPool.end()]);
    await tracing?.stop();
  };
  const monitor = createServerMonitor({
    pool,
    countPollers: () => calls.track(() => countPollers(temporal.client, settings)),
    metrics,
  });
  const app = await createApp({
    settings,
    pool,
    authenticationPool,
    source,
    keyRing,
    requestKeys,
    logger,
    metrics,
    monitor,
    executions: {
      waitUntilClosed: (run, timeoutMs) => calls.track(() => executions.waitUntilClosed(run, timeoutMs)),
    },
    signaller: { signal: (command) => calls.track(() => signaller.signal(command)) },
    jobs: { start: (kind, job) => calls.track(() => jobs.start(kind, job)) },
    resources: started.map(({ resource }) => resource),
  });
  const [faultSender] = started.flatMap((one) => one.faultSender ?? []);
  const alarm = createServerAlarm(pool, settings, logger, faultSender, (signal) =>
    calls.track(() =>
      temporal.client.connection.withAbortSignal(signal, () => countPollers(temporal.client, settings)),
    ),
  );
  let monitoring: MonitoringServer | undefined;
  const close = async () => {
    await alarm.stop();
    await app.close();
    await monitoring?.close();
    await release();
  };
  try {
    monitoring = await startServerMonitoring(settings, monitor, logger);
    const url = await app.listen({ host: settings.EXPORTD_HOST, port: settings.EXPORTD_PORT });
    alarm.start();
    return { url, monitoringUrl: monitoring?.url, close };
  } catch (error) {
    await close();
    const { EXPORTD_HOST: host, EXPORTD_PORT: port } = settings;
    throw (
      listenError(error, { host, port, settings: { host: 'EXPORTD_HOST', port: 'EXPORTD_PORT' } }) ?? error
    );
  }
}

/** Serves health and metrics on a port of their own, if EXPORTD_MONITORING_PORT is set. @throws SettingsError */
async function startServerMonitoring(
  { EXPORTD_MONITORING_HOST: host, EXPORTD_MONITORING_PORT: port }: Settings,
  monitor: Monitor,
  logger: Logger,
): Promise<MonitoringServer | undefined> {
  if (port === undefined) return undefined;
  const names = { host: 'EXPORTD_MONITORING_HOST', port: 'EXPORTD_MONITORING_PORT' };
  const server = await startMonitoringServer({ host, port, settings: names }, monitor, logger);
  logger.info({ url: server.url }, 'The server serves its health and metrics.');
  return server;
}

/**
 * Runs the server until SIGTERM or SIGINT, also while it starts: it handles them before it first waits. Logs to standard
 * error.
 */
export async function runServer(settings: Settings): Promise<void> {
  const logger = createLogger('server', settings);
  const started = Promise.withResolvers<RunningServer>();
  const ended = Promise.withResolvers<undefined>();
  closeWithGrace({ delay: settings.EXPORTD_SHUTDOWN_TIMEOUT, logger: false }, async ({ err, signal }) => {
    if (err) logger.fatal({ err }, 'Uncaught error. Server is shutting down.');
    else logger.info({ signal }, 'Server is shutting down.');
    await (await started.promise).close();
    ended.resolve(undefined);
  });
  startServer(settings, logger).then(started.resolve, started.reject);
  const server = await started.promise;
  logger.info({ url: server.url }, 'Server is listening.');
  await ended.promise;
}
