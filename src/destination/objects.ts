/**
 * Objects that are read, written or deleted in one request. What exports rely on: writing never overwrites, where the store
 * has conditional writes, and each function can be called again after a lost response.
 * The manifest of an interval is one, and is replaced by compare-and-set.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  GetObjectRetentionCommand,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
  type PutObjectCommandInput,
  type S3Client,
} from '@aws-sdk/client-s3';
import { type Bound, bounds, boundText, safeText } from '../config/bounds.ts';
import { provesBytes, requireField, unproven, unprovenAnswer, unprovenBytes } from './answers.ts';
import type { ForeignBytes } from '../foreign_bytes/foreign_bytes.ts';
import type { ObjectEncryption, S3Config } from './config.ts';
import {
  DestinationError,
  type ManifestClaim,
  ManifestReplaced,
  type ManifestState,
  type NewFile,
  type OpenObject,
  type PresentManifest,
  type UploadReference,
  type WrittenObject,
} from './destination.ts';
import { conditionFailureCodes, isRefusal, toDestinationError } from './errors.ts';
import { formatManifest, type Manifest } from './manifest.ts';
import { createS3Requests, type DestinationContext, type S3Requests, sendCommand } from './requests.ts';
import { collectObject, paced } from './responses.ts';
import type { StoreTraits } from './store_traits.ts';
import { parseStoredManifest } from './stored_manifest.ts';

/**
 * When a lifecycle rule of the bucket deletes an object, from the response header `x-amz-expiration`:
 * `expiry-date="Fri, 21 Dec 2029 00:00:00 GMT", rule-id="…"`. ISO 8601; null without a rule.
 */
export function parseExpiration(header: string | undefined): string | null {
  const [, date] = /expiry-date="([^"]+)"/.exec(header ?? '') ?? [];
  const time = Date.parse(date ?? '');
  return Number.isNaN(time) ? null : new Date(time).toISOString();
}

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

/**
 * The metadata key of the upload token, which distinguishes the object of an upload from others with the same key and
 * size.
 */
const uploadTokenMetadata = 'exportd-upload';

/** The metadata of an object with this upload token. */
export const tokenMetadata = (upload_token: string): Record<string, string> => ({
  [uploadTokenMetadata]: upload_token,
});

/** The upload token of an object; undefined when it has none. */
const tokenOf = ({ Metadata }: HeadObjectCommandOutput): string | undefined =>
  Metadata?.[uploadTokenMetadata];

/** Reads the headers of an object. Without s3:ListBucket, a server denies reading a key that is missing. */
export async function headObject(
  requests: S3Requests,
  key: string,
  signal: AbortSignal,
): Promise<HeadObjectCommandOutput | 'absent' | 'unreadable'> {
  try {
    return await sendCommand(requests, HeadObjectCommand, { Bucket: requests.bucket, Key: key }, signal);
  } catch (error) {
    if (isErrorType(error, 'NotFound', 'NoSuchKey')) return 'absent';
    if (isErrorType(error, 'AccessDenied')) return 'unreadable';
    throw error;
  }
}

/** Whether an object is known to have this key; false when it is absent or unreadable. */
export const isTaken = async (requests: S3Requests, key: string, signal: AbortSignal): Promise<boolean> =>
  typeof (await headObject(requests, key, signal)) === 'object';

type FileReference = Pick<UploadReference, 'key' | 'upload_token'>;

/** Whether the object was created with this upload token; null when it is unreadable, and so may be absent. */
export async function isFromUpload(
  requests: S3Requests,
  { key, upload_token }: FileReference,
  signal: AbortSignal,
): Promise<boolean | null> {
  const found = await headObject(requests, key, signal);
  if (found === 'unreadable') return null;
  return found !== 'absent' && tokenOf(found) === upload_token;
}

/** The object, if it was created with this upload token and has `bytes` bytes; null otherwise. */
export async function lookForFile(
  requests: S3Requests,
  { key, upload_token }: FileReference,
  bytes: number,
  signal: AbortSignal,
): Promise<WrittenObject | 'unreadable' | null> {
  try {
    const found = await headObject(requests, key, signal);
    if (typeof found !== 'object') return found === 'unreadable' ? found : null;
    if (found.ContentLength !== bytes || tokenOf(found) !== upload_token) return null;
    return { expires_at: parseExpiration(found.Expiration) };
  } catch (error) {
    if (error instanceof DestinationError && !error.transient) return null;
    throw error;
  }
}

/**
 * The object, if it was created with this upload token and has `bytes` bytes. Null otherwise, and when it may not be
 * read: the file is then exported again in the next generation, which is always safe.
 */
export async function findFile(
  requests: S3Requests,
  file: FileReference,
  bytes: number,
  signal: AbortSignal,
): Promise<WrittenObject | null> {
  const found = await lookForFile(requests, file, bytes, signal);
  return found === 'unreadable' ? null : found;
}

/** Reads what is stored under the key of a manifest. @throws DestinationError `ManifestTooLarge` */
export const getManifestObject = async (
  requests: S3Requests,
  key: string,
  signal: AbortSignal,
): Promise<ManifestState> =>
  readText(requests, key, { maxBytes: bounds.manifest.max, type: 'ManifestTooLarge' }, signal);

/** Reads an object that should be small. @throws DestinationError of the type `type` when it has more bytes */
async function readText(
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

/**
 * What a deletion leaves in the bucket: a versioned one may keep the object behind a delete marker; `locked_until`: object lock
 * keeps this version, until the end of this day (`2026-11-27`, UTC), so that objects of one day have one reason.
 */
export type DeletionResult = 'deleted' | 'version_stays' | LockedVersion;

interface LockedVersion {
  readonly version_id: string;
  readonly locked_until: string;
}

/** Versions of one key that a deletion deletes. A file is written once, so it has one, or one more after a lost response. */
const maxVersions = 10;

/**
 * Deletes an object, in a versioned bucket with its versions. Without the permission for that, or while object lock retains
 * them, a delete marker hides the object. S3's response does not depend on whether it existed.
 */
export async function deleteObject(
  requests: S3Requests,
  key: string,
  signal: AbortSignal,
): Promise<DeletionResult> {
  let locked: LockedVersion | undefined;
  for (let deleted = 0; deleted < maxVersions; deleted += 1) {
    const found =
      requests.isVersioned() || deleted > 0 ? await headObject(requests, key, signal) : 'unreadable';
    if (found === 'absent') return 'deleted';
    if (found === 'unreadable' || found.VersionId === undefined) break;
    if (await deleteVersion(requests, key, found.VersionId, signal)) continue;
    locked = await lockOf(requests, key, found.VersionId, signal);
    break;
  }
  const { DeleteMarker } = await sendCommand(
    requests,
    DeleteObjectCommand,
    { Bucket: requests.bucket, Key: key },
    signal,
  );
  if (DeleteMarker !== true) return 'deleted';
  return locked ?? 'version_stays';
}

/**
 * Deletes the object of an upload, in a versioned bucket with its versions, and no other object that has the key by now:
 * another export may have written it since. Servers without conditional deletes leave the time between two requests for that.
 * @returns `unreadable` when the object is, and so may be absent
 */
export async function deleteFile(
  requests: S3Requests,
  { key, upload_token }: FileReference,
  signal: AbortSignal,
): Promise<DeletionResult | 'unreadable'> {
  for (let deleted = 0; ; deleted += 1) {
    const found = await headObject(requests, key, signal);
    if (found === 'unreadable' && deleted === 0) return 'unreadable';
    if (typeof found === 'string' || tokenOf(found) !== upload_token) return 'deleted';
    const { ETag: etag = '*', VersionId: version_id } = found;
    const isKept = version_id !== undefined && version_id !== 'null';
    if (isKept && deleted < maxVersions && (await deleteVersion(requests, key, version_id, signal))) continue;
    return deleteIfUnchanged(requests, key, { etag, version_id }, signal);
  }
}

/** Deletes a version that object lock kept, once its time is over. */
export const deleteHeldVersion = async (
  requests: S3Requests,
  key: string,
  versionId: string,
  signal: AbortSignal,
): Promise<DeletionResult> =>
  (await deleteVersion(requests, key, versionId, signal))
    ? 'deleted'
    : ((await lockOf(requests, key, versionId, signal)) ?? 'version_stays');

/** Deletes a version of an object for good. @returns false when that is denied, also by object lock */
export async function deleteVersion(
  requests: S3Requests,
  key: string,
  VersionId: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await sendCommand(
      requests,
      DeleteObjectCommand,
      { Bucket: requests.bucket, Key: key, VersionId },
      signal,
    );
    return true;
  } catch (error) {
    if (isErrorType(error, 'AccessDenied', ...lockedCodes)) return false;
    throw error;
  }
}

/** Longer than the clocks of exportd and a store differ, and than a response takes. */
const lapsedLockMs = 86_400_000;

/**
 * Until when object lock retains a version whose deletion was denied, if it does and the credentials may read that
 * (s3:GetObjectRetention). A date that is just over counts until the end of this day: it may have denied the deletion, by the
 * store's clock. A legal hold has no date.
 */
async function lockOf(
  requests: S3Requests,
  key: string,
  VersionId: string,
  signal: AbortSignal,
): Promise<LockedVersion | undefined> {
  const input = { Bucket: requests.bucket, Key: key, VersionId };
  try {
    const { Retention } = await sendCommand(requests, GetObjectRetentionCommand, input, signal);
    const until = Retention?.RetainUntilDate;
    if (!until || until.getTime() <= Date.now() - lapsedLockMs) return undefined;
    const lockedUntil = new Date(Math.max(until.getTime(), Date.now()));
    return { version_id: VersionId, locked_until: lockedUntil.toISOString().slice(0, 'YYYY-MM-DD'.length) };
  } catch (error) {
    if (error instanceof DestinationError) return undefined;
    throw error;
  }
}

/** What stores respond when object lock retains a version. */
const lockedCodes = ['ObjectLocked', 'InvalidRequest', 'MethodNotAllowed'];

/**
 * Deletes an object if it is the one that was read, with this version of it. Servers without conditional deletes delete any object.
 */
export async function deleteIfUnchanged(
  requests: S3Requests,
  key: string,
  { etag, version_id }: Pick<PresentManifest, 'etag' | 'version_id'>,
  signal: AbortSignal,
): Promise<DeletionResult> {
  const input = { Bucket: requests.bucket, Key: key };
  const deleteWith = async (conditions: { IfMatch?: string }): Promise<DeletionResult> => {
    const { DeleteMarker } = await sendCommand(
      requests,
      DeleteObjectCommand,
      { ...input, ...conditions },
      signal,
    );
    if (DeleteMarker !== true) return 'deleted';
    // A bucket that keeps versions no longer has deleted this one.
    if (version_id === 'null') return 'deleted';
    return version_id === undefined ? 'version_stays' : deleteHeldVersion(requests, key, version_id, signal);
  };
  try {
    return await deleteWith({ IfMatch: etag });
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    if (error.type === 'NotImplemented') return deleteWith({});
    if (!conditionFailureCodes.has(error.type) && !isErrorType(error, 'NoSuchKey', 'NotFound')) throw error;
    return 'deleted';
  }
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

/** How often the rest of an object is requested without `progressBytes` in between. */
const maxBreaks = 5;
/** Bytes that are progress: a server that sends one and breaks off, or nothing, would be asked again without an end. */
const progressBytes = 1_048_576;

/** Reads the bucket of a config. All methods throw DestinationError. */
export interface BucketReader {
  /** Lists the keys that start with `prefix`, in bucket order. What a server lists of others is never opened. */
  listKeys(prefix: string, signal: AbortSignal): AsyncGenerator<string>;
  /** Opens the object under `key`; null if it does not exist. */
  open(key: string, signal: AbortSignal): Promise<OpenObject | null>;
  /** The full name of an object for messages. */
  nameOf(key: string): string;
  /** Reads what the objects are. */
  readonly foreign: ForeignBytes;
  readonly close: () => void;
}

/** Opens the bucket of a config for reading, with the same retry budget as an export. */
export function openBucketReader(config: S3Config, context: DestinationContext): BucketReader {
  const requests = createS3Requests(config, context);
  return {
    listKeys: (prefix, signal) => listKeys(requests, prefix, signal),
    open: (key, signal) => openObject(requests, key, signal),
    nameOf: (key) => `s3://${requests.bucket}/${key}`,
    foreign: requests.foreign,
    close: requests.close,
  };
}

async function* listKeys(requests: S3Requests, prefix: string, signal: AbortSignal): AsyncGenerator<string> {
  const advance = listProgress('ListObjectsV2', bounds.listedKeys);
  let token: string | undefined;
  do {
    const input = {
      Bucket: requests.bucket,
      Prefix: prefix,
      ...(token !== undefined && { ContinuationToken: token }),
    };
    const page: ListObjectsV2CommandOutput = await sendCommand(requests, ListObjectsV2Command, input, signal);
    const keys = (page.Contents ?? []).flatMap(({ Key }) => Key ?? []);
    const other = keys.find((key) => !key.startsWith(prefix));
    if (other !== undefined)
      throw new DestinationError(
        'UnexpectedResponse',
        `The S3 server lists ${safeText(other)} below ${prefix}; check that endpoint_url is an S3 server.`,
        { transient: false },
      );
    token = nextToken(page);
    if (token !== undefined) advance(keys.length, token, keys.at(-1));
    yield* keys;
  } while (token !== undefined);
}

/** Where a list continues; undefined at its end. @throws DestinationError for a page that is neither */
export function nextToken({
  IsTruncated,
  NextContinuationToken: token,
}: Pick<ListObjectsV2CommandOutput, 'IsTruncated' | 'NextContinuationToken'>): string | undefined {
  return IsTruncated === true ? requireField('ListObjectsV2', token, 'NextContinuationToken') : undefined;
}

/** Keys of a full page of a list. */
const fullPage = 1_000;

/**
 * Creates a function to call for each page but the last of a list, with its length and what follows it. A hostile or broken
 * server may send pages without an end.
 * @throws DestinationError `UnexpectedResponse` for a page that repeats the one before, `ListTooLong`
 */
export function listProgress(
  operation: string,
  bound: Bound,
): (length: number, ...positions: readonly (string | undefined)[]) => void {
  let total = 0;
  let before: readonly (string | undefined)[] = [];
  return (length, ...positions) => {
    if (positions.some((position, index) => position !== undefined && position === before[index]))
      throw new DestinationError(
        'UnexpectedResponse',
        `The S3 server repeats a page of ${operation}; check that endpoint_url is an S3 server.`,
        { transient: false },
      );
    before = positions;
    // A page without entries counts as a full one: it costs as much.
    total += length === 0 ? fullPage : length;
    if (total > bound.max)
      throw new DestinationError(
        'ListTooLong',
        `The S3 server lists more than ${boundText(bound)} entries (${operation}); check what else writes under the prefix.`,
        { transient: false },
      );
  };
}

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

/** Whether a request failed with one of these errors. */
export const isErrorType = (error: unknown, ...types: readonly string[]): error is DestinationError =>
  error instanceof DestinationError && types.includes(error.type);

/** What may have reached a server. */
interface Sending {
  /** Whether a request may have, also one for credentials. */
  mayHaveArrived: boolean;
  /** How many requests to write the object may have. */
  writes: number;
  /** How many of these the store has refused for good, as a bucket that is read-only. */
  refusals: number;
}

/** The write whose HTTP requests are observed: which had a connection, and could have been sent. */
const observed = new AsyncLocalStorage<Sending>();

// The SDK retries requests by itself and reports the last error only, so errors prove nothing.
subscribe('http.client.request.created', (message) => {
  const sending = observed.getStore();
  if (!sending) return;
  const { request } = message as { readonly request: ClientRequest };
  // The SDK names the operation in the address.
  const isWrite = request.path.includes('x-id=PutObject');
  const markSent = (): void => {
    sending.mayHaveArrived = true;
    if (isWrite) sending.writes += 1;
  };
  request.once('socket', (socket: Socket) => {
    if (socket.connecting) socket.once('connect', markSent);
    else markSent();
  });
});

/** Maximum number of attempts to replace a manifest that others keep changing. */
const maxRounds = 6;

/** Options of a manifest's object. */
interface ManifestOptions extends ObjectOptions {
  /**
   * Whether the store refuses to overwrite, and is not known to accept bytes that differ from their checksum: then its
   * response proves that it stored these bytes under a free key.
   */
  readonly provesWrites: boolean;
  /** Whether it is unknown if the store refuses to overwrite: the manifest is then sent once more to find out. */
  readonly testsConditions: boolean;
}

/**
 * Replaces the manifest by compare-and-set, and reads it back unless the store's response proves it. After each
 * inconclusive response the stored object decides, so repeating is safe at any point. Publishing is claimed before the new
 * manifest is sent; the claim is withdrawn if it was not sent, or if the store refused it.
 * @returns `verified`: whether it is proven; false if the credentials may not read it back
 * @throws ManifestReplaced when this generation of another run, a newer one, or an unknown manifest is stored;
 * DestinationError `ManifestUnreadable` when an object cannot be read and no manifest is known
 */
export async function putManifestObject(
  requests: S3Requests,
  key: string,
  claim: ManifestClaim,
  options: ManifestOptions,
  signal: AbortSignal,
): Promise<WrittenObject & { readonly verified: boolean }> {
  const sending: Sending = { mayHaveArrived: false, writes: 0, refusals: 0 };
  try {
    return await replaceManifest(requests, key, claim, sending, options, signal);
  } catch (error) {
    // After a refusal too, nothing is stored: under a claim, a retry would overwrite what this attempt spared.
    const isRefused = sending.writes > 0 && sending.writes === sending.refusals;
    const isStored = sending.mayHaveArrived && !isRefused && !isErrorType(error, unreadable);
    // A claim that cannot be withdrawn stays, and the next attempt continues under it.
    if (!isStored) await claim.withdraw().catch(() => undefined);
    throw error;
  }
}

/** exportd itself could not read a manifest that is too large. @throws DestinationError `ManifestTooLarge` */
function requireReadable(text: string, key: string): void {
  const bytes = Buffer.byteLength(text);
  if (bytes > bounds.manifest.max)
    throw new DestinationError(
      'ManifestTooLarge',
      `The manifest ${key} would have ${bytes} bytes, and at most ${boundText(bounds.manifest)} are allowed: its files are too many. Raise max_file_size_mb of the destination; for files of earlier generations, backfill with allow_shrink.`,
      { transient: false },
    );
}

async function replaceManifest(
  requests: S3Requests,
  key: string,
  claim: ManifestClaim,
  sending: Sending,
  { provesWrites, testsConditions, ...options }: ManifestOptions,
  signal: AbortSignal,
): Promise<WrittenObject & { readonly verified: boolean }> {
  let text = claim.manifest && formatManifest(claim.manifest);
  let last: DestinationError | undefined;
  let conditional = true;
  let expires_at: string | null = null;
  let writtenUnread = false;
  // A request that is repeated after its response was lost is refused because of the own manifest.
  let mayBeOwn = false;
  let overwrites = false;
  for (let round = 0; round < maxRounds; round++) {
    const asksFirst = round > 0 || text !== null || !provesWrites || !claim.expectsNone;
    const current: ManifestState = asksFirst
      ? await getManifestObject(requests, key, signal)
      : { state: 'absent' };
    const isRead = current.state === 'present' && current.text === text;
    if (isRead || (writtenUnread && current.state === 'unreadable')) {
      if (testsConditions && conditional && sending.writes > 0 && text !== null)
        await testConditions(requests, { Key: key, Body: Buffer.from(text), ...options }, signal);
      return isRead
        ? { verified: true, expires_at: current.expires_at ?? expires_at }
        : { verified: false, expires_at };
    }
    if (current.state === 'present') await rejectOther(current.text, claim, requests.foreign);
    text = formatManifest(await claim.hold());
    requireReadable(text, key);
    const body = Buffer.from(text);
    const writesBefore = sending.writes;
    try {
      const conditions = conditional ? conditionsOn(current, overwrites) : {};
      const written = await requests.send('PutObject', signal, (client, call) => {
        const put = new PutObjectCommand({
          Bucket: requests.bucket,
          Key: key,
          Body: body,
          ...options,
          ...conditions,
        });
        return observed.run(sending, () => client.send(put, call));
      });
      expires_at = parseExpiration(written.Expiration);
      const isProven = provesBytes(written, body);
      if (isProven && provesWrites && conditional) return { verified: true, expires_at };
      // What could not be read may have been absent, so it is read once more.
      writtenUnread = isProven && current.state === 'unreadable';
    } catch (error) {
      if (!(error instanceof DestinationError)) throw error;
      // The SDK may have sent it twice: then only the last of them is known to be refused.
      if (isRefusal(error) && sending.writes === writesBefore + 1) sending.refusals += 1;
      if (error.type === 'NotImplemented') {
        conditional = false;
        await reportUnconditionalWrites(requests, { conditional_put: false });
      } else if (!error.transient && error.type !== 'NoSuchKey') throw error;
      const isRefused = error.type === 'NotImplemented' || conditionFailureCodes.has(error.type);
      if (!isRefused || sending.writes > writesBefore + 1) mayBeOwn = true;
      if (current.state === 'unreadable' && error.type === 'PreconditionFailed') {
        if (!mayBeOwn) await requireKnown(key, claim);
        overwrites = true;
      }
      last = error;
    }
  }
  throw (
    last ??
    new DestinationError(
      'ManifestUnverified',
      `The manifest ${key} was written, but its content differs when read back.`,
      { transient: true },
    )
  );
}

/**
 * Finds out whether the store refuses to overwrite, with an object that it has: it may overwrite it with the same bytes.
 * Whatever else happens to the request decides nothing.
 */
async function testConditions(
  requests: S3Requests,
  stored: Pick<PutObjectCommandInput, 'Key' | 'Body'> & ObjectOptions,
  signal: AbortSignal,
): Promise<void> {
  const input = { Bucket: requests.bucket, ...stored, IfNoneMatch: '*' };
  try {
    await sendCommand(requests, PutObjectCommand, input, signal);
  } catch (error) {
    if (isErrorType(error, 'PreconditionFailed')) await requests.learn({ conditional_put: true });
    return;
  }
  await requests.learn({ conditional_put: false });
  requests.report(
    new DestinationError(
      'OverwritesAccepted',
      'The S3 server overwrote an object although the request forbade it. From now on the keys of files have a random mark, and only the journal prevents two runs from overwriting a manifest. Check what serves endpoint_url of the destination, and test the destination again.',
      { transient: false },
    ),
  );
}

const unreadable = 'ManifestUnreadable';

/** Rejects an object that cannot be read and is not the own one, unless it may be a manifest of the journal. */
async function requireKnown(key: string, claim: ManifestClaim): Promise<void> {
  if (await claim.knows(null)) return;
  throw new DestinationError(
    unreadable,
    `The bucket already contains ${key}, which may be a manifest of this interval. exportd has not published one before, or no longer has its history, and ` +
      'may not read it. Grant the credentials s3:GetObject, so that it is compared, or delete the object. Then retry the run.',
    { transient: false },
  );
}

/** Without read permission, a new manifest is assumed at first. After that, only the journal's claim prevents overwriting. */
function conditionsOn(
  current: ManifestState,
  overwrites: boolean,
): { IfMatch?: string; IfNoneMatch?: string } {
  if (current.state === 'unreadable') return overwrites ? {} : { IfNoneMatch: '*' };
  if (current.state === 'absent') return { IfNoneMatch: '*' };
  return { IfMatch: current.etag };
}

/** Whether the run, or one whose files it inherited, wrote a manifest for the same files: a response was lost. */
const isOwn = (
  found: Manifest,
  manifest: Pick<ManifestClaim, 'run_id' | 'claimed_by' | 'generation' | 'files'>,
): boolean =>
  [manifest.run_id, ...manifest.claimed_by].includes(found.run_id) &&
  found.generation === manifest.generation &&
  found.files.length === manifest.files.length &&
  found.files.every(({ key }, index) => key === manifest.files[index]?.key);

/** Whether the manifest of a claim is stored; true if the object cannot be read. */
export async function hasOwnManifest(
  requests: S3Requests,
  key: string,
  claim: ManifestClaim,
  signal: AbortSignal,
): Promise<boolean> {
  const current = await getManifestObject(requests, key, signal);
  if (current.state !== 'present') return current.state === 'unreadable';
  const found = await parseStoredManifest(current.text, requests.foreign);
  return found !== undefined && isOwn(found, claim);
}

async function rejectOther(text: string, claim: ManifestClaim, foreign: ForeignBytes): Promise<void> {
  const found = await parseStoredManifest(text, foreign);
  if (!found || isOwn(found, claim)) return;
  if (found.generation < claim.generation && (await claim.knows(found))) return;
  throw new ManifestReplaced(found, claim.generation);
}
