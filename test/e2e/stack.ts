import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { readSettings, type Settings } from '../../src/config/settings.ts';
import { compileCacheOf } from '../../src/local_stack/compile_cache.ts';
import { assignPorts } from '../../src/local_stack/ports.ts';
import type { Pool } from '../../src/journal/database.ts';
import { createBucket, type TestBucket } from '../setup/bucket.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';
import { queryRoleSettings } from '../setup/query_role.ts';
import { generousTimeouts, stableWorkers } from '../setup/timeouts.ts';
import { v8OfTests } from '../setup/v8_options.ts';
import { waitFor } from '../setup/wait_for.ts';
import { hourAgo } from '../setup/hours.ts';
import { createKey } from '../../src/http/accounts/api_keys.ts';
import { createProject } from '../../src/http/accounts/projects.ts';
import { createUser } from '../../src/http/accounts/users.ts';

const root = join(import.meta.dirname, '../..');

/** A response of the HTTP API. */
export interface ApiResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed JSON body; empty when there is none. */
  readonly body: Record<string, unknown>;
}

/** The fields of a run that tests use. */
export interface RunResponse {
  readonly id: string;
  readonly status: string;
  readonly status_detail: string | null;
  readonly records_completed: number;
  readonly records_total_count: number | null;
  readonly latest_error: string | null;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly generation: number;
  readonly manifest_key: string | null;
  readonly cursor: string | null;
  readonly backfill_id: string | null;
  readonly created_at: string;
}

/** A worker process. */
export interface WorkerProcess {
  readonly pid: number;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
  /** Sends SIGSTOP, which freezes the process like a debugger or a swapping machine. */
  pause(): void;
  resume(): void;
  /** Sends SIGTERM; resolves when the process has exited. */
  stop(): Promise<void>;
}

/** exportd as users run it: a server and a worker process with a separate database, bucket and task queue. */
export interface Stack {
  readonly baseUrl: string;
  readonly projectId: number;
  readonly pool: Pool;
  readonly bucket: TestBucket;
  /** The settings of its processes. */
  readonly settings: Settings;
  /** The same as environment variables. */
  readonly environment: Readonly<Record<string, string>>;
  readonly databaseUrl: string;
  readonly key: string;
  /** Creates another key of its user, by default for its project. */
  newKey(scopes: readonly string[], projectId?: number): Promise<string>;
  readonly temporalAddress: string;
  /** Sends a request; `path` is relative to `/api/environments/<project>`. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiResponse>;
  /** Creates an export to the stack's bucket, below a random prefix by default, and returns its id. */
  createExport(fields?: Record<string, unknown>, config?: Record<string, unknown>): Promise<string>;
  runs(exportId: string): Promise<RunResponse[]>;
  /** Waits until the run has the status, and returns it. */
  waitForRun(exportId: string, runId: string, status: string): Promise<RunResponse>;
  /** All workers that were started, also those that have exited. */
  readonly workers: readonly WorkerProcess[];
  /** Starts another worker; `settings` override those of the stack. */
  startWorker(settings?: Record<string, string>): Promise<WorkerProcess>;
  /** Starts a worker of the code in a folder, and does not wait until it polls. */
  spawnWorker(folder: string, settings?: Record<string, string>): WorkerProcess;
  /** Runs a command of the code in a folder with the settings of the stack. @throws Error with its output when it fails */
  runCommand(folder: string, ...command: readonly string[]): Promise<string>;
  /** Kills the worker started last. */
  killWorker(): Promise<void>;
  stop(): Promise<void>;
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise((resolve) => child.once('exit', resolve));
}

const workerProcess = (child: ChildProcess): WorkerProcess => ({
  pid: child.pid ?? 0,
  kill: async () => {
    child.kill('SIGKILL');
    await exited(child);
  },
  pause: () => void child.kill('SIGSTOP'),
  resume: () => void child.kill('SIGCONT'),
  stop: async () => {
    child.kill('SIGCONT');
    child.kill('SIGTERM');
    await exited(child);
  },
});

/**
 * Starts a stack with short waits; `settings` override them. One that does not become ready is stopped. Tests that kill or pause a worker need `failoverWorkers`, or
 * they wait for half a minute; those that measure memory or silence need V8 as in an installation: `v8Options: []`.
 */
export async function startStack(
  name: string,
  settings: Record<string, string> = {},
  options: {
    worker?: boolean;
    bucket?: TestBucket;
    database?: TestDatabase;
    v8Options?: readonly string[];
  } = {},
): Promise<Stack> {
  const database = options.database ?? (await createTestDatabase());
  const bucket = options.bucket ?? (await createBucket());
  const { v8Options = v8OfTests } = options;
  const { pool } = database;
  const user = await createUser(pool, { first_name: 'Tess', last_name: 'Ter', email: 'tess@example.com' });
  const project = await createProject(pool, { name: 'Tests', timezone: 'UTC', week_start_day: 'sunday' });
  const newKey: Stack['newKey'] = async (scopes, projectId = project.id) =>
    (await createKey(pool, { user_id: user.id, project_ids: [projectId], scopes })).key;
  const key = await newKey(['batch_export:read', 'batch_export:write']);
  // A port that the system does not assign to an outgoing connection before the server listens.
  const { server: port } = await assignPorts(
    join(fromSetUp('EXPORTD_TEST_FOLDER'), `${randomUUID()}.ports.json`),
    ['server'],
  );
  const temporalAddress = settings.TEMPORAL_ADDRESS ?? fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS');
  const environment = {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '',
    // Without the profiles of the user who runs the tests.
    XDG_CONFIG_HOME: fromSetUp('EXPORTD_TEST_FOLDER'),
    NODE_COMPILE_CACHE: fromSetUp('NODE_COMPILE_CACHE'),
    EXPORTD_WORKFLOW_BUNDLE: fromSetUp('EXPORTD_WORKFLOW_BUNDLE'),
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: temporalAddress,
    EXPORTD_PORT: String(port),
    EXPORTD_TASK_QUEUE_PREFIX: `e2e-${randomUUID()}`,
    ...queryRoleSettings(database.url),
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_SETTLE_DELAY: '0s',
    EXPORTD_SETTLE_POLL_INTERVAL: '100ms',
    EXPORTD_JITTER_LONG: '0s',
    EXPORTD_JITTER_SHORT_FRACTION: '0',
    // Each pass reads the database and Temporal's lists: with one every five seconds, a stack that waits took a quarter more CPU time.
    EXPORTD_RECONCILE_INTERVAL: '15s',
    EXPORTD_ACTIVITY_RETRY_INITIAL: '200ms',
    EXPORTD_ACTIVITY_RETRY_MAX: '1s',
    EXPORTD_BACKFILL_CONCURRENCY: '6',
    // The cores belong to several stacks.
    EXPORTD_ENCODER_THREADS: '1',
    ...generousTimeouts,
    ...stableWorkers,
    ...settings,
  };
  const logs = join(tmpdir(), 'exportd-e2e-logs');
  mkdirSync(logs, { recursive: true });
  const start = (
    part: 'server' | 'worker',
    overrides: Record<string, string> = {},
    folder = root,
  ): ChildProcess => {
    const child = spawn(process.execPath, [...v8Options, join(folder, 'src/cli/main.ts'), part], {
      env: { ...environment, NODE_COMPILE_CACHE: compileCacheOf(part), ...overrides },
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: folder,
    });
    const log = createWriteStream(join(logs, `${name}.${part}.log`), { flags: 'a' });
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    return child;
  };

  const baseUrl = `http://127.0.0.1:${port}`;
  const server = start('server');
  const workers: WorkerProcess[] = [];

  const isReady = async (path: string) => {
    if (server.exitCode !== null) throw new Error(`${name}: the server exited; see ${logs}`);
    const response = await fetch(`${baseUrl}${path}`).catch(() => undefined);
    return response?.status === 200;
  };
  const spawnWorker: Stack['spawnWorker'] = (folder, overrides) => {
    const worker = workerProcess(start('worker', overrides, folder));
    workers.push(worker);
    return worker;
  };
  const startWorker: Stack['startWorker'] = async (overrides) => {
    const child = start('worker', overrides);
    const worker = workerProcess(child);
    workers.push(worker);
    await waitFor(() => {
      if (child.exitCode !== null) throw new Error(`${name}: the worker exited; see ${logs}`);
      return isReady('/readyz?for=act');
    }, `${name}: the worker polls`);
    return worker;
  };

  const call: Stack['call'] = async (method, path, body, headers = {}) => {
    const response = await fetch(`${baseUrl}/api/environments/${project.id}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const received = await response.text();
    const parsed: unknown = received === '' ? {} : JSON.parse(received);
    return {
      status: response.status,
      headers: response.headers,
      text: received,
      body: parsed as Record<string, unknown>,
    };
  };

  const runs = async (exportId: string) => {
    const { body } = await call('GET', `/batch_exports/${exportId}/runs/?limit=200`);
    return body.results as RunResponse[];
  };

  const stack: Stack = {
    baseUrl,
    projectId: project.id,
    pool,
    bucket,
    settings: readSettings(environment),
    environment,
    databaseUrl: database.url,
    key,
    newKey,
    temporalAddress,
    call,
    runs,
    workers,
    startWorker,
    spawnWorker,
    runCommand: async (folder, ...command) => {
      const child = spawn(process.execPath, [...v8Options, join(folder, 'src/cli/main.ts'), ...command], {
        env: environment,
        stdio: ['ignore', 'pipe', 'pipe'],
        cwd: folder,
      });
      const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), exited(child)]);
      if (child.exitCode !== 0) throw new Error(`exportd ${command.join(' ')} failed: ${output}${errors}`);
      return output;
    },
    killWorker: async () => workers.at(-1)?.kill(),
    createExport: async (fields = {}, config = {}) => {
      const response = await call('POST', '/batch_exports/', {
        name: `Export of ${name}`,
        model: 'events',
        interval: 'hour',
        // No scheduled run may start beside a test's backfill when an hour ends during the test.
        ...(fields.interval === undefined ? { end_at: hourAgo(0).toISOString() } : {}),
        ...fields,
        destination: {
          type: 'S3',
          config: {
            bucket_name: bucket.bucket,
            region: 'us-east-1',
            prefix: `exports/${randomUUID()}`,
            aws_access_key_id: bucket.accessKeyId,
            aws_secret_access_key: bucket.secretAccessKey,
            endpoint_url: bucket.endpoint,
            file_format: 'JSONLines',
            compression: 'gzip',
            ...config,
          },
        },
      });
      if (response.status !== 201) throw new Error(`Could not create the export: ${response.text}`);
      return response.body.id as string;
    },
    waitForRun: async (exportId, runId, status) => {
      let last: RunResponse | undefined;
      await waitFor(
        async () => {
          const { body } = await call('GET', `/batch_exports/${exportId}/runs/${runId}/`);
          last = body as unknown as RunResponse;
          return last.status === status;
        },
        () =>
          `run ${runId} is ${status}; last status ${last?.status ?? 'unknown'} (${last?.latest_error ?? 'no error'})`,
      );
      if (!last) throw new Error('The run was never read.');
      return last;
    },
    stop: async () => {
      await Promise.all(workers.map((worker) => worker.stop()));
      server.kill('SIGTERM');
      await exited(server);
      await database.drop();
    },
  };

  try {
    await waitFor(() => isReady('/healthz'), `${name}: /healthz responds 200`);
    if (options.worker !== false) await startWorker();
    return stack;
  } catch (error) {
    await stack.stop();
    throw error;
  }
}
