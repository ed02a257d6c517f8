import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { assignPorts } from '../../src/local_stack/ports.ts';
import type { TestBucket } from './bucket.ts';
import { programPath } from './programs.ts';
import { waitFor } from './wait_for.ts';

/** S3 servers beside that of the test command. */
export const otherStores = ['minio', 'rclone', 'moto'] as const;

/** A bucket of another S3 server. */
export interface OtherStore {
  readonly bucket: TestBucket;
  close(): Promise<void>;
}

interface StoreProcess {
  readonly data: string;
  readonly port: number;
  readonly key: string;
  readonly secret: string;
}

/** How each is run. */
const programs: Readonly<
  Record<(typeof otherStores)[number], (of: StoreProcess) => Promise<{ command: string; args: string[] }>>
> = {
  minio: async ({ data, port }) => ({
    command: await programPath('minio'),
    args: ['server', '--quiet', '--address', `127.0.0.1:${port}`, data],
  }),
  rclone: async ({ data, port, key, secret }) => ({
    command: await programPath('rclone'),
    args: ['serve', 's3', '--addr', `127.0.0.1:${port}`, '--auth-key', `${key},${secret}`, data],
  }),
  moto: async ({ port }) => ({
    command: await programPath('moto_server'),
    args: ['-H', '127.0.0.1', '-p', String(port)],
  }),
};

/** Starts an S3 server with an empty bucket. Its data is deleted when it is closed. */
export async function startStore(name: (typeof otherStores)[number]): Promise<OtherStore> {
  const folder = mkdtempSync(join(tmpdir(), `exportd-${name}-`));
  const data = join(folder, 'data');
  mkdirSync(data);
  const { s3: port } = await assignPorts(join(folder, 'ports.json'), ['s3']);
  const [key, secret] = ['exportd', randomBytes(16).toString('hex')];
  const { command, args } = await programs[name]({ data, port, key, secret });
  const child: ChildProcess = spawn(command, args, {
    env: { ...process.env, MINIO_ROOT_USER: key, MINIO_ROOT_PASSWORD: secret },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (log = (log + text).slice(-2_000)));
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const endpoint = `http://127.0.0.1:${port}`;
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: key, secretAccessKey: secret },
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  const bucket = `test-${randomUUID()}`;
  await waitFor(
    async () => {
      if (child.exitCode !== null) throw new Error(`${name} ended: ${log}`);
      return client.send(new CreateBucketCommand({ Bucket: bucket })).then(
        () => true,
        () => false,
      );
    },
    () => `${name} has a bucket: ${log}`,
  );
  return {
    bucket: { endpoint, region: 'us-east-1', accessKeyId: key, secretAccessKey: secret, bucket, client },
    close: async () => {
      client.destroy();
      child.kill('SIGKILL');
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
