import { randomBytes, randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { createKeyRing } from '../../src/config/key_ring.ts';
import { readSettings, type Settings } from '../../src/config/settings.ts';
import { policiesOf } from '../../src/decisions/policies.ts';
import { takeScheduleStep } from '../../src/decisions/schedule_step.ts';
import { createKey, createProject, createUser } from '../../src/http/accounts.ts';
import { createApp } from '../../src/http/app.ts';
import { scopes } from '../../src/http/api_keys.ts';
import type { Signaller } from '../../src/http/commands.ts';
import { createJournal, type Journal } from '../../src/journal/journal.ts';
import { createDestinationTester } from '../../src/destination/destination_tests.ts';
import { createDeliverer } from '../../src/notifications/deliver.ts';
import type { DestinationTestClient } from '../../src/temporal/destination_test_client.ts';
import type { WebhookTestClient } from '../../src/temporal/notification_client.ts';
import { productQueryKinds } from '../../src/queries/product_kinds.ts';
import { connectQueriesToSource } from '../../src/queries/query_source.ts';
import { createRunningQueries } from '../../src/queries/running_queries.ts';
import { createSource } from '../../src/source/postgres_source.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { minuteAgo } from '../setup/minutes.ts';

type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' | 'HEAD';

/** An answer, its JSON body parsed, or undefined when there is none. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

/** What a stand-in for Temporal does with a signal; elsewhere: nothing, since the test takes the step. */
export type SignalMode = 'decide' | 'elsewhere' | 'silent' | 'unreachable';

/** The facade on a database of its own. Signals are decided at once, by the real decisions and without Temporal. */
export interface Facade {
  readonly database: TestDatabase;
  readonly journal: Journal;
  readonly projectId: number;
  readonly otherProjectId: number;
  readonly userId: number;
  /** A key with every scope. */
  readonly key: string;
  mode: SignalMode;
  /** Whether executions of cancelled runs end. */
  runsLetGo: boolean;
  /** Takes the step that a schedule workflow would take. */
  step(batchExportId: string): Promise<void>;
  newKey(projectId: number, keyScopes?: readonly string[]): Promise<{ id: string; key: string }>;
  /** Sends a request; `path` below the project when it does not begin with `/`. */
  call(
    method: Method,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer>;
  /** Creates an export and answers its id. Of a minute that ends while a test runs, no run comes. */
  createExport(more?: Readonly<Record<string, unknown>>): Promise<string>;
  /** Listens on a free port of the loopback address, and answers the address. */
  listen(): Promise<string>;
  close(): Promise<void>;
}

/** Secrets that no answer may hold. */
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

/** Opens the facade; settings are waits as short as they get, and what is given. */
export async function openFacade(more: Readonly<Record<string, string>> = {}): Promise<Facade> {
  const database = await createTestDatabase();
  const { pool } = database;
  const settings = readSettings({
    DATABASE_URL: database.url,
    TEMPORAL_UI: 'http://temporal.test:8233',
    EXPORTD_LOG_LEVEL: 'silent',
    EXPORTD_JITTER_LONG_MS: '0',
    EXPORTD_JITTER_SHORT_FRACTION: '0',
    EXPORTD_COMMAND_POLL_MS: '50',
    ...more,
  });
  const journal = createJournal(pool);
  const step = async (batchExportId: string) => {
    await takeScheduleStep(journal, policiesOf(settings), batchExportId, []);
  };
  const user = await createUser(pool, { email: 'ada@example.com', first_name: 'Ada' });
  const project = await createProject(pool, { name: 'Shop' });
  const other = await createProject(pool, { name: 'Other' });
  const newKey = (projectId: number, keyScopes: readonly string[] = scopes) =>
    createKey(pool, { user_id: user.id, project_id: projectId, scopes: keyScopes });
  const { key } = await newKey(project.id);

  const state: { mode: SignalMode; runsLetGo: boolean } = { mode: 'decide', runsLetGo: true };
  const signaller: Signaller = {
    signal: async ({ batch_export_id }) => {
      if (state.mode === 'unreachable') throw new Error('connect ECONNREFUSED');
      if (state.mode === 'decide') await step(batch_export_id);
    },
  };
  const keyRing = createKeyRing(`test:${randomBytes(32).toString('base64')}`);
  const takeTest = createDestinationTester(pool, keyRing, settings);
  const destinationTests: DestinationTestClient = {
    test: async (testId) => {
      if (state.mode === 'unreachable') throw new Error('connect ECONNREFUSED');
      return state.mode === 'silent'
        ? { tested: false, reason: 'No worker has tested the destination in time.' }
        : { tested: true, steps: await takeTest(testId) };
    },
  };
  const deliver = createDeliverer(pool, keyRing, settings);
  const webhookTests: WebhookTestClient = {
    test: async (deliveryId) => {
      if (state.mode === 'unreachable') throw new Error('connect ECONNREFUSED');
      return state.mode === 'silent'
        ? { tested: false, reason: 'No worker has sent the test in time.' }
        : { tested: true, ...(await deliver(deliveryId)) };
    },
  };
  const source = createSource({ sourceUrl: settings.SOURCE_DATABASE_URL ?? database.url, settings });
  const logger = createLogger('test', settings);
  const querySource = connectQueriesToSource(settings);
  const parts = {
    pool,
    source,
    signaller,
    executions: { ended: () => Promise.resolve(state.runsLetGo) },
    keyRing,
    logger,
    queries: {
      settings,
      pool,
      logger,
      source: querySource,
      kinds: productQueryKinds(settings),
      running: createRunningQueries({ pool, pollMs: 50, logger }),
      background: {
        start: () => Promise.reject(new Error('connect ECONNREFUSED')),
        cancel: () => Promise.reject(new Error('connect ECONNREFUSED')),
      },
    },
    destinationTests,
    webhookTests,
    countPollers: () => Promise.resolve(1),
  };
  const makeApp = async (appSettings: Settings) => {
    const made = await createApp({ ...parts, settings: appSettings, metrics: new Registry() });
    await made.ready();
    return made;
  };
  // What is decided is waited for in patience, however busy the machine is; what nobody decides need not be.
  const app = await makeApp({ ...settings, EXPORTD_COMMAND_TIMEOUT_MS: 60_000 });
  let impatient: ReturnType<typeof makeApp> | undefined;
  const patient: readonly SignalMode[] = ['decide', 'elsewhere'];
  const appFor = (mode: SignalMode) => (patient.includes(mode) ? app : (impatient ??= makeApp(settings)));

  const call: Facade['call'] = async (method, path, body, headers = {}) => {
    const asked = await appFor(state.mode);
    const response = await asked.inject({
      method,
      url: path.startsWith('/') ? path : `/api/environments/${project.id}/${path}`,
      headers: { authorization: `Bearer ${key}`, ...headers },
      ...(body === undefined ? {} : { payload: body as object }),
    });
    const text = response.body;
    return {
      status: response.statusCode,
      headers: response.headers,
      text,
      body: text.startsWith('{') ? (JSON.parse(text) as Answer['body']) : {},
    };
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
    get runsLetGo() {
      return state.runsLetGo;
    },
    set runsLetGo(letGo) {
      state.runsLetGo = letGo;
    },
    step,
    newKey,
    call,
    createExport: async (members) => {
      const asked = exportBody({ end_at: minuteAgo(0).toISOString(), ...members });
      const { status, body, text } = await call('POST', 'batch_exports/', asked);
      if (status !== 201) throw new Error(`Creating an export answered ${status}: ${text}`);
      return String(body.id);
    },
    listen: () => app.listen({ host: '127.0.0.1', port: 0 }),
    close: async () => {
      await app.close();
      await (await impatient)?.close();
      await Promise.all([source.close(), querySource.close()]);
      await database.drop();
    },
  };
}
