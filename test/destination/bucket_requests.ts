import { HeadBucketCommand, type S3Client } from '@aws-sdk/client-s3';
import { readSettings, type Settings } from '../../src/config/settings.ts';
import { DestinationError } from '../../src/destination/destination.ts';
import { openS3, type Destination } from '../../src/destination/open_destination.ts';
import { parseS3Config, type S3Config } from '../../src/destination/config.ts';
import { createS3Requests, type S3Requests } from '../../src/destination/requests.ts';
import type { TestBucket } from '../setup/bucket.ts';

/** Settings that allow loopback addresses, with short waits. */
export const s3Settings = (more: Record<string, string> = {}): Settings =>
  readSettings({
    DATABASE_URL: 'unused',
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_ACTIVITY_RETRY_INITIAL: '10ms',
    EXPORTD_ACTIVITY_RETRY_MAX: '20ms',
    ...more,
  });

type Bucket = Pick<TestBucket, 'accessKeyId' | 'bucket' | 'endpoint' | 'secretAccessKey'>;

/** A bucket of a server that takes any keys. */
export const bucketAt = (endpoint: string): Bucket => ({
  endpoint,
  bucket: 'bucket',
  accessKeyId: 'key',
  secretAccessKey: 'secret',
});

/** A config of a test bucket, as in a request. */
export const configOf = (bucket: Bucket, more: object = {}) => ({
  bucket_name: bucket.bucket,
  region: 'us-east-1',
  prefix: 'exports/{year}',
  endpoint_url: bucket.endpoint,
  aws_access_key_id: bucket.accessKeyId,
  aws_secret_access_key: bucket.secretAccessKey,
  ...more,
});

const parse = (bucket: Bucket, more: object): S3Config => parseS3Config(configOf(bucket, more), s3Settings());

export const openBucket = (bucket: Bucket, more: object = {}): Destination =>
  openS3(parse(bucket, more), {
    settings: s3Settings({ EXPORTD_S3_RETRY_BUDGET: '0s' }),
    onError: () => undefined,
  });

export const requestsOf = (
  bucket: Bucket,
  more: object = {},
  settings: Record<string, string> = {},
): S3Requests =>
  createS3Requests(parse(bucket, more), { settings: s3Settings(settings), onError: () => undefined });

/** Sends one request with a config from a request; returns its error or null. */
export async function requestError(config: object, settings: Settings): Promise<unknown> {
  const requests = createS3Requests(parseS3Config(config, settings), {
    settings,
    onError: () => undefined,
  });
  return requests
    .send('HeadBucket', new AbortController().signal, (client, call) =>
      client.send(new HeadBucketCommand({ Bucket: requests.bucket }), call),
    )
    .then(
      () => null,
      (fault: unknown) => fault,
    )
    .finally(() => requests.close());
}

/** Requests that lose the first response to `operation`, after the server has processed it. */
export const losingResponses = (requests: S3Requests, operation: string): S3Requests => ({
  ...requests,
  send: async (name, signal, call) => {
    if (name === operation) await requests.send(name, signal, call);
    return requests.send(name, signal, call);
  },
});

/** Requests with credentials that lack the permission for `operation`. */
export const denying = (requests: S3Requests, operation: string): S3Requests => ({
  ...requests,
  send: (name, signal, call) =>
    name === operation
      ? Promise.reject(new DestinationError('AccessDenied', 'Denied.', { transient: false }))
      : requests.send(name, signal, call),
});

/** Requests to a server without conditional writes. */
export const withoutConditionalWrites = (requests: S3Requests): S3Requests => ({
  ...requests,
  send: (name, signal, call) =>
    requests.send(name, signal, (client, options) => {
      const send = (command: { input: object }, ...rest: never[]): unknown => {
        if ('IfMatch' in command.input || 'IfNoneMatch' in command.input)
          throw new DestinationError('NotImplemented', 'Not implemented.', { transient: false });
        return Reflect.apply(client.send.bind(client), client, [command, ...rest]);
      };
      return call({ send } as unknown as S3Client, options);
    }),
});
