import { ListMultipartUploadsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { s3 } from '../../../src/destination/s3/index.ts';
import type { TestStep } from '../../../src/destination/test_result.ts';
import { createBucket, type TestBucket } from '../../setup/bucket.ts';
import { configOf, s3Settings } from './bucket_requests.ts';
import { startRightsProxy, type Treatment } from './rights_proxy.ts';
import { startWebServer, type ReceivedRequest, type WebServer } from './web_server.ts';

let bucket: TestBucket;
let server: WebServer | undefined;
beforeAll(async () => {
  bucket = await createBucket();
});
afterEach(() => server?.close());
afterAll(() => bucket.client.destroy());

const settings = s3Settings({ EXPORTD_DESTINATION_TEST_TIMEOUT: '30s' });
const testBucket = (more: object = {}): Promise<readonly TestStep[]> =>
  s3.test(s3.parseConfig(configOf(bucket, more), settings), settings);

/** The test of a bucket with fewer rights or abilities. */
async function testThrough(treatmentOf: (received: ReceivedRequest) => Treatment) {
  server = await startRightsProxy(bucket.endpoint, treatmentOf);
  return testBucket({ endpoint_url: server.endpoint });
}

/** Steps as `name: status`, the message of the failed ones behind it. */
const told = (steps: readonly TestStep[]): string[] =>
  steps.map(({ name, result }) =>
    result.message === null ? `${name}: ${result.status}` : `${name}: ${result.status}: ${result.message}`,
  );
const passed = (name: string) => `${name}: Passed`;
const names = ['bucket', 'write', 'read back', 'conditional write', 'multipart list parts', 'delete'];

/** All steps passed but one. */
const allBut = (name: string, words: string): unknown[] =>
  names.map((each) => (each === name ? expect.stringMatching(`^${name}: Failed: .*${words}`) : passed(each)));
const skippedAfter = (name: string, words: string): unknown[] => {
  const failed = names.indexOf(name);
  return names.map((each, position) => {
    if (position < failed) return passed(each);
    return position === failed ? expect.stringMatching(`^${each}: Failed: .*${words}`) : `${each}: Skipped`;
  });
};

async function isEmpty(): Promise<boolean> {
  const objects = await bucket.client.send(new ListObjectsV2Command({ Bucket: bucket.bucket }));
  const uploads = await bucket.client.send(new ListMultipartUploadsCommand({ Bucket: bucket.bucket }));
  return (objects.Contents ?? []).length === 0 && (uploads.Uploads ?? []).length === 0;
}

describe('the test of a bucket', () => {
  it('passes every step and leaves nothing behind', async () => {
    const steps = await testBucket();
    expect(told(steps)).toEqual(names.map(passed));
    for (const { description } of steps) expect(description).toMatch(/^[A-Z]/);
    expect(await isEmpty()).toBe(true);
  });

  it('writes under the constant part of the prefix', async () => {
    await testThrough(() => 'pass');
    const written = server?.received.filter(({ method }) => method === 'PUT') ?? [];
    expect(written.length).toBeGreaterThan(2);
    for (const { path } of written)
      expect(path).toMatch(new RegExp(`^/${bucket.bucket}/exports/_exportd_test/[0-9a-f-]{36}`));
  });

  it.each([
    ['a bucket that is missing', { bucket_name: 'there-is-none' }, 'does not exist'],
    ['an unknown access key', { aws_access_key_id: 'nobody' }, 'aws_access_key_id'],
    ['a wrong secret', { aws_secret_access_key: 'wrong' }, 'aws_secret_access_key'],
    ['an address where nobody answers', { endpoint_url: 'http://127.0.0.1:1' }, 'did not respond'],
  ])('ends at the first step with %s', async (_what, more, words) => {
    const steps = await testBucket(more);
    expect(told(steps)).toEqual(skippedAfter('bucket', words));
    expect(JSON.stringify(steps)).not.toContain('nobody');
  });

  it('ends when a server accepts the connection and says nothing', async () => {
    server = await startWebServer(() => undefined);
    const short = s3Settings({ EXPORTD_DESTINATION_TEST_TIMEOUT: '300ms' });
    const steps = await s3.test(
      s3.parseConfig(configOf(bucket, { endpoint_url: server.endpoint }), short),
      short,
    );
    expect(told(steps)).toEqual(skippedAfter('bucket', 'in time'));
  });

  it('goes on without the right to list, which exports can do without', async () => {
    const steps = await testThrough(({ method, path }) =>
      method === 'GET' && path.includes('list-type') ? 'deny' : 'pass',
    );
    expect(told(steps)).toEqual(allBut('bucket', 'Exports work'));
  });

  it('ends without the right to write', async () => {
    const steps = await testThrough(({ method }) => (method === 'PUT' ? 'deny' : 'pass'));
    expect(told(steps)).toEqual(skippedAfter('write', 'may write'));
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
  ])('says what exports lose without the right that "%s" needs: %s', async (name, words, isDenied) => {
    const steps = await testThrough((received) => (isDenied(received) ? 'deny' : 'pass'));
    expect(told(steps)).toEqual(allBut(name, words));
  });

  it.each(['ignore conditions', 'refuse conditions'] as const)(
    'tells a server without conditional writes, though it may %s',
    async (treatment) => {
      const steps = await testThrough(() => treatment);
      expect(told(steps)).toEqual(allBut('conditional write', 'Exports work'));
    },
  );

  it('tells a server that ignores conditions on finished uploads alone', async () => {
    const steps = await testThrough(({ method }) => (method === 'POST' ? 'ignore conditions' : 'pass'));
    expect(told(steps)).toEqual(allBut('conditional write', 'Exports work'));
  });
});
