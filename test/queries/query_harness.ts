import { Registry } from 'prom-client';
import { readSettings } from '../../src/config/settings.ts';
import { scopes } from '../../src/http/scopes.ts';
import { createApp } from '../../src/http/app.ts';
import { optionalResources } from '../../src/http/resources.ts';
import { createServerMonitor } from '../../src/http/monitoring.ts';
import type { HttpApp } from '../../src/http/route_context.ts';
import { createPool, type Pool } from '../../src/journal/database.ts';
import { createInlineExecutor } from './inline_executor.ts';
import { connectQueriesToSource } from '../../src/queries/query_source.ts';
import { createQuerySlots, foregroundLimits } from '../../src/queries/query_slots.ts';
import { createRunningQueries } from '../../src/queries/running_queries.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createClient } from '../../src/temporal/connections.ts';
import { createQueryClient } from '../../src/temporal/clients/query_client.ts';
import { type ControlPlaneHarness, createControlPlaneHarness } from '../temporal/control_plane_harness.ts';
import { createBehaviour, fakeSource } from '../temporal/fakes.ts';
import { generousTimeouts } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { fakeKinds } from './fake_kind.ts';
import { createKey } from '../../src/http/accounts/api_keys.ts';
import { createProject } from '../../src/http/accounts/projects.ts';
import { createUser } from '../../src/http/accounts/users.ts';

/** A response of the query endpoint. */
export interface QueryResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Record<string, unknown> & { readonly query_status?: Record<string, unknown> | null };
}

/** The equivalent of one server process. */
export interface QueryServer {
  readonly app: HttpApp;
  /** A `path` without leading `/` is relative to the project. */
  call(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown, key?: string): Promise<QueryResponse>;
  post(query: object, more?: object): Promise<QueryResponse>;
  close(): Promise<void>;
}

/** Servers and a worker that support the fake kind, on a separate database. */
export interface QueryHarness {
  readonly control: ControlPlaneHarness;
  readonly pool: Pool;
  readonly projectId: number;
  readonly otherProjectId: number;
  readonly key: string;
  readonly otherKey: string;
  readonly server: QueryServer;
  /** Starts one more server on the same database. */
  addServer(more?: Record<string, string>): Promise<QueryServer>;
  /** Number of running statements of queries that sleep or wait for a table, as seen by PostgreSQL. */
  statements(): Promise<number>;
  /** Waits until this many statements run; one by default. */
  running(count?: number): Promise<void>;
  /** Blocks queries that read persons until the returned function is called or the harness is closed. */
  lockPersons(): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

const notTested = () => Promise.reject(new Error('Only queries are tested here.'));

/** Opens the harness without its worker; `harness.control.startWorker()` starts it. */
export async function openQueryHarness(more: Record<string, string> = {}): Promise<QueryHarness> {
  const testSettings = {
    EXPORTD_QUERY_HEARTBEAT_TIMEOUT: '60s',
    EXPORTD_QUERIES_PER_HOUR: '100000',
    ...generousTimeouts,
    ...more,
  };
  const control = await createControlPlaneHarness(testSettings, undefined, fakeKinds);
  const { pool, keyRing } = control;
  const user = await createUser(pool, { email: 'ada@example.com' });
  const project = await createProject(pool, { name: 'Shop', timezone: 'Europe/Berlin' });
  const other = await createProject(pool, { name: 'Other' });
  const newKey = async (projectId: number) =>
    (await createKey(pool, { user_id: user.id, project_ids: [projectId], scopes })).key;
  const key = await newKey(project.id);
  const servers: QueryServer[] = [];
  const locks = new Set<() => Promise<void>>();

  const addServer: QueryHarness['addServer'] = async (settingsOfServer = {}) => {
    const settings = readSettingsOf(control, { ...testSettings, ...settingsOfServer });
    const logger = createLogger('test', settings);
    // A separate pool, as in a separate process.
    const ownPool = createPool(settings.DATABASE_URL, { max: 10 });
    const source = connectQueriesToSource(settings);
    const temporal = await createClient(settings);
    const metrics = new Registry();
    const app = await createApp({
      settings,
      pool: ownPool,
      source: fakeSource(createBehaviour()),
      signaller: { signal: notTested },
      executions: { waitUntilClosed: notTested },
      keyRing,
      requestKeys: [],
      logger,
      jobs: { start: notTested },
      resources: optionalResources(
        {
          settings,
          pool: ownPool,
          logger,
          source,
          executor: createInlineExecutor(fakeKinds),
          running: createRunningQueries({
            pool: ownPool,
            slots: createQuerySlots(foregroundLimits(settings)),
            logger,
          }),
          background: createQueryClient(temporal.client, settings),
        },
        { start: notTested, restart: notTested },
      ),
      authenticationPool: ownPool,
      metrics,
      monitor: createServerMonitor({ pool: ownPool, metrics, countPollers: () => Promise.resolve(1) }),
    });
    const call: QueryServer['call'] = async (method, path, body, bearer = key) => {
      const response = await app.inject({
        method,
        url: path.startsWith('/') ? path : `/api/projects/${project.id}/${path}`,
        headers: { authorization: `Bearer ${bearer}` },
        ...(body === undefined ? {} : { payload: body as object }),
      });
      const parsed: unknown = response.body.startsWith('{') ? JSON.parse(response.body) : {};
      return {
        status: response.statusCode,
        headers: response.headers,
        body: parsed as QueryResponse['body'],
      };
    };
    const server: QueryServer = {
      app,
      call,
      post: (query, fields = {}) => call('POST', 'query/', { query, ...fields }),
      close: async () => {
        await app.close();
        await Promise.all([source.close(), temporal.close()]);
        await ownPool.end();
      },
    };
    servers.push(server);
    return server;
  };
  const statements: QueryHarness['statements'] = async () => {
    const { rows } = await pool.query<{ count: number }>(
      `select count(*) as count from pg_stat_activity
       where state = 'active' and datname = current_database() and wait_event in ('PgSleep', 'relation')`,
    );
    return rows[0]?.count ?? 0;
  };
  return {
    control,
    pool,
    projectId: project.id,
    otherProjectId: other.id,
    key,
    otherKey: await newKey(other.id),
    server: await addServer(),
    addServer,
    statements,
    running: async (count = 1) => {
      await waitFor(async () => (await statements()) === count, `${count} statements under way`);
    },
    lockPersons: async () => {
      const holder = await pool.connect();
      const release = async () => {
        if (!locks.delete(release)) return;
        await holder.query('commit');
        holder.release();
      };
      locks.add(release);
      await holder.query('begin; lock table public.persons in access exclusive mode');
      return release;
    },
    close: async () => {
      for (const release of locks) await release();
      for (const server of servers) await server.close();
      await control.close();
    },
  };
}

const readSettingsOf = (control: ControlPlaneHarness, more: Record<string, string>) =>
  readSettings({
    DATABASE_URL: control.settings.DATABASE_URL,
    TEMPORAL_ADDRESS: control.settings.TEMPORAL_ADDRESS,
    EXPORTD_TASK_QUEUE_PREFIX: control.settings.EXPORTD_TASK_QUEUE_PREFIX,
    EXPORTD_LOG_LEVEL: 'silent',
    ...more,
  });
