import { GetObjectCommand, ListObjectsV2Command, type GetObjectCommandOutput } from '@aws-sdk/client-s3';
import { DestinationError, type OpenObject } from '../destination.ts';
import type { DestinationContext } from '../destination_type.ts';
import type { S3Config } from './config.ts';
import { toDestinationError } from './errors.ts';
import { createS3Requests, type S3Requests } from './requests.ts';

/** Maximum number of consecutive connection failures without any data. */
const maxBreaks = 5;

/** Reads the bucket of a config. All methods throw DestinationError. */
export interface BucketReader {
  /** Lists the keys that start with `prefix`, in bucket order. */
  listKeys(prefix: string, signal: AbortSignal): AsyncGenerator<string>;
  /** Opens the object under `key`; null if it does not exist. */
  open(key: string, signal: AbortSignal): Promise<OpenObject | null>;
  /** The full name of an object for messages. */
  nameOf(key: string): string;
  readonly close: () => void;
}

/** Opens the bucket of a config for reading, with the same retry budget as an export. */
export function openBucketReader(config: S3Config, context: DestinationContext): BucketReader {
  const requests = createS3Requests(config, context);
  return {
    listKeys: (prefix, signal) => listKeys(requests, prefix, signal),
    open: (key, signal) => openObject(requests, key, signal),
    nameOf: (key) => `s3://${requests.bucket}/${key}`,
    close: requests.close,
  };
}

async function* listKeys(requests: S3Requests, prefix: string, signal: AbortSignal): AsyncGenerator<string> {
  let token: string | undefined;
  do {
    const page = await requests.send('ListObjectsV2', signal, (client, call) =>
      client.send(
        new ListObjectsV2Command({
          Bucket: requests.bucket,
          Prefix: prefix,
          ...(token === undefined ? {} : { ContinuationToken: token }),
        }),
        call,
      ),
    );
    for (const { Key } of page.Contents ?? []) if (Key !== undefined) yield Key;
    token = page.IsTruncated ? page.NextContinuationToken : undefined;
  } while (token !== undefined);
}

/** Opens an object for reading; null if it does not exist. */
export async function openObject(
  requests: S3Requests,
  key: string,
  signal: AbortSignal,
): Promise<OpenObject | null> {
  const get = (etag: string | undefined, from: number) =>
    requests.send('GetObject', signal, (client, call) =>
      client.send(
        new GetObjectCommand({
          Bucket: requests.bucket,
          Key: key,
          ...(from === 0 ? {} : { Range: `bytes=${from}-` }),
          ...(etag === undefined ? {} : { IfMatch: etag }),
        }),
        call,
      ),
    );
  try {
    const first = await get(undefined, 0);
    const bytes = first.ContentLength ?? 0;
    return { bytes, etag: first.ETag, chunks: readWithResume(first, bytes, (from) => get(first.ETag, from)) };
  } catch (error) {
    if (isErrorType(error, 'NoSuchKey', 'NotFound')) return null;
    throw error;
  }
}

/** The bytes of an object. After a connection failure the rest of the same object is requested. */
async function* readWithResume(
  first: GetObjectCommandOutput,
  bytes: number,
  getFrom: (from: number) => Promise<GetObjectCommandOutput>,
): AsyncGenerator<Buffer> {
  let output = first;
  let at = 0;
  for (let breaks = 0; ;) {
    try {
      for await (const chunk of bodyOf(output)) {
        at += chunk.length;
        breaks = 0;
        yield chunk;
      }
      if (at >= bytes) return;
    } catch (error) {
      const failure = toDestinationError(error, 'GetObject');
      if (!failure.transient || breaks >= maxBreaks) throw failure;
    }
    breaks += 1;
    try {
      output = await getFrom(at);
    } catch (error) {
      if (!isErrorType(error, 'NoSuchKey', 'NotFound', 'PreconditionFailed')) throw error;
      throw new DestinationError('ObjectReplaced', 'An object was replaced or deleted while it was read.', {
        transient: true,
      });
    }
  }
}

const bodyOf = (output: GetObjectCommandOutput): AsyncIterable<Buffer> =>
  output.Body as unknown as AsyncIterable<Buffer>;

const isErrorType = (error: unknown, ...types: readonly string[]): boolean =>
  error instanceof DestinationError && types.includes(error.type);
