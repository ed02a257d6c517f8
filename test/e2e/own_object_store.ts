import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { type Child, createChildProcesses, waitUntilReady } from '../../src/local_stack/child_processes.ts';
import { openDataFolder } from '../../src/local_stack/data_folder.ts';
import { acquireLock } from '../../src/local_stack/lock.ts';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { findServer } from '../../src/local_stack/servers/find_server.ts';
import {
  isObjectStoreReady,
  objectStoreProgram,
  objectStoreRegion,
  objectStoreServer,
} from '../../src/local_stack/servers/object_store.ts';
import type { TestBucket } from '../setup/bucket.ts';
import { fromSetUp } from '../setup/environment.ts';

/** An S3 server that one test file kills and starts again. */
export interface OwnObjectStore {
  /** A bucket in it, which survives. */
  readonly bucket: TestBucket;
  /** Ends the server with SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again with its data at the same address. */
  start(): Promise<void>;
  /** Stops it and deletes its data. */
  close(): Promise<void>;
}

/**
 * Starts an S3 server with a bucket, in a folder beside that of the Jest run.
 * @param keepsVersions whether buckets can be versioned
 */
export async function startOwnObjectStore({ keepsVersions = false } = {}): Promise<OwnObjectStore> {
  const command = await findServer(objectStoreServer, () => undefined);
  const folder = openDataFolder(`${fromSetUp('EXPORTD_TEST_FOLDER')}-${randomUUID()}`);
  // Other runs of Jest delete folders without a lock.
  const unlock = acquireLock(folder.inside('lock'));
  const children = createChildProcesses(folder);
  const { s3: port } = await assignPorts(folder.inside('ports.json'), ['s3']);
  const endpoint = `http://127.0.0.1:${port}`;
  const [accessKeyId, secretAccessKey] = ['exportd', randomBytes(16).toString('hex')];
  const secrets = { s3AccessKeyId: accessKeyId, s3SecretAccessKey: secretAccessKey };
  const stateless = objectStoreProgram(command, folder, port, secrets, 'files');
  const versions = folder.inside('s3-versions');
  if (keepsVersions) mkdirSync(versions);
  const program = {
    ...stateless,
    env: { ...stateless.env, ...(keepsVersions && { VGW_VERSIONING_DIR: versions }) },
  };
  let running: Child;
  const start = async (): Promise<void> => {
    running = children.start(program);
    await waitUntilReady(running, () => isObjectStoreReady(endpoint));
  };
  await start();
  const client = new S3Client({
    endpoint,
    region: objectStoreRegion,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: true,
  });
  const bucket = `test-${randomUUID()}`;
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  return {
    bucket: { endpoint, region: objectStoreRegion, accessKeyId, secretAccessKey, bucket, client },
    kill: async () => {
      process.kill(running.pid, 'SIGKILL');
      await running.exited;
    },
    start,
    close: async () => {
      client.destroy();
      await children.stopAll();
      unlock();
      rmSync(folder.path, { recursive: true, force: true });
    },
  };
}
