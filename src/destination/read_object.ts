/** Reads an object: a small one as text, a large one as a stream that survives broken connections. */
import { GetObjectCommand, type GetObjectCommandOutput } from '@aws-sdk/client-s3';
import type { Readable } from 'node:stream';
import { requireField, unprovenAnswer } from './answers.ts';
import { DestinationError, type ManifestState, type OpenObject } from './destination.ts';
import { isErrorType, toDestinationError } from './errors.ts';
import { parseExpiration } from './object_headers.ts';
import { type S3Requests, sendCommand } from './requests.ts';
import { collectObject, paced } from './responses.ts';

/** Reads an object that should be small. @throws DestinationError of the type `type` when it has more bytes */
export async function readText(
  requests: S3Requests,
  key: string,
  { maxBytes, type }: { readonly maxBytes: number; readonly type: string },
  signal: AbortSignal,
): Promise<ManifestState> {
  const { silenceMs } = requests;
  const tooLarge = (bytes: number | undefined) => tooLargeError(type, key, { bytes, maxBytes });
  try {
    const found = await requests.send('GetObject', signal, async (client, call) => {
      const output = await client.send(new GetObjectCommand({ Bucket: requests.bucket, Key: key }), call);
      const bytes = await collectObject(output, { maxBytes, silenceMs }, tooLarge);
      return {
        etag: requireField('GetObject', output.ETag, 'the ETag of the object'),
        version_id: output.VersionId,
        text: bytes.toString(),
        expires_at: parseExpiration(output.Expiration),
      };
    });
    return { state: 'present', ...found };
  } catch (error) {
    if (isErrorType(error, 'NoSuchKey', 'NotFound')) return { state: 'absent' };
    if (isErrorType(error, 'AccessDenied')) return { state: 'unreadable' };
    throw error;
  }
}

const mebibyte = 1_048_576;

/** Permanent: the object stays as it is until it is deleted. */
const tooLargeError = (
  type: string,
  key: string,
  { bytes, maxBytes }: { readonly bytes: number | undefined; readonly maxBytes: number },
): DestinationError =>
  new DestinationError(
    type,
    `The object ${key} has ${bytes === undefined ? 'more' : `${Math.ceil(bytes / mebibyte)} MiB, more`} than ${Math.ceil(maxBytes / mebibyte)} MiB. exportd did not write it: check what else writes under the prefix, and delete the object. Then retry the run.`,
    { transient: false },
  );

/** How often the rest of an object is requested without `progressBytes` in between. */
const maxBreaks = 5;
/** Bytes that are progress: a server that sends one and breaks off, or nothing, would be asked again without an end. */
const progressBytes = 1_048_576;

/** Opens an object for reading; null if it does not exist. */
export async function openObject(
  requests: S3Requests,
  key: string,
  signal: AbortSignal,
): Promise<OpenObject | null> {
  const get = (etag: string | undefined, from: number) => {
    const input = {
      Bucket: requests.bucket,
      Key: key,
      ...(from > 0 && { Range: `bytes=${from}-` }),
      ...(etag !== undefined && { IfMatch: etag }),
    };
    return sendCommand(requests, GetObjectCommand, input, signal);
  };
  try {
    const first = await get(undefined, 0);
    const { ContentLength: bytes } = first;
    const etag = requireField('GetObject', first.ETag, 'the ETag of the object');
    if (bytes === undefined) throw unprovenAnswer('GetObject', 200, 'the length of the object');
    const chunks = readWithResume(first, { bytes, silenceMs: requests.silenceMs }, (from) => get(etag, from));
    return {
      bytes,
      etag,
      chunks,
      close: () => void (first.Body as Readable | undefined)?.destroy(),
    };
  } catch (error) {
    if (isErrorType(error, 'NoSuchKey', 'NotFound')) return null;
    throw error;
  }
}

/**
 * The bytes of an object, no more than its length. After a connection failure, or a body that ends early, the rest of the same
 * object is requested.
 */
async function* readWithResume(
  first: GetObjectCommandOutput,
  { bytes, silenceMs }: { readonly bytes: number; readonly silenceMs: number },
  getFrom: (from: number) => Promise<GetObjectCommandOutput>,
): AsyncGenerator<Buffer> {
  let output = first;
  let at = 0;
  const pace = { bytes: 0, waitedMs: 0 };
  for (let breaks = 0, progressAt = 0; ;) {
    let failure = unprovenAnswer('GetObject', 200, 'the rest of the object');
    // The connection of a consumer that pauses for long ends without a fault of the server.
    let hasPaused = false;
    try {
      for await (const chunk of paced(bodyOf(output), pace, silenceMs)) {
        at += chunk.length;
        if (at > bytes) throw objectReplaced();
        const yieldedAt = performance.now();
        yield chunk;
        hasPaused ||= performance.now() - yieldedAt >= silenceMs;
      }
      if (at >= bytes) return;
    } catch (error) {
      if (isErrorType(error, 'ObjectReplaced')) throw error;
      failure = toDestinationError(error, 'GetObject');
      if (!failure.transient) throw failure;
    }
    if (at - progressAt >= progressBytes) {
      breaks = 0;
      progressAt = at;
    }
    if (!hasPaused) breaks += 1;
    if (breaks > maxBreaks) throw failure;
    try {
      output = await getFrom(at);
    } catch (error) {
      if (!isErrorType(error, 'NoSuchKey', 'NotFound', 'PreconditionFailed')) throw error;
      throw objectReplaced();
    }
  }
}

const objectReplaced = (): DestinationError =>
  new DestinationError('ObjectReplaced', 'An object was replaced or deleted while it was read.', {
    transient: true,
  });

const bodyOf = (output: GetObjectCommandOutput): AsyncIterable<Buffer> =>
  output.Body as unknown as AsyncIterable<Buffer>;
