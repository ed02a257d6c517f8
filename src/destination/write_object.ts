/** Writes an object in one request. Writing never overwrites, where the store has conditional writes, and each function can be called again after a lost response. */
import { HeadObjectCommand, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { setTimeout as wait } from 'node:timers/promises';
import { provesBytes, unproven, unprovenBytes } from './answers.ts';
import { DestinationError, type NewFile, type WrittenObject } from './destination.ts';
import { conditionFailureCodes, isErrorType, toDestinationError } from './errors.ts';
import { findFile, parseExpiration, tokenMetadata } from './object_headers.ts';
import { readText } from './read_object.ts';
import { type S3Requests, sendCommand } from './requests.ts';
import type { StoreTraits } from './store_traits.ts';
import type { ObjectEncryption } from './encryption.ts';

/**
 * Reports that a server does not support conditional writes, and stores that, before the request is repeated without its
 * condition.
 */
export async function reportUnconditionalWrites(
  requests: Pick<S3Requests, 'report' | 'learn'>,
  found: Pick<Partial<StoreTraits>, 'conditional_put' | 'conditional_complete'>,
): Promise<void> {
  requests.report(
    new DestinationError(
      'NotImplemented',
      'The S3 server does not support conditional writes. Only the journal prevents two runs from overwriting each other.',
      { transient: false },
    ),
  );
  await requests.learn(found);
}

/** Server-side encryption and content type of an object. */
export interface ObjectOptions extends ObjectEncryption {
  readonly ContentType?: string;
}

/** The object under a key has more bytes than were written. */
const otherObject = 'OtherObject';

/**
 * Writes an object in one request, unless it exists already. Unless the answer proves that, the object is read.
 * @returns false when an object with other bytes exists, or one that may not be read
 */
export async function putSmallObject(
  requests: S3Requests,
  key: string,
  bytes: Buffer,
  options: ObjectOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const input = { Bucket: requests.bucket, Key: key, Body: bytes, ...options };
  const put = (conditions: { IfNoneMatch?: string }) =>
    sendCommand(requests, PutObjectCommand, { ...input, ...conditions }, signal);
  let failure: DestinationError;
  try {
    const written = await put({ IfNoneMatch: '*' }).catch(async (error: unknown) => {
      if (!isErrorType(error, 'NotImplemented')) throw error;
      await reportUnconditionalWrites(requests, { conditional_put: false });
      return put({});
    });
    if (provesBytes(written, bytes)) return true;
    failure = unprovenBytes();
  } catch (error) {
    if (!(error instanceof DestinationError) || !conditionFailureCodes.has(error.type)) throw error;
    failure = error;
  }
  const bound = { maxBytes: bytes.length, type: otherObject };
  const found = await readText(requests, key, bound, signal).catch((error: unknown) => {
    if (isErrorType(error, otherObject)) return null;
    throw error;
  });
  if (found?.state === 'absent') throw failure;
  return found?.state === 'present' && found.text === bytes.toString();
}

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
      return await requests.send('PutObject', signal, async (client, call) => {
        try {
          const written = await client.send(new PutObjectCommand(input), call);
          if (provesBytes(written, bytes)) return { expires_at: parseExpiration(written.Expiration) };
          throw unprovenBytes();
        } catch (error) {
          const { type } = toDestinationError(error, 'PutObject');
          if (type !== 'S3Unreachable' && type !== unproven) throw error;
          // A server may refuse a key that is taken before it has read the body, and its response is lost with the
          // connection. Repeating the request would not help.
          if (await isStored(client, input, call)) throw keyTaken();
          throw error;
        }
      });
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
