import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import pg from 'pg';
import { createChildProcesses, stopRecordedProcesses } from '../local_stack/child_processes.ts';
import { openDataFolder, type DataFolder } from '../local_stack/data_folder.ts';
import { LaunchError } from '../local_stack/launch_error.ts';
import { LockHeld, acquireLock } from '../local_stack/lock.ts';
import type { Report } from '../local_stack/report.ts';
import { startServers, type ObjectStore, type TemporalServer } from '../local_stack/servers/start_servers.ts';
import { migrateControl } from '../migrate/migrate_control.ts';
import { migrateSource } from '../migrate/migrate_source.ts';
import { benchApplicationName } from './export_statements.ts';
import { createScratchBucket } from './scratch_bucket.ts';

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
  /** Deletes the database and the bucket, stops the servers that it started and deletes the folder. */
  remove(): Promise<void>;
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

const databaseOf = (serverUrl: string, name: string): string => {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
};

/**
 * Creates a scratch stack in a folder, on new servers or those that the environment names.
 * @throws LaunchError
 */
export async function createScratchStack(
  path: string,
  { useEnvironment }: { readonly useEnvironment: boolean },
  report: Report,
): Promise<ScratchStack> {
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
    const databaseUrl = databaseOf(serverUrl, database);
    await migrateControl(databaseUrl);
    await migrateSource(databaseUrl);
    const bucket = await createScratchBucket(objectStore);
    undo.push(bucket.remove);
    const { name, keys: objectKeys, empty: emptyBucket } = bucket;
    // Reported to identify them after a killed benchmark.
    report(`The scratch database is ${database}, the scratch bucket ${name}`);
    return { folder, databaseUrl, temporal, objectStore, bucket: name, objectKeys, emptyBucket, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
