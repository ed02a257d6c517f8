import { HeadBucketCommand } from '@aws-sdk/client-s3';
import { afterEach, describe, expect, it } from '@jest/globals';
import { parseS3Config } from '../../src/destination/config.ts';
import { DestinationError, type DestinationErrorOptions } from '../../src/destination/destination.ts';
import { toAssumeRoleError, withOwner, withServerText } from '../../src/destination/errors.ts';
import { classifyError } from '../../src/failures/classify_error.ts';
import { s3Settings } from './bucket_requests.ts';
import { type FakeServer, startFakeServer } from './fake_server.ts';
import { parseExpiration } from '../../src/destination/object_headers.ts';
import { createS3Client } from '../../src/destination/s3_client.ts';
import { type EndedS3Request, observeS3Requests, outcomeOf } from '../../src/destination/s3_outcomes.ts';

describe('the end of a request to an S3 server', () => {
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
    { error: { name: 'ThrottlingException', $metadata: { httpStatusCode: 400 } }, outcome: 'throttled' },
    { error: { name: 'KMS.ThrottlingException', $metadata: { httpStatusCode: 400 } }, outcome: 'throttled' },
    { error: { name: 'InternalError', $metadata: { httpStatusCode: 500 } }, outcome: 'server_error' },
  ])('has the outcome $outcome after $error.name', ({ error, outcome }) => {
    expect(outcomeOf(error)).toBe(outcome);
  });
});

describe('the owner of an error of a destination', () => {
  const own = { aws_access_key_id: 'AKIAIOSFODNN7EXAMPLE', endpoint_url: 'https://minio.example' };
  const aws = { ...own, endpoint_url: null };
  const role = { ...own, aws_access_key_id: undefined };
  const machine = { aws_access_key_id: undefined, endpoint_url: null };
  const failureOf = (type: string, options: DestinationErrorOptions = { transient: false }) =>
    new DestinationError(type, 'message', options);

  it.each([
    ['RequestTimeTooSkewed', own, 'tenant'],
    ['RequestTimeTooSkewed', aws, 'operator'],
    ['ExpiredToken', own, 'tenant'],
    ['ExpiredToken', role, 'tenant'],
    ['ExpiredToken', aws, 'operator'],
    ['ExpiredToken', machine, 'operator'],
    ['InvalidAccessKeyId', own, 'tenant'],
    ['InvalidAccessKeyId', role, 'tenant'],
    ['InvalidAccessKeyId', machine, 'operator'],
    ['SignatureDoesNotMatch', own, 'tenant'],
    ['SignatureDoesNotMatch', machine, 'operator'],
    ['CredentialsProviderError', machine, 'operator'],
    ['TlsError', own, 'tenant'],
    ['TlsError', machine, 'operator'],
    ['AccessDenied', machine, 'tenant'],
    ['NoSuchBucket', machine, 'tenant'],
    ['QuotaExceeded', own, 'tenant'],
  ])('%s with %j: %s', (type, config, owner) => {
    const failure = withOwner(failureOf(type), config);
    expect(failure.type).toBe(type);
    expect(classifyError(failure)).toMatchObject({ owner, permanent: owner === 'tenant' });
  });

  it('reads nothing that a server wrote, if it is the operator', () => {
    const error = Object.assign(new Error('of one tenant'), { $metadata: {} });
    const secrets = { aws_access_key_id: undefined, aws_secret_access_key: undefined };
    const said = (failure: DestinationError) => withServerText(failure, error, secrets, { ofMachine: false });
    expect(said(failureOf('AccessDenied')).messageForOwner).toContain('of one tenant');
    expect(said(withOwner(failureOf('RequestTimeTooSkewed'), aws)).messageForOwner).not.toContain(
      'of one tenant',
    );
  });

  it('is none during an outage', () => {
    expect(withOwner(failureOf('S3Unreachable', { transient: true }), machine).owner).toBe('none');
  });

  it.each(['Throttling', 'ThrottledException', 'RequestLimitExceeded', 'SlowDown'])(
    'is none when AWS STS throttles a role with %s',
    (name) => {
      const error = Object.assign(new Error('secret'), { name, $metadata: { httpStatusCode: 400 } });
      expect(toAssumeRoleError(error, { usesMachine: false })).toMatchObject({
        transient: true,
        owner: 'none',
      });
    },
  );

  it.each([
    ['ExpiredTokenException', true, 'operator'],
    ['ExpiredTokenException', false, 'tenant'],
    ['RequestExpired', false, 'operator'],
    ['CredentialsProviderError', true, 'operator'],
    ['AccessDenied', true, 'tenant'],
  ])('%s when a role is assumed, by the machine: %s; owner: %s', (name, usesMachine, owner) => {
    const error = Object.assign(new Error('secret'), { name, $metadata: { httpStatusCode: 403 } });
    expect(toAssumeRoleError(error, { usesMachine }).owner).toBe(owner);
  });
});

describe('the expiration of an object', () => {
  it.each([
    ['expiry-date="Fri, 21 Dec 2029 00:00:00 GMT", rule-id="logs, old"', '2029-12-21T00:00:00.000Z'],
    ['rule-id="a", expiry-date="Sat, 01 Jan 2028 00:00:00 GMT"', '2028-01-01T00:00:00.000Z'],
    ['expiry-date="soon", rule-id="a"', null],
    ['', null],
    [undefined, null],
  ])('is read from %j', (header, time) => {
    expect(parseExpiration(header)).toBe(time);
  });
});
