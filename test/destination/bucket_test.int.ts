import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { ListMultipartUploadsCommand, ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { testS3, type TestStep } from '../../src/destination/bucket_test.ts';
import { parseS3Config } from '../../src/destination/config.ts';
import { createUpload } from '../../src/destination/multipart.ts';
import type { S3Requests } from '../../src/destination/requests.ts';
import { createS3Proxy, type Interceptor, type S3Proxy } from '../e2e/s3_proxy.ts';
import { errorResponse, requiringEqualParts } from '../export/stores.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { casesOf } from '../setup/effort.ts';
import {
  bucketAt,
  configOf,
  denying,
  requestsOf,
  s3Settings,
  withoutConditionalWrites,
} from './bucket_requests.ts';
import { type FakeServer, type ReceivedRequest, startFakeServer } from './fake_server.ts';
import { startPermissionProxy, type Treatment } from './permission_proxy.ts';
import { type BucketReader, openBucketReader } from '../../src/destination/bucket_reader.ts';
import { deleteFile, deleteIfUnchanged, deleteObject } from '../../src/destination/delete_object.ts';
import { getManifestObject } from '../../src/destination/manifest_object.ts';
import { isFromUpload } from '../../src/destination/object_headers.ts';
import { putSmallObject, putWholeFile } from '../../src/destination/write_object.ts';

describe('the bucket reader', () => {
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
    const config = parseS3Config(
      configOf(bucket, { endpoint_url: `http://127.0.0.1:${port}` }),
      s3Settings(),
    );
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

  const listAll = async (reader: BucketReader): Promise<string[]> => {
    const keys: string[] = [];
    for await (const key of reader.listKeys('list/', signal)) keys.push(key);
    return keys;
  };

  it('lists all pages of keys', async () => {
    const answers: Readonly<Record<string, string>> = {
      '': '<IsTruncated>true</IsTruncated><NextContinuationToken>a+b</NextContinuationToken><Contents><Key>list/0</Key></Contents>',
      'a+b': '<IsTruncated>false</IsTruncated><Contents><Key>list/1</Key></Contents>',
    };
    const server = await startFakeServer(({ path }, response) => {
      const token = new URL(path, 'http://s3').searchParams.get('continuation-token') ?? '';
      response.end(`<ListBucketResult><Name>bucket</Name>${answers[token] ?? ''}</ListBucketResult>`);
    });
    const reader = openBucketReader(parseS3Config(configOf(bucketAt(server.endpoint)), s3Settings()), {
      settings: s3Settings(),
      onError: () => undefined,
    });
    expect(await listAll(reader)).toEqual(['list/0', 'list/1']);
    reader.close();
    await server.close();
  });

  it.each(casesOf([5], [1_005]))('lists %i keys, and returns null for a missing object', async (count) => {
    const names = Array.from({ length: count }, (_, index) => `list/${String(index).padStart(4, '0')}`);
    for (let at = 0; at < names.length; at += 50)
      await Promise.all(names.slice(at, at + 50).map((name) => put(name, Buffer.from(''))));
    expect(await withReader(listAll)).toEqual(names);
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

describe('a bucket', () => {
  const bucket = useTestBucket();
  let server: FakeServer | undefined;
  afterEach(() => server?.close());

  const settings = s3Settings({ EXPORTD_DESTINATION_TEST_TIMEOUT: '30s' });
  const testTraits = (more: object = {}) => testS3(parseS3Config(configOf(bucket, more), settings), settings);
  const testBucket = async (more: object = {}): Promise<readonly TestStep[]> =>
    (await testTraits(more)).steps;

  /** Runs the destination test through a proxy that denies permissions or features. */
  async function testThroughProxy(treatmentOf: (received: ReceivedRequest) => Treatment) {
    server = await startPermissionProxy(bucket.endpoint, treatmentOf);
    return testBucket({ endpoint_url: server.endpoint });
  }

  /** Formats steps as `name: status`, with the message of failed ones. */
  const formatSteps = (steps: readonly TestStep[]): string[] =>
    steps.map(({ name, result }) =>
      result.message === null ? `${name}: ${result.status}` : `${name}: ${result.status}: ${result.message}`,
    );
  const passed = (name: string) => `${name}: Passed`;
  const names = [
    'bucket',
    'write',
    'read back',
    'conditional write',
    'multipart list parts',
    'parts',
    'delete',
  ];

  /** All steps passed except one. */
  const passedExcept = (name: string, message: string): unknown[] =>
    names.map((each) =>
      each === name ? expect.stringMatching(`^${name}: Failed: .*${message}`) : passed(each),
    );
  const skippedAfter = (name: string, message: string): unknown[] => {
    const failed = names.indexOf(name);
    return names.map((each, position) => {
      if (position < failed) return passed(each);
      return position === failed
        ? expect.stringMatching(`^${each}: Failed: .*${message}`)
        : `${each}: Skipped`;
    });
  };

  /** The keys of objects and of unfinished uploads. */
  async function keysInBucket(): Promise<readonly (string | undefined)[]> {
    const { Contents = [] } = await bucket.client.send(new ListObjectsV2Command({ Bucket: bucket.bucket }));
    const uploads = await bucket.client.send(new ListMultipartUploadsCommand({ Bucket: bucket.bucket }));
    return [...Contents, ...(uploads.Uploads ?? [])].map(({ Key }) => Key);
  }

  describe('the destination test of a bucket', () => {
    it('passes all steps and deletes what it wrote', async () => {
      const steps = await testBucket();
      expect(formatSteps(steps)).toEqual(names.map(passed));
      for (const { description } of steps) expect(description).toMatch(/^[A-Z]/);
      expect(await keysInBucket()).toEqual([]);
    });

    it('writes under the constant part of the prefix', async () => {
      await testThroughProxy(() => 'pass');
      const written = server?.received.filter(({ method }) => method === 'PUT') ?? [];
      expect(written.length).toBeGreaterThan(2);
      for (const { path } of written)
        expect(path).toMatch(new RegExp(`^/${bucket.bucket}/exports/_exportd_test/[0-9a-f-]{36}`));
    });

    it.each([
      ['a bucket that is missing', { bucket_name: 'there-is-none' }, 'does not exist'],
      ['an unknown access key', { aws_access_key_id: 'nobody' }, 'aws_access_key_id'],
      ['a wrong secret', { aws_secret_access_key: 'wrong' }, 'aws_secret_access_key'],
      ['an address without a server', { endpoint_url: 'http://127.0.0.1:1' }, 'did not respond'],
    ])('fails the first step and skips the rest with %s', async (_what, more, message) => {
      const steps = await testBucket(more);
      expect(formatSteps(steps)).toEqual(skippedAfter('bucket', message));
      expect(JSON.stringify(steps)).not.toContain('nobody');
    });

    it('times out when a server accepts the connection and does not respond', async () => {
      server = await startFakeServer(() => undefined);
      const short = s3Settings({ EXPORTD_DESTINATION_TEST_TIMEOUT: '300ms' });
      const { steps } = await testS3(
        parseS3Config(configOf(bucket, { endpoint_url: server.endpoint }), short),
        short,
      );
      expect(formatSteps(steps)).toEqual(skippedAfter('bucket', 'in time'));
    });

    it('continues without the optional permission to list', async () => {
      const steps = await testThroughProxy(({ method, path }) =>
        method === 'GET' && path.includes('list-type') ? 'deny' : 'pass',
      );
      expect(formatSteps(steps)).toEqual(passedExcept('bucket', 'Exports work'));
    });

    it('skips the rest without the permission to write', async () => {
      const steps = await testThroughProxy(({ method }) => (method === 'PUT' ? 'deny' : 'pass'));
      expect(formatSteps(steps)).toEqual(skippedAfter('write', 'may write'));
    });

    it.each<[string, string, (received: ReceivedRequest) => boolean]>([
      ['read back', 'Exports work', ({ method, path }) => method === 'GET' && path.endsWith('GetObject')],
      [
        'multipart list parts',
        'list the parts',
        ({ method, path }) => method === 'GET' && path.includes('uploadId'),
      ],
      [
        'multipart list parts',
        'abort uploads',
        ({ method, path }) => method === 'DELETE' && path.includes('uploadId'),
      ],
      [
        'delete',
        'object of this test',
        ({ method, path }) => method === 'DELETE' && !path.includes('uploadId'),
      ],
    ])('says what exports lose without the permission of "%s": %s', async (name, message, isDenied) => {
      const steps = await testThroughProxy((received) => (isDenied(received) ? 'deny' : 'pass'));
      expect(formatSteps(steps)).toEqual(passedExcept(name, message));
    });

    it.each<[string, (path: string) => boolean, string[]]>([
      ['multipart list parts', (path) => path.includes('uploadId'), ['parts']],
      ['delete', (path) => !path.includes('uploadId'), []],
    ])('says that cleaning up in "%s" is not answered', async (name, isSilent, skipped) => {
      const steps = await testThroughProxy(({ method, path }) =>
        method === 'DELETE' && isSilent(path) ? 'stay silent' : 'pass',
      );
      const expected = passedExcept(name, 'in time');
      expect(formatSteps(steps)).toEqual(
        names.map((each, index) => (skipped.includes(each) ? `${each}: Skipped` : expected[index])),
      );
    });

    it.each(['ignore conditions', 'reject conditions'] as const)(
      'detects a server without conditional writes that may %s',
      async (treatment) => {
        const steps = await testThroughProxy(() => treatment);
        expect(formatSteps(steps)).toEqual(passedExcept('conditional write', 'Exports work'));
      },
    );

    it('detects a server that ignores conditions when completing uploads only', async () => {
      const steps = await testThroughProxy(({ method }) =>
        method === 'POST' ? 'ignore conditions' : 'pass',
      );
      expect(formatSteps(steps)).toEqual(passedExcept('conditional write', 'Exports work'));
    });
  });

  describe('the traits of a store', () => {
    /** What the test finds of versitygw. */
    const complete = {
      conditional_put: true,
      conditional_complete: true,
      equal_parts: false,
      missing_key: 'not_found',
      checksums: true,
      versioned: false,
      demands_checksums: null,
      server: expect.any(String),
    };
    const detailsOf = (steps: readonly TestStep[]): string =>
      steps.map(({ result }) => result.details ?? '').join('\n');

    /** Tests a store that differs from versitygw. */
    async function testStore(difference: (proxy: S3Proxy) => Interceptor) {
      const proxy = await createS3Proxy(bucket.endpoint);
      proxy.intercept(difference(proxy));
      try {
        return await testTraits({ endpoint_url: proxy.endpoint });
      } finally {
        await proxy.close();
      }
    }

    it('are found, and each step says what it found', async () => {
      const before = await keysInBucket();
      const { steps, traits } = await testTraits();
      expect(traits).toEqual(complete);
      expect(detailsOf(steps)).toMatch(
        /checksum.*\n.*missing object is 404.*\n.*refuses to overwrite.*\n.*\n.*accepts parts of different sizes/,
      );
      expect(await keysInBucket()).toEqual(before);
    });

    it.each<[string, (proxy: S3Proxy) => Interceptor, object, string]>([
      [
        'requires parts of one size',
        ({ requests }) => requiringEqualParts(requests),
        { equal_parts: true },
        'requires parts of one size',
      ],
      [
        'denies reading a missing object',
        () => ({
          after: ({ operation, status }) =>
            operation === 'HeadObject' && status === 404 ? errorResponse(403, 'AccessDenied') : undefined,
        }),
        { missing_key: 'denied' },
        's3:ListBucket',
      ],
      [
        'ignores checksums',
        () => ({
          before: ({ headers }) =>
            'x-amz-checksum-crc32' in headers
              ? (outgoing) => outgoing.writeHead(200, { etag: '"1"' }).end()
              : undefined,
        }),
        { checksums: false },
        'does not check the checksums',
      ],
    ])('that %s are found', async (_, difference, changed, words) => {
      const before = await keysInBucket();
      const { steps, traits } = await testStore(difference);
      expect(formatSteps(steps)).toEqual(names.map(passed));
      expect(traits).toEqual({ ...complete, ...changed });
      expect(detailsOf(steps)).toContain(words);
      expect(await keysInBucket()).toEqual(before);
    });

    it('that ignores conditions are found', async () => {
      server = await startPermissionProxy(bucket.endpoint, () => 'ignore conditions');
      const { traits } = await testTraits({ endpoint_url: server.endpoint });
      expect(traits).toMatchObject({ conditional_put: false, conditional_complete: false });
    });

    it('that refuses all parts fail the step', async () => {
      const before = await keysInBucket();
      const { steps, traits } = await testStore(({ requests }) => ({
        before: ({ operation, uploadId }) =>
          operation === 'CompleteMultipartUpload' &&
          requests.filter((part) => part.uploadId === uploadId && part.operation === 'UploadPart').length > 1
            ? errorResponse(400, 'InvalidPart')
            : undefined,
      }));
      expect(formatSteps(steps)).toEqual(passedExcept('parts', 'Files of one part work'));
      expect(traits.equal_parts).toBeNull();
      expect(await keysInBucket()).toEqual(before);
    });
  });
});

describe('objects to be deleted', () => {
  const { signal } = new AbortController();
  const options = { ContentType: 'application/json' };
  const bucket = useTestBucket();
  const requests = requestsOf(bucket);
  afterAll(() => requests.close());

  const put = (key: string, text: string) =>
    putSmallObject(requests, key, Buffer.from(text), options, signal);
  const getManifest = (key: string) => getManifestObject(requests, key, signal);

  describe('deleting an object', () => {
    it('is idempotent', async () => {
      await put('a', 'text');
      await deleteObject(requests, 'a', signal);
      await deleteObject(requests, 'a', signal);
      expect(await getManifest('a')).toEqual({ state: 'absent' });
    });

    it('keeps an object that replaced it', async () => {
      await put('b', 'first');
      const seen = await getManifest('b');
      if (seen.state !== 'present') throw new Error('The object is not there.');
      await deleteObject(requests, 'b', signal);
      await put('b', 'second');
      await deleteIfUnchanged(requests, 'b', seen, signal);
      expect(await getManifest('b')).toMatchObject({ text: 'second' });
      await deleteIfUnchanged(withoutConditionalWrites(requests), 'b', seen, signal);
      expect(await getManifest('b')).toEqual({ state: 'absent' });
    });
  });

  describe('deleting a file', () => {
    const write = (key: string, upload_token: string) =>
      putWholeFile(
        requests,
        { key, upload_token, contentType: 'text/plain' },
        Buffer.from(upload_token),
        {},
        signal,
      );
    /** Requests between which another export writes the key again, after the first that looks at it. */
    const overtaken = (key: string): S3Requests => ({
      ...requests,
      send: async (name, aborted, call) => {
        const found = await requests.send(name, aborted, call);
        if (name === 'HeadObject') {
          await deleteObject(requests, key, signal);
          await write(key, 'another');
        }
        return found;
      },
    });

    it('deletes the object of the upload, and no other with its key', async () => {
      await write('d', 'ours');
      expect(await deleteFile(requests, { key: 'd', upload_token: 'another' }, signal)).toBe('deleted');
      expect(await getManifest('d')).toMatchObject({ text: 'ours' });
      expect(
        await deleteFile(denying(requests, 'HeadObject'), { key: 'd', upload_token: 'ours' }, signal),
      ).toBe('unreadable');
      expect(await deleteFile(requests, { key: 'd', upload_token: 'ours' }, signal)).toBe('deleted');
      expect(await getManifest('d')).toEqual({ state: 'absent' });
    });

    it('keeps the object that another export writes after it has looked', async () => {
      await write('e', 'ours');
      expect(await deleteFile(overtaken('e'), { key: 'e', upload_token: 'ours' }, signal)).toBe('deleted');
      expect(await getManifest('e')).toMatchObject({ text: 'another' });
    });
  });

  describe('the token of an upload', () => {
    it('identifies the object that was created by it', async () => {
      const upload = await createUpload(
        requests,
        'c',
        { ...options, firstPartBytes: 5 * 1024 * 1024 },
        signal,
      );
      const ours = { key: 'c', upload_token: upload.upload_token };
      expect(await isFromUpload(requests, ours, signal)).toBe(false);
      const part = await upload.putPart(1, Buffer.from('part'), signal);
      await upload.complete([part], 4, signal);
      expect(await isFromUpload(requests, ours, signal)).toBe(true);
      expect(await isFromUpload(requests, { key: 'c', upload_token: 'another' }, signal)).toBe(false);
      expect(await isFromUpload(denying(requests, 'HeadObject'), ours, signal)).toBeNull();
    });
  });
});
