import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseS3Config } from '../../src/destination/config.ts';
import { openBucketReader, type BucketReader } from '../../src/destination/objects.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { configOf, s3Settings } from './bucket_requests.ts';

const { signal } = new AbortController();
const bytes = randomBytes(1_000_000);
const bucket = useTestBucket();
let proxy: Server;
/** Number of response bytes after which the proxy closes a connection. */
let cutAfter = Number.POSITIVE_INFINITY;
/** Called when the proxy closes a connection. */
let onCut: () => Promise<unknown> = () => Promise.resolve();

const put = (Key: string, Body: Buffer) =>
  bucket.client.send(new PutObjectCommand({ Bucket: bucket.bucket, Key, Body }));

beforeAll(async () => {
  const { hostname, port } = new URL(bucket.endpoint);
  proxy = createServer((client) => {
    const server = connect(Number(port), hostname);
    let passed = 0;
    client.pipe(server);
    server.on('data', (chunk: Buffer) => {
      passed += chunk.length;
      if (passed < cutAfter) client.write(chunk);
      else {
        server.destroy();
        void onCut().then(() => client.destroy());
      }
    });
    server.on('end', () => client.end());
    for (const socket of [client, server]) socket.on('error', () => socket.destroy());
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
});
afterAll(() => {
  proxy.close();
});

async function withReader<Result>(work: (reader: BucketReader) => Promise<Result>): Promise<Result> {
  const { port } = proxy.address() as AddressInfo;
  const config = parseS3Config(configOf(bucket, { endpoint_url: `http://127.0.0.1:${port}` }), s3Settings());
  const reader = openBucketReader(config, {
    settings: s3Settings({ EXPORTD_S3_RETRY_BUDGET: '2s' }),
    onError: () => undefined,
  });
  try {
    return await work(reader);
  } finally {
    reader.close();
  }
}

const readAll = (key: string) =>
  withReader(async (reader) => {
    const object = await reader.open(key, signal);
    const chunks: Buffer[] = [];
    for await (const chunk of object?.chunks ?? []) chunks.push(chunk);
    return object && Buffer.concat(chunks);
  });

describe('the bucket reader', () => {
  it('lists all pages of keys, and returns null for a missing object', async () => {
    const names = Array.from({ length: 1_005 }, (_, index) => `list/${String(index).padStart(4, '0')}`);
    for (let at = 0; at < names.length; at += 50)
      await Promise.all(names.slice(at, at + 50).map((name) => put(name, Buffer.from(''))));
    const listed = await withReader(async (reader) => {
      const keys: string[] = [];
      for await (const key of reader.listKeys('list/', signal)) keys.push(key);
      return keys;
    });
    expect(listed).toEqual(names);
    expect(await readAll('nothing')).toBeNull();
  });

  it('resumes after a broken connection', async () => {
    await put('object', bytes);
    cutAfter = 300_000;
    expect((await readAll('object'))?.equals(bytes)).toBe(true);
  });

  it('does not mix an object with its replacement', async () => {
    await put('object', bytes);
    cutAfter = 300_000;
    onCut = () => put('object', randomBytes(1_000_000));
    await expect(readAll('object')).rejects.toMatchObject({ type: 'ObjectReplaced' });
  });

  it('fails when connections keep breaking', async () => {
    await put('object', bytes);
    cutAfter = 0;
    onCut = () => Promise.resolve();
    await expect(readAll('object')).rejects.toMatchObject({ transient: true });
  });
});
