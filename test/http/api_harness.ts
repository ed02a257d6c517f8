import { configRules, createJobHandlers } from '../../src/temporal/capabilities.ts';
import { randomBytes, randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { createJobActivities } from '../../activities/jobs.ts';
import { createKeyRing } from '../../src/config/key_ring.ts';
import { readSettings, type Settings } from '../../src/config/settings.ts';
import { createPolicies } from '../../src/decisions/policies.ts';
import { createSelectionReader } from '../../src/destination/config_versions.ts';
import { createLocationOpener } from '../../src/destination/open_destination.ts';
import { advanceSchedule } from '../../src/decisions/advance_schedule.ts';
import { scopes } from '../../src/http/scopes.ts';
import { createApp } from '../../src/http/app.ts';
import { optionalResources } from '../../src/http/resources.ts';
import { shareConnections } from '../../src/http/plugins/connections.ts';
import { deriveRequestKeys } from '../../src/http/server.ts';
import { createServerMonitor } from '../../src/http/monitoring.ts';
import type { ScheduleSignaller } from '../../src/http/command_service.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { openWorkerJournal } from '../setup/worker_journal.ts';
import { createDeliverer } from '../../src/notifications/deliver.ts';
import { readCondition } from '../../src/projections/export_conditions.ts';
import { jobTimeoutMs } from '../../src/jobs/jobs.ts';
import type { JobClient } from '../../src/temporal/clients/job_client.ts';
import { createJobSlots } from '../../src/temporal/worker/activity_slots.ts';
import { builtInQueryKinds } from '../../src/queries/built_in_kinds.ts';
import { createInlineExecutor } from '../queries/inline_executor.ts';
import { connectQueriesToSource } from '../../src/queries/query_source.ts';
import { createQuerySlots, foregroundLimits } from '../../src/queries/query_slots.ts';
import { createRunningQueries } from '../../src/queries/running_queries.ts';
import { createSource } from '../../src/source/postgres_source.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { generousTimeouts } from '../setup/timeouts.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { queryRoleSettings } from '../setup/query_role.ts';
import { createKey } from '../../src/http/accounts/api_keys.ts';
import { createProject } from '../../src/http/accounts/projects.ts';
import { createUser } from '../../src/http/accounts/users.ts';

type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' | 'HEAD' | 'PROPFIND' | 'QUERY' | 'TRACE';

/** A response; `body` is its parsed JSON object, or empty. */
export interface ApiResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

/**
 * What the fake of Temporal does with a signal or a job. `decide`: decides the command, does the job. `deferred`: nothing, since
 * the test does it. `silent`: nothing, and requests time out soon. `unreachable`: rejects.
 */
type SignalMode = 'decide' | 'deferred' | 'silent' | 'unreachable';

/** The HTTP API on a separate database. Signalled commands are decided immediately, without Temporal. */
export interface ApiHarness {
  readonly database: TestDatabase;
  readonly journal: Journal;
  readonly projectId: number;
  readonly otherProjectId: number;
  readonly userId: number;
  /** A key with every scope. */
  readonly key: string;
  mode: SignalMode;
  /** Whether the executions of cancelled runs close. */
  executionsClose: boolean;
  /** Advances a schedule as its workflow would. */
  advanceSchedule(batchExportId: string): Promise<void>;
  /** Does a job as its workflow would. */
  doJob(id: string): Promise<void>;
  newKey(projectId: number, keyScopes?: readonly string[]): Promise<{ id: string; key: string }>;
  /** Sends a request. A path without a leading `/` is relative to the project. */
  call(
    method: Method,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<ApiResponse>;
  /** Creates an export and returns its id. It ends now, so minutes that end during the test have no runs. */
  createExport(more?: Readonly<Record<string, unknown>>): Promise<string>;
  /** The metrics of the server, as its port for monitoring returns them. */
  metrics(): Promise<string>;
  /** Listens on a free port of the loopback address and returns the URL. */
  listen(): Promise<string>;
  /** Closes the API and leaves its database. */
  closeServers(): Promise<void>;
  close(): Promise<void>;
}

/** Secrets that no response may contain. */
export const plantedSecrets = {
  aws_access_key_id: `AKIA${randomBytes(8).toString('hex')}`,
  aws_secret_access_key: `secret/${randomBytes(16).toString('hex')}+`,
};

/** A body that creates an export. */
export const exportBody = (more: Readonly<Record<string, unknown>> = {}) => ({
  name: 'Events to S3',
  model: 'events',
  interval: 'every 1 minutes',
  destination: {
    type: 'S3',
    config: {
      bucket_name: 'bucket',
      region: 'us-east-1',
      prefix: `exports/${randomUUID()}/{table}`,
      ...plantedSecrets,
    },
  },
  ...more,
});

/** Starts the API with short waits; `more` overrides settings. */
export async function openApiHarness(more: Readonly<Record<string, string>> = {}): Promise<ApiHarness> {
  const database = await createTestDatabase();
  const { pool } = database;
  const settings = readSettings({
    DATABASE_URL: database.url,
    ...queryRoleSettings(database.url),
    TEMPORAL_UI_URL: 'http://temporal.test:8233',
    EXPORTD_LOG_LEVEL: 'silent',
    EXPORTD_JITTER_LONG: '0s',
    EXPORTD_JITTER_SHORT_FRACTION: '0',
    ...generousTimeouts,
    // Tests send many invalid keys from one address.
    EXPORTD_MAX_FAILED_AUTHENTICATIONS: '1000000',
    // Commands that no worker decides.
    EXPORTD_COMMAND_TIMEOUT: '1s',
    ...more,
  });
  shareConnections(pool, settings.EXPORTD_CONTROL_CONNECT_TIMEOUT);
  const journal = openWorkerJournal(pool);
  const step = async (batchExportId: string) => {
    await advanceSchedule(journal, createPolicies(settings, configRules), batchExportId, []);
  };
  const user = await createUser(pool, { email: 'ada@example.com', first_name: 'Ada' });
  const project = await createProject(pool, { name: 'Shop' });
  const other = await createProject(pool, { name: 'Other' });
  const newKey = (projectId: number, keyScopes: readonly string[] = scopes) =>
    createKey(pool, { user_id: user.id, project_ids: [projectId], scopes: keyScopes });
  const { key } = await newKey(project.id);

  const state: { mode: SignalMode; executionsClose: boolean } = { mode: 'decide', executionsClose: true };
  const signaller: ScheduleSignaller = {
    signal: async ({ batch_export_id }) => {
      if (state.mode === 'unreachable') throw new Error('connect ECONNREFUSED');
      if (state.mode === 'decide') await step(batch_export_id);
    },
  };
  const keyRing = createKeyRing(`test:${randomBytes(32).toString('base64')}`);
  const deliver = createDeliverer(pool, keyRing, settings, (id) => readCondition(pool, id));
  const startDelivery = async (deliveryId: string) => {
    if (state.mode === 'unreachable') throw new Error('connect ECONNREFUSED');
    await deliver(deliveryId);
  };
  const source = createSource({ sourceUrl: settings.SOURCE_DATABASE_URL, settings });
  const { doJob } = createJobActivities({
    pool,
    handlers: createJobHandlers({
      pool,
      keyRing,
      settings,
      logger: createLogger('test', settings),
      journal,
      source,
      readSelection: createSelectionReader(pool),
      openLocation: createLocationOpener(pool, keyRing, settings),
      policies: createPolicies(settings, configRules),
      backfills: { start: () => Promise.resolve() },
    }),
    slots: createJobSlots(),
    settings,
    logger: createLogger('test', settings),
    context: () => ({ heartbeat: () => undefined, cancellationSignal: new AbortController().signal }),
  });
  const jobs: JobClient = {
    start: async (kind, { id }) => {
      if (state.mode === 'unreachable') throw new Error('connect ECONNREFUSED');
      if (state.mode === 'decide') await doJob({ job_id: id });
      return state.mode === 'deferred' ? jobTimeoutMs(kind, settings) : 0;
    },
  };
  const logger = createLogger('test', settings);
  const querySource = connectQueriesToSource(settings);
  const dependencies = {
    pool,
    authenticationPool: pool,
    source,
    signaller,
    executions: { waitUntilClosed: () => Promise.resolve(state.executionsClose) },
    keyRing,
    requestKeys: deriveRequestKeys(settings),
    logger,
    jobs,
    resources: optionalResources(
      {
        settings,
        pool,
        logger,
        source: querySource,
        executor: createInlineExecutor(builtInQueryKinds),
        running: createRunningQueries({
          pool,
          slots: createQuerySlots(foregroundLimits(settings)),
          logger,
        }),
        background: {
          start: () => Promise.reject(new Error('connect ECONNREFUSED')),
          cancel: () => Promise.reject(new Error('connect ECONNREFUSED')),
        },
      },
      { start: startDelivery, restart: startDelivery },
    ),
  };
  const createTestApp = async (appSettings: Settings, metrics = new Registry()) => {
    const monitor = createServerMonitor({
      pool,
      metrics,
      countPollers: () => Promise.resolve(1),
      maxAgeMs: 0,
    });
    const created = await createApp({ ...dependencies, settings: appSettings, metrics, monitor });
    await created.ready();
    return created;
  };
  // Decided commands get a long timeout, for busy machines; commands that are never decided need not wait.
  const registry = new Registry();
  const app = await createTestApp({ ...settings, EXPORTD_COMMAND_TIMEOUT: 60_000 }, registry);
  let shortWaitApp: ReturnType<typeof createTestApp> | undefined;
  const waitsForDecision: readonly SignalMode[] = ['decide', 'deferred'];
  const appFor = (mode: SignalMode) =>
    waitsForDecision.includes(mode) ? app : (shortWaitApp ??= createTestApp(settings));

  const call: ApiHarness['call'] = async (method, path, body, headers = {}) => {
    const requestApp = await appFor(state.mode);
    const response = await requestApp.inject({
      // The types of inject lack the rarer methods.
      method: method as 'GET',
      url: path.startsWith('/') ? path : `/api/environments/${project.id}/${path}`,
      headers: { authorization: `Bearer ${key}`, ...headers },
      ...(body === undefined ? {} : { payload: body as object }),
    });
    const text = response.body;
    return {
      status: response.statusCode,
      headers: response.headers,
      text,
      body: text.startsWith('{') ? (JSON.parse(text) as ApiResponse['body']) : {},
    };
  };

  const closeServers = async () => {
    await app.close();
    await (await shortWaitApp)?.close();
  };
  return {
    database,
    journal,
    projectId: project.id,
    otherProjectId: other.id,
    userId: user.id,
    key,
    get mode() {
      return state.mode;
    },
    set mode(mode) {
      state.mode = mode;
    },
    get executionsClose() {
      return state.executionsClose;
    },
    set executionsClose(close) {
      state.executionsClose = close;
    },
    advanceSchedule: step,
    doJob: (job_id) => doJob({ job_id }),
    newKey,
    call,
    createExport: async (fields) => {
      const exportRequest = exportBody({ end_at: minuteAgo(0).toISOString(), ...fields });
      const { status, body, text } = await call('POST', 'batch_exports/', exportRequest);
      if (status !== 201) throw new Error(`Creating an export failed with status ${status}: ${text}`);
      return String(body.id);
    },
    listen: () => app.listen({ host: '127.0.0.1', port: 0 }),
    closeServers,
    metrics: () => registry.metrics(),
    close: async () => {
      await closeServers();
      await Promise.all([source.close(), querySource.close()]);
      await database.drop();
    },
  };
}
