import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import pg from 'pg';
import { createChildren, endRecordedProcesses } from '../local_stack/child_processes.ts';
import { openDataFolder, type DataFolder } from '../local_stack/data_folder.ts';
import { LaunchError } from '../local_stack/launch_error.ts';
import { LockHeld, takeLock } from '../local_stack/lock.ts';
import type { Report } from '../local_stack/report.ts';
import { startServers, type ObjectStore, type TemporalServer } from '../local_stack/servers/start_servers.ts';
import { migrateControl } from '../migrate/migrate_control.ts';
import { migrateSource } from '../migrate/migrate_source.ts';
import { benchApplicationName } from './exported_rows.ts';
import { createScratchBucket } from './scratch_bucket.ts';

/** Servers with a database and a bucket that are thrown away after the bench. */
export interface ScratchStack {
  readonly folder: DataFolder;
  /** A migrated, empty database for exportd and the events. */
  readonly databaseUrl: string;
  readonly temporal: TemporalServer;
  readonly objectStore: ObjectStore;
  readonly bucket: string;
  /** The keys of all objects in the bucket. */
  objectKeys(): Promise<ReadonlySet<string>>;
  /** Removes all objects of the bucket. */
  emptyBucket(): Promise<void>;
  /** Removes database and bucket, ends the servers that were started here and removes the folder. */
  remove(): Promise<void>;
}

function lockFolder(folder: DataFolder): () => void {
  try {
    return takeLock(folder.inside('lock'));
  } catch (error) {
    if (error instanceof LockHeld)
      throw new LaunchError(
        `A bench already runs from ${folder.path} (process ${error.holder.pid}): two at once would measure each other.`,
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
 * Makes the scratch stack in a folder, by servers of its own or those that the environment names.
 * @throws LaunchError
 */
export async function createScratchStack(
  path: string,
  { useEnvironment }: { readonly useEnvironment: boolean },
  report: Report,
): Promise<ScratchStack> {
  const folder = openDataFolder(path);
  const unlock = lockFolder(folder);
  const children = createChildren(folder);
  process.once('exit', () => children.killAll());
  const undo: (() => Promise<void>)[] = [];
  const remove = async () => {
    for (const step of undo.splice(0).toReversed())
      await step().catch((error: unknown) => report(`Something is left behind: ${String(error)}`));
    await children.stopAll();
    rmSync(folder.path, { recursive: true, force: true });
    unlock();
  };
  try {
    await endRecordedProcesses(folder);
    // What a bench that was killed has left: gigabytes of data.
    for (const name of ['postgresql', 's3', 's3-attributes'])
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
    // Whoever finds them later, after a bench that was killed, knows whose they were.
    report(`The scratch database is ${database}, the scratch bucket ${name}`);
    return { folder, databaseUrl, temporal, objectStore, bucket: name, objectKeys, emptyBucket, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
