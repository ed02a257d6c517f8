/**
 * Multipart uploads: creating, resuming, completing and aborting them, and the sizes of their parts. An upload that the
 * server may have created without a response is found by its key and aborted.
 */
import { randomUUID } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { bounds } from '../config/bounds.ts';
import { provenParts, requireField, unproven, unprovenAnswer, withoutQuotes } from './answers.ts';
import {
  DestinationError,
  type FileUpload,
  type StoredPart,
  type UploadedPart,
  type UploadReference,
  type WrittenObject,
} from './destination.ts';
import { isErrorType, partRefusals } from './errors.ts';
import { type S3Requests, sendCommand } from './requests.ts';
import { listProgress } from './bucket_reader.ts';
import { findFile, lookForFile, parseExpiration, tokenMetadata } from './object_headers.ts';
import { type ObjectOptions, reportUnconditionalWrites } from './write_object.ts';

const maxPartBytes = 64 * 1024 * 1024;
/** The part size increases after this many parts. */
const partsPerStep = 128;

const { max: maxToken } = bounds.s3Token;
/** S3's limit of the part number. */
const maxPartNumber = 10_000;

/**
 * The size of a part in bytes: `first` at the start, then increasing in steps up to 64 MiB. Small files show
 * progress, and large files need at most 10,000 parts.
 */
const partBytes = (position: number, first: number): number =>
  Math.max(first, Math.min(maxPartBytes, first * (1 + Math.floor(position / partsPerStep))));

/** A signal that follows another one after a delay, and what stops its timer. */
interface DelayedAbort extends Disposable {
  readonly signal: AbortSignal;
}

/**
 * Returns a signal that is aborted `delayMs` milliseconds after `signal`, with its reason; at once when `signal` is
 * aborted already. It lets a request end whose response tells what the server created.
 */
function delayAbort(signal: AbortSignal, delayMs: number): DelayedAbort {
  const delayed = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const abort = (): void => {
    delayed.abort(signal.reason);
  };
  const startTimer = (): void => {
    timer = setTimeout(abort, delayMs);
  };
  if (signal.aborted) abort();
  else signal.addEventListener('abort', startTimer, { once: true });
  return {
    signal: delayed.signal,
    [Symbol.dispose]: () => {
      signal.removeEventListener('abort', startTimer);
      clearTimeout(timer);
    },
  };
}

/** Aborts an upload, which deletes its parts. It is not an error if it no longer exists. */
export async function abortUpload(
  requests: S3Requests,
  key: string,
  uploadId: string,
  signal: AbortSignal,
): Promise<void> {
  const input = { Bucket: requests.bucket, Key: key, UploadId: uploadId };
  try {
    await sendCommand(requests, AbortMultipartUploadCommand, input, signal);
  } catch (error) {
    if (!isErrorType(error, 'NoSuchUpload')) throw error;
  }
}

/**
 * Aborts all uploads of a key except `known`. They are orphaned: the server created them, but the response was lost
 * with a connection or a process. If the credentials may not list uploads, they remain; without parts they cost
 * nothing.
 */
const abortOrphanedUploads = (
  requests: S3Requests,
  key: string,
  known: string | null,
  signal: AbortSignal,
): Promise<void> =>
  abortMatchingUploads(requests, { commonPrefix: key, matches: (other) => other === key }, signal, known);

/** Aborts all uploads whose keys match, except `known`. What the credentials may not list remains. */
export async function abortMatchingUploads(
  requests: S3Requests,
  { commonPrefix, matches }: { readonly commonPrefix: string; matches: (key: string) => boolean },
  signal: AbortSignal,
  known: string | null = null,
): Promise<void> {
  try {
    for (const { key, upload_id } of await listUploads(requests, commonPrefix, matches, signal))
      if (upload_id !== known) await abortUpload(requests, key, upload_id, signal);
  } catch (error) {
    if (!(error instanceof DestinationError) || error.transient) throw error;
  }
}

async function listUploads(
  requests: S3Requests,
  prefix: string,
  matches: (key: string) => boolean,
  signal: AbortSignal,
): Promise<{ readonly key: string; readonly upload_id: string }[]> {
  const found: { key: string; upload_id: string }[] = [];
  const advance = listProgress('ListMultipartUploads', bounds.listedUploads);
  let marker: { KeyMarker: string; UploadIdMarker: string | undefined } | undefined;
  do {
    const input = { Bucket: requests.bucket, Prefix: prefix, ...marker };
    const page = await sendCommand(requests, ListMultipartUploadsCommand, input, signal);
    for (const { Key, UploadId } of page.Uploads ?? [])
      if (Key !== undefined && UploadId !== undefined && matches(Key))
        found.push({ key: Key, upload_id: UploadId });
    marker = page.IsTruncated
      ? {
          KeyMarker: requireField('ListMultipartUploads', page.NextKeyMarker, 'NextKeyMarker'),
          UploadIdMarker: page.NextUploadIdMarker,
        }
      : undefined;
    if (marker) advance(page.Uploads?.length ?? 0, `${marker.KeyMarker} ${marker.UploadIdMarker}`);
  } while (marker);
  return found;
}

/** Timeout in milliseconds for aborting uploads after a lost response or a cancellation. */
const abortTimeoutMs = 5_000;
/**
 * How long a cancelled attempt waits for the response to the creation of an upload. Without it, the request may still be
 * on its way when the uploads are listed, and the upload that it creates would remain.
 */
const creationGraceMs = 1_000;

/** Options of the parts of an upload. */
interface PartOptions {
  readonly firstPartBytes: number;
  /** The size of every part but the last, if the store requires one size; null by default. */
  readonly equalPartBytes?: number | null;
  /** Whether another attempt can continue after the last part; true by default. */
  readonly resumable?: boolean | undefined;
}

/**
 * Creates a multipart upload of `key`. An upload that the server creates after `signal` is aborted is aborted too, if the
 * server responds within a second.
 * @throws DestinationError, or the signal's reason once it is aborted
 */
export async function createUpload(
  requests: S3Requests,
  key: string,
  options: ObjectOptions & PartOptions & { readonly upload_token?: string },
  signal: AbortSignal,
): Promise<FileUpload> {
  const {
    firstPartBytes,
    equalPartBytes = null,
    resumable = true,
    upload_token = randomUUID(),
    ...object
  } = options;
  const input = {
    Bucket: requests.bucket,
    Key: key,
    Metadata: tokenMetadata(upload_token),
    ...object,
  };
  let attempts = 0;
  using creation = delayAbort(signal, creationGraceMs);
  const created = await requests
    .send('CreateMultipartUpload', creation.signal, (client, call) => {
      attempts += 1;
      return client.send(new CreateMultipartUploadCommand(input), call);
    })
    .catch(async (error: unknown) => {
      await abortAfterLostResponse(requests, key, error);
      throw error;
    });
  const upload_id = requireField('CreateMultipartUpload', created.UploadId, 'an upload id', maxToken);
  if (signal.aborted) {
    await abortUpload(requests, key, upload_id, AbortSignal.timeout(abortTimeoutMs)).catch(() => undefined);
    signal.throwIfAborted();
  }
  if (attempts > 1 || (created.$metadata.attempts ?? 1) > 1)
    await abortOrphanedUploads(requests, key, upload_id, signal);
  const reference = { key, upload_id, upload_token, part_bytes: equalPartBytes };
  return openUpload(requests, reference, firstPartBytes, resumable ? 'if_listable' : 'never');
}

/** After a lost response the server may have created an upload. */
async function abortAfterLostResponse(requests: S3Requests, key: string, error: unknown): Promise<void> {
  if (error instanceof DestinationError && !error.transient) return;
  await abortOrphanedUploads(requests, key, null, AbortSignal.timeout(abortTimeoutMs)).catch(() => undefined);
}

/** Resumes an upload of another attempt. */
export const resumeUpload = (
  requests: S3Requests,
  reference: UploadReference,
  firstPartBytes: number,
): FileUpload => openUpload(requests, reference, firstPartBytes, 'always');

/** Whether another attempt can continue an upload. The parts of one that cannot be continued are wasted by a failure. */
type Resumable = 'always' | 'if_listable' | 'never';

function openUpload(
  requests: S3Requests,
  reference: UploadReference,
  firstPartBytes: number,
  resumable: Resumable,
): FileUpload {
  const { key, upload_id, part_bytes } = reference;
  const upload = { Bucket: requests.bucket, Key: key, UploadId: upload_id };
  let startedParts = 0;
  let unlistable: Promise<boolean> | undefined;
  /** Whether the failure of a part wastes others. The first part alone is sent again soon. */
  const wastesParts = async (signal: AbortSignal): Promise<boolean> => {
    startedParts += 1;
    if (startedParts === 1 || resumable === 'always') return false;
    if (resumable === 'never') return true;
    unlistable ??= listParts(requests, key, upload_id, signal).then(
      () => false,
      (error: unknown) => isErrorType(error, 'AccessDenied'),
    );
    return unlistable;
  };
  return {
    ...reference,
    maxPartNumber,
    partBytes: (position) => part_bytes ?? partBytes(position, firstPartBytes),
    listParts: (signal) =>
      listParts(requests, key, upload_id, signal).catch((error: unknown) => {
        if (isErrorType(error, 'NoSuchUpload')) return null;
        throw error;
      }),
    findCompleted: (bytes, signal) => findFile(requests, reference, bytes, signal),
    putPart: async (partNumber, bytes, signal) => {
      const input = { ...upload, PartNumber: partNumber, Body: bytes };
      const options = { wastesParts: await wastesParts(signal) };
      const sent = await sendCommand(requests, UploadPartCommand, input, signal, options);
      return {
        part_number: partNumber,
        etag: requireField('UploadPart', sent.ETag, 'the ETag of a part', maxToken),
      };
    },
    complete: (parts, bytes, signal) => completeUpload(requests, reference, { parts, bytes }, signal),
  };
}

/** Lists the uploaded parts by number. */
export async function listParts(
  requests: S3Requests,
  key: string,
  uploadId: string,
  signal: AbortSignal,
): Promise<StoredPart[]> {
  const listed: StoredPart[] = [];
  const advance = listProgress('ListParts', { ...bounds.listedUploads, max: maxPartNumber });
  let marker: string | undefined;
  do {
    const input = { Bucket: requests.bucket, Key: key, UploadId: uploadId, PartNumberMarker: marker };
    const page = await sendCommand(requests, ListPartsCommand, input, signal);
    for (const { PartNumber: part_number, ETag, Size: bytes } of page.Parts ?? []) {
      if (part_number === undefined || bytes === undefined)
        throw unprovenAnswer('ListParts', 200, 'the number and the size of a part');
      listed.push({
        part_number,
        etag: requireField('ListParts', ETag, 'the ETag of a part', maxToken),
        bytes,
      });
    }
    marker = page.IsTruncated
      ? requireField('ListParts', page.NextPartNumberMarker, 'NextPartNumberMarker')
      : undefined;
    if (marker !== undefined) advance(page.Parts?.length ?? 0, marker);
  } while (marker !== undefined);
  return listed;
}

type Completion = Readonly<{ parts: readonly UploadedPart[]; bytes: number }>;

async function completeUpload(
  requests: S3Requests,
  upload: UploadReference,
  completion: Completion,
  signal: AbortSignal,
): Promise<WrittenObject> {
  const { key: Key, upload_id: UploadId } = upload;
  const Parts = completion.parts.map(({ part_number, etag }) => ({ PartNumber: part_number, ETag: etag }));
  const input = { Bucket: requests.bucket, Key, UploadId, MultipartUpload: { Parts } };
  const complete = (conditions: { IfNoneMatch?: string }): Promise<WrittenObject> =>
    requests.send('CompleteMultipartUpload', signal, async (client, call) => {
      let claimed: WrittenObject | null = null;
      try {
        const command = new CompleteMultipartUploadCommand({ ...input, ...conditions });
        const { ETag, Expiration } = await client.send(command, call);
        const proof = provenParts(ETag, completion.parts);
        const written = { expires_at: parseExpiration(Expiration) };
        if (proof === 'joined') return written;
        if (proof === 'as many') claimed = written;
        throw unprovenAnswer('CompleteMultipartUpload', 200, 'the ETag of the joined parts');
      } catch (error) {
        if (!isErrorType(error, unproven)) throw error;
        const found = await lookForFile(requests, upload, completion.bytes, signal);
        // Encrypted objects have other ETags, and credentials that may only write can ask for no more than that.
        const object = found === 'unreadable' ? claimed : found;
        if (!object) throw error;
        return object;
      }
    });
  try {
    return await complete({ IfNoneMatch: '*' }).catch(async (error: unknown) => {
      // The server does not support conditional writes. The journal assigned the generation in the key to this
      // attempt only, and the keys of further files have a mark.
      if (!isErrorType(error, 'NotImplemented')) throw error;
      await reportUnconditionalWrites(requests, { conditional_complete: false });
      return complete({});
    });
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    if (partRefusals.has(error.type))
      await rejectRefusedParts(requests, upload, completion, error.type, signal);
    if (!error.transient) throw error;
    // The response to an earlier attempt may have been lost, so the stored object decides.
    const found = await findFile(requests, upload, completion.bytes, signal);
    if (!found)
      throw new DestinationError(
        'UploadNotFound',
        `The upload of ${Key} could not be completed (${error.type}); the file will be exported again.`,
        { transient: true },
      );
    return found;
  }
}

/**
 * Handles the refusal of parts that the server lists as they were sent. Parts of different sizes are refused by some
 * stores, such as Cloudflare R2: the next attempt sends parts of one size. A store that refuses these too will always do.
 * Returns when parts are missing.
 * @throws DestinationError `PartsRefused`
 */
async function rejectRefusedParts(
  requests: S3Requests,
  { key, upload_id, part_bytes }: UploadReference,
  { parts }: Completion,
  code: string,
  signal: AbortSignal,
): Promise<void> {
  if (await isPartMissing(requests, { key, upload_id, parts }, signal)) return;
  if (part_bytes !== null)
    throw new DestinationError(
      'PartsRefused',
      `The S3 server refuses to complete the upload of ${key} with ${code}, although it lists all ${parts.length} parts and they have one size (${part_bytes} bytes). Run the destination test, and contact the provider of the server.`,
      { transient: false },
    );
  await requests.learn({ equal_parts: true });
  const message = `The S3 server refuses parts of different sizes (${code}). The file is exported again, with parts of one size.`;
  requests.report(new DestinationError('PartsRefused', message, { transient: false }));
  throw new DestinationError('PartsRefused', message, { transient: true });
}

/** Whether the server lacks a part; false when the credentials may not list parts. */
async function isPartMissing(
  requests: S3Requests,
  { key, upload_id, parts }: { key: string; upload_id: string; parts: readonly UploadedPart[] },
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const listed = await listParts(requests, key, upload_id, signal);
    const etags = new Map(listed.map(({ part_number, etag }) => [part_number, withoutQuotes(etag)]));
    return parts.some(({ part_number, etag }) => etags.get(part_number) !== withoutQuotes(etag));
  } catch (error) {
    if (isErrorType(error, 'AccessDenied')) return false;
    if (isErrorType(error, 'NoSuchUpload')) return true;
    throw error;
  }
}
