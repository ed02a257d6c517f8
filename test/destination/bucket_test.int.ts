import { ListMultipartUploadsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterEach, describe, expect, it } from '@jest/globals';
import { parseS3Config } from '../../src/destination/config.ts';
import { testS3, type TestStep } from '../../src/destination/bucket_test.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { configOf, s3Settings } from './bucket_requests.ts';
import { createS3Proxy, type Interceptor, type S3Proxy } from '../e2e/s3_proxy.ts';
import { requiringEqualParts, errorResponse } from '../export/stores.ts';
import { startPermissionProxy, type Treatment } from './permission_proxy.ts';
import { startFakeServer, type ReceivedRequest, type FakeServer } from './fake_server.ts';

const bucket = useTestBucket();
let server: FakeServer | undefined;
afterEach(() => server?.close());

const settings = s3Settings({ EXPORTD_DESTINATION_TEST_TIMEOUT: '30s' });
const testTraits = (more: object = {}) => testS3(parseS3Config(configOf(bucket, more), settings), settings);
const testBucket = async (more: object = {}): Promise<readonly TestStep[]> => (await testTraits(more)).steps;

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
    return position === failed ? expect.stringMatching(`^${each}: Failed: .*${message}`) : `${each}: Skipped`;
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

  it.each(['ignore conditions', 'reject conditions'] as const)(
    'detects a server without conditional writes that may %s',
    async (treatment) => {
      const steps = await testThroughProxy(() => treatment);
      expect(formatSteps(steps)).toEqual(passedExcept('conditional write', 'Exports work'));
    },
  );

  it('detects a server that ignores conditions when completing uploads only', async () => {
    const steps = await testThroughProxy(({ method }) => (method === 'POST' ? 'ignore conditions' : 'pass'));
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
        before: ({ headers }) => ('x-amz-checksum-crc32' in headers ? { status: 200, body: '' } : undefined),
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
