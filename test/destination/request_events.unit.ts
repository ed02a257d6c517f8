import { HeadBucketCommand } from '@aws-sdk/client-s3';
import { afterEach, describe, expect, it } from '@jest/globals';
import { parseS3Config } from '../../src/destination/config.ts';
import { createS3Client } from '../../src/destination/client.ts';
import {
  observeS3Requests,
  outcomeOf,
  type EndedS3Request,
} from '../../src/destination/request_events.ts';
import { s3Settings } from './bucket_requests.ts';
import { startFakeServer, type FakeServer } from './fake_server.ts';

const settings = s3Settings();
const observed: EndedS3Request[] = [];
let server: FakeServer | undefined;
let stop = (): void => undefined;

/** Sends a HEAD of a bucket to a server that responds with these statuses, one after another. */
async function head(...statuses: readonly number[]): Promise<void> {
  const left = [...statuses];
  server = await startFakeServer((_, response) => response.writeHead(left.shift() ?? 200).end());
  const config = parseS3Config(
    {
      bucket_name: 'bucket',
      region: 'us-east-1',
      prefix: '',
      endpoint_url: server.endpoint,
      aws_access_key_id: 'key',
      aws_secret_access_key: 'secret',
    },
    settings,
  );
  const client = createS3Client(config, settings);
  await client.send(new HeadBucketCommand({ Bucket: 'bucket' })).catch(() => undefined);
  client.destroy();
}

afterEach(async () => {
  stop();
  observed.length = 0;
  await server?.close();
});

describe('the end of a request to an S3 server', () => {
  it('is published for each attempt of the SDK', async () => {
    stop = observeS3Requests((request) => observed.push(request));
    await head(500, 200);
    expect(observed.map(({ operation, outcome }) => [operation, outcome])).toEqual([
      ['HeadBucket', 'server_error'],
      ['HeadBucket', 'ok'],
    ]);
    expect(observed.every(({ seconds }) => seconds > 0)).toBe(true);
  });

  it('is not published to those who no longer observe', async () => {
    observeS3Requests((request) => observed.push(request))();
    await head(200);
    expect(observed).toEqual([]);
  });

  it.each([
    { error: { name: 'AbortError' }, outcome: 'aborted' },
    { error: { name: 'Error', code: 'ECONNREFUSED' }, outcome: 'no_response' },
    { error: { name: '304', $metadata: { httpStatusCode: 304 } }, outcome: 'ok' },
    { error: { name: 'NoSuchKey', $metadata: { httpStatusCode: 404 } }, outcome: 'not_found' },
    { error: { name: 'AccessDenied', $metadata: { httpStatusCode: 403 } }, outcome: 'denied' },
    { error: { name: 'PreconditionFailed', $metadata: { httpStatusCode: 412 } }, outcome: 'conflict' },
    { error: { name: 'InvalidPart', $metadata: { httpStatusCode: 400 } }, outcome: 'rejected' },
    { error: { name: 'SlowDown', $metadata: { httpStatusCode: 503 } }, outcome: 'throttled' },
    { error: { name: 'InternalError', $metadata: { httpStatusCode: 500 } }, outcome: 'server_error' },
  ])('has the outcome $outcome after $error.name', ({ error, outcome }) => {
    expect(outcomeOf(error)).toBe(outcome);
  });
});
