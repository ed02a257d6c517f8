import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import {
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  ListObjectsV2Command,
  S3Client,
} from '@aws-sdk/client-s3';
import pg from 'pg';
import { scopes } from '../../src/http/scopes.ts';
import { createPool, type Pool } from '../../src/journal/database.ts';
import { createChildProcesses, stopRecordedProcesses } from '../../src/local_stack/child_processes.ts';
import { type DataFolder, LaunchError, openDataFolder } from '../../src/local_stack/data_folder.ts';
import { acquireLock, LockHeld } from '../../src/local_stack/lock.ts';
import type { Report } from '../../src/local_stack/report.ts';
import {
  type ObjectStore,
  startServers,
  type TemporalServer,
} from '../../src/local_stack/servers/start_servers.ts';
import { migrateControl, migrateSource } from '../../src/migrate/migrate.ts';
import { rounded } from './results.ts';
import { createKey } from '../../src/http/accounts/api_keys.ts';
import { createProject } from '../../src/http/accounts/projects.ts';
import { createUser } from '../../src/http/accounts/users.ts';

/** Where a benchmark puts its servers, which are deleted afterwards. */
export interface ScratchOptions {
  /** A dedicated folder. */
  readonly folder: string;
  /** Whether to use the servers that the environment names. */
  readonly useEnvironment: boolean;
}

/** Servers with a database and a bucket that are deleted after the benchmark. */
export interface ScratchStack {
  readonly folder: DataFolder;
  /** A migrated, empty database for exportd and the events. */
  readonly databaseUrl: string;
  readonly temporal: TemporalServer;
  readonly objectStore: ObjectStore;
  readonly bucket: string;
  /** The keys of all objects in the bucket. */
  objectKeys(): Promise<ReadonlySet<string>>;
  /** Deletes all objects of the bucket. */
  emptyBucket(): Promise<void>;
}

/** What every benchmark measures on. */
export interface Scratch {
  readonly stack: ScratchStack;
  /** A few connections to the scratch database. */
  readonly pool: Pool;
  readonly report: Report;
  /** Aborted by the first Ctrl-C. */
  readonly signal: AbortSignal;
}

/** When and where a benchmark was measured. Times are in seconds. */
export interface Measurement {
  readonly started_at: string;
  /** Duration of the whole benchmark, including data and clean-up. */
  readonly seconds: number;
  readonly machine: {
    readonly cpus: number;
    readonly cpu_model: string;
    readonly memory_bytes: number;
    readonly platform: string;
    readonly node: string;
    readonly postgresql: string;
  };
  /** The load average of a minute before and after the benchmark. The second includes the benchmark. */
  readonly load: { readonly before: number; readonly after: number };
}

/** A project and its API key. */
export interface BenchAccount {
  readonly teamId: number;
  readonly apiKey: string;
}

/** application_name of the benchmark's connections. */
export const benchApplicationName = 'exportd-bench';

const maxConnections = 4;

/**
 * Runs a benchmark on scratch servers, and deletes everything that it created.
 * @returns its result, with when and where it was measured
 * @throws LaunchError when a server does not start, or the error of the benchmark
 */
export async function measureOnScratch<Result>(
  options: ScratchOptions,
  report: Report,
  signal: AbortSignal,
  measure: (scratch: Scratch) => Promise<Result>,
): Promise<Measurement & Result> {
  const startedAt = new Date();
  const before = currentLoad();
  const { stack, remove } = await createScratchStack(options, report);
  const pool = createPool(stack.databaseUrl, { max: maxConnections });
  try {
    const machine = await describeMachine(pool);
    const result = await measure({ stack, pool, report, signal });
    return {
      started_at: startedAt.toISOString(),
      seconds: rounded((Date.now() - startedAt.getTime()) / 1_000),
      machine,
      load: { before, after: currentLoad() },
      ...result,
    };
  } finally {
    await pool.end();
    report('Deleting the scratch data');
    await remove();
  }
}

/** Creates a user, a project and a key in a scratch database. */
export async function createBenchAccount(pool: Pool, name = 'Bench'): Promise<BenchAccount> {
  const user = await createUser(pool, { email: `${name.toLowerCase()}@example.com` });
  const project = await createProject(pool, { name });
  const { key } = await createKey(pool, { user_id: user.id, project_ids: [project.id], scopes: [...scopes] });
  return { teamId: project.id, apiKey: key };
}

const currentLoad = (): number => rounded(loadavg()[0] ?? 0);

async function describeMachine(pool: Pool): Promise<Measurement['machine']> {
  const { rows } = await pool.query<{ version: string }>(
    `select current_setting('server_version') as version`,
  );
  return {
    cpus: availableParallelism(),
    cpu_model: cpus()[0]?.model ?? 'unknown',
    memory_bytes: totalmem(),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    postgresql: rows[0]?.version ?? 'unknown',
  };
}

/** @returns the stack, and what deletes its database, bucket and folder and stops the servers that it started */
async function createScratchStack(
  { folder: path, useEnvironment }: ScratchOptions,
  report: Report,
): Promise<{ stack: ScratchStack; remove: () => Promise<void> }> {
  const folder = openDataFolder(path);
  const unlock = lockFolder(folder);
  const children = createChildProcesses(folder);
  process.once('exit', () => children.killAll());
  const undo: (() => Promise<void>)[] = [];
  const remove = async () => {
    for (const step of undo.splice(0).toReversed())
      await step().catch((error: unknown) => report(`Clean-up failed: ${String(error)}`));
    await children.stopAll();
    rmSync(folder.path, { recursive: true, force: true });
    unlock();
  };
  try {
    await stopRecordedProcesses(folder);
    // Data of a killed benchmark, which can be gigabytes.
    for (const name of ['postgresql', 's3', 'object-attributes'])
      rmSync(folder.inside(name), { recursive: true, force: true });
    const servers = await startServers(folder, children, { durable: false, useEnvironment }, report);
    const [serverUrl, temporal, objectStore] = await Promise.all([
      servers.postgresql,
      servers.temporal,
      servers.objectStore,
    ]);
    const database = `exportd_bench_${randomUUID().replaceAll('-', '')}`;
    await onServer(serverUrl, `create database ${database}`);
    undo.push(() => onServer(serverUrl, `drop database ${database} with (force)`));
    const url = new URL(serverUrl);
    url.pathname = `/${database}`;
    const databaseUrl = url.href;
    await migrateControl(databaseUrl);
    await migrateSource(databaseUrl);
    const { remove: removeBucket, ...bucket } = await createScratchBucket(objectStore);
    undo.push(removeBucket);
    // Reported to identify them after a killed benchmark.
    report(`The scratch database is ${database}, the scratch bucket ${bucket.bucket}`);
    return { stack: { folder, databaseUrl, temporal, objectStore, ...bucket }, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

function lockFolder(folder: DataFolder): () => void {
  try {
    return acquireLock(folder.inside('lock'));
  } catch (error) {
    if (error instanceof LockHeld)
      throw new LaunchError(
        `A benchmark is already running in ${folder.path} (process ${error.holder.pid}). Concurrent benchmarks would distort the results.`,
      );
    throw error;
  }
}

async function onServer(serverUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl, application_name: benchApplicationName });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

async function createScratchBucket({ endpoint, region, accessKeyId, secretAccessKey }: ObjectStore) {
  const client = new S3Client({
    endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  const bucket = `exportd-bench-${randomUUID()}`;
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  const objectKeys = async () => {
    const found = new Set<string>();
    let ContinuationToken: string | undefined;
    do {
      const page = await client.send(new ListObjectsV2Command({ Bucket: bucket, ContinuationToken }));
      for (const { Key } of page.Contents ?? []) found.add(Key ?? '');
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
    return found;
  };
  const emptyBucket = async () => {
    for (let left = await objectKeys(); left.size > 0; left = await objectKeys())
      for (const Key of left) await client.send(new DeleteObjectCommand({ Bucket: bucket, Key }));
  };
  const remove = async () => {
    await emptyBucket();
    await client.send(new DeleteBucketCommand({ Bucket: bucket }));
    client.destroy();
  };
  return { bucket, objectKeys, emptyBucket, remove };
}
