import { setTimeout as wait } from 'node:timers/promises';
import { HeadObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { DestinationError, type NewFile, type WrittenObject } from '../destination.ts';
import { toDestinationError } from './errors.ts';
import { parseExpiration } from './expiration.ts';
import { findFile, tokenMetadata } from './head_object.ts';
import type { ObjectOptions } from './multipart.ts';
import type { S3Requests } from './requests.ts';

/** How often a request that conflicts with another one is repeated, and the wait in between. */
const maxConflicts = 10;
const conflictPauseMs = 200;

const keyTaken = (): DestinationError =>
  new DestinationError('PreconditionFailed', 'An object has the key of the file.', { transient: true });

async function isStored(
  client: S3Client,
  { Bucket, Key }: { readonly Bucket: string; readonly Key: string },
  call: { readonly abortSignal: AbortSignal },
): Promise<boolean> {
  return client.send(new HeadObjectCommand({ Bucket, Key }), call).then(
    () => true,
    () => false,
  );
}

/**
 * Writes a file in one request, unless its key is taken. A retry after a lost response finds its own object, which the
 * upload token proves.
 * @returns null when another object has the key, or one that may not be read
 */
export async function putWholeFile(
  requests: S3Requests,
  { key, contentType, upload_token }: NewFile,
  bytes: Buffer,
  options: ObjectOptions,
  signal: AbortSignal,
): Promise<WrittenObject | null> {
  const input = {
    Bucket: requests.bucket,
    Key: key,
    Body: bytes,
    ContentType: contentType,
    Metadata: tokenMetadata(upload_token),
    IfNoneMatch: '*',
    ...options,
  };
  for (let conflicts = 0; ; conflicts++)
    try {
      const { Expiration } = await requests.send('PutObject', signal, async (client, call) => {
        try {
          return await client.send(new PutObjectCommand(input), call);
        } catch (error) {
          if (toDestinationError(error, 'PutObject').type !== 'S3Unreachable') throw error;
          // A server may refuse a key that is taken before it has read the body, and its response is lost with the
          // connection. Repeating the request would not help.
          if (await isStored(client, input, call)) throw keyTaken();
          throw error;
        }
      });
      return { expires_at: parseExpiration(Expiration) };
    } catch (error) {
      if (!(error instanceof DestinationError)) throw error;
      if (error.type === 'PreconditionFailed')
        return findFile(requests, { key, upload_token }, bytes.length, signal);
      if (error.type !== 'ConditionalRequestConflict' || conflicts >= maxConflicts) throw error;
      // Another request for the key is in progress; afterwards the key is taken or free.
      await wait(conflictPauseMs, undefined, { signal }).catch(() => {
        throw signal.reason;
      });
    }
}
