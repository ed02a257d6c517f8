import { randomUUID } from 'node:crypto';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  ListPartsCommand,
  UploadPartCommand,
  type CreateMultipartUploadCommandInput,
} from '@aws-sdk/client-s3';
import {
  DestinationError,
  type FileUpload,
  type StoredPart,
  type UploadedPart,
  type UploadReference,
} from '../destination.ts';
import { abortOrphanedUploads } from './abort_uploads.ts';
import type { S3Requests } from './requests.ts';
import { partBytes, partNumberMaximum } from './part_sizes.ts';
import { unconditionalStore } from './unconditional_store.ts';

/** How objects are encrypted by the server, and what kind of text they hold. */
export type ObjectOptions = Pick<
  CreateMultipartUploadCommandInput,
  'ServerSideEncryption' | 'SSEKMSKeyId' | 'ContentType'
>;

/** How long is spent on uploads that were begun without an answer. */
const clearingMs = 5_000;

/** Metadata that tells an upload's object from any other of the same key and size. */
const uploadTokenMetadata = 'exportd-upload';

/** Begins a multipart upload of `key`; small files go the same way, as a single part. */
export async function createUpload(
  requests: S3Requests,
  key: string,
  options: ObjectOptions & { firstPartBytes: number },
  signal: AbortSignal,
): Promise<FileUpload> {
  const { firstPartBytes, ...object } = options;
  const upload_token = randomUUID();
  const input = {
    Bucket: requests.bucket,
    Key: key,
    Metadata: { [uploadTokenMetadata]: upload_token },
    ...object,
  };
  let tries = 0;
  const created = await requests
    .send('CreateMultipartUpload', signal, (client, call) => {
      tries += 1;
      return client.send(new CreateMultipartUploadCommand(input), call);
    })
    .catch(async (error: unknown) => {
      await abortUnanswered(requests, key, error);
      throw error;
    });
  const upload_id = requireField(created.UploadId, 'an upload id');
  if (tries > 1 || (created.$metadata.attempts ?? 1) > 1)
    await abortOrphanedUploads(requests, key, upload_id, signal);
  return resumeUpload(requests, { key, upload_id, upload_token }, firstPartBytes);
}

/** After a request whose answer did not come, the server may have begun an upload all the same. */
async function abortUnanswered(requests: S3Requests, key: string, error: unknown): Promise<void> {
  if (error instanceof DestinationError && !error.transient) return;
  await abortOrphanedUploads(requests, key, null, AbortSignal.timeout(clearingMs)).catch(() => undefined);
}

/** An upload that was begun before, by this attempt or another. */
export function resumeUpload(
  requests: S3Requests,
  names: UploadReference,
  firstPartBytes: number,
): FileUpload {
  const { key, upload_id, upload_token } = names;
  const upload = { Bucket: requests.bucket, Key: key, UploadId: upload_id };
  return {
    ...names,
    partNumberMaximum,
    partBytes: (position) => partBytes(position, firstPartBytes),
    listParts: (signal) =>
      listParts(requests, key, upload_id, signal).catch((error: unknown) => {
        if (isFault(error, 'NoSuchUpload')) return null;
        throw error;
      }),
    isFinished: (bytes, signal) => isThere(requests, upload, { bytes, upload_token }, signal),
    putPart: async (partNumber, bytes, signal) => {
      const sent = await requests.send('UploadPart', signal, (client, call) =>
        client.send(new UploadPartCommand({ ...upload, PartNumber: partNumber, Body: bytes }), call),
      );
      return { part_number: partNumber, etag: requireField(sent.ETag, 'the ETag of a part') };
    },
    complete: (parts, bytes, signal) =>
      completeUpload(requests, upload, { parts, bytes, upload_token }, signal),
  };
}

/** The parts of an upload that the server holds, by number. */
export async function listParts(
  requests: S3Requests,
  key: string,
  uploadId: string,
  signal: AbortSignal,
): Promise<StoredPart[]> {
  const listed: StoredPart[] = [];
  let marker: string | undefined;
  do {
    const input = { Bucket: requests.bucket, Key: key, UploadId: uploadId, PartNumberMarker: marker };
    const page = await requests.send('ListParts', signal, (client, call) =>
      client.send(new ListPartsCommand(input), call),
    );
    for (const part of page.Parts ?? [])
      listed.push({
        part_number: part.PartNumber ?? 0,
        etag: requireField(part.ETag, 'the ETag of a part'),
        bytes: part.Size ?? 0,
      });
    marker = page.IsTruncated ? page.NextPartNumberMarker : undefined;
  } while (marker !== undefined);
  return listed;
}

type UploadTarget = Readonly<{ Bucket: string; Key: string; UploadId: string }>;
type Completion = Readonly<{ parts: readonly UploadedPart[]; bytes: number; upload_token: string }>;

async function completeUpload(
  requests: S3Requests,
  upload: UploadTarget,
  completion: Completion,
  signal: AbortSignal,
): Promise<void> {
  const Parts = completion.parts.map(({ part_number, etag }) => ({ PartNumber: part_number, ETag: etag }));
  const complete = (conditions: { IfNoneMatch?: string }) =>
    requests.send('CompleteMultipartUpload', signal, (client, call) =>
      client.send(
        new CompleteMultipartUploadCommand({ ...upload, ...conditions, MultipartUpload: { Parts } }),
        call,
      ),
    );
  try {
    await complete({ IfNoneMatch: '*' }).catch((error: unknown) => {
      // The server knows no conditional writes. The key belongs to a generation that the journal gave to this attempt alone.
      if (!isFault(error, 'NotImplemented')) throw error;
      requests.tell(unconditionalStore());
      return complete({});
    });
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    if (!error.transient) throw error;
    // The reply to an earlier try may have been lost: whether the file is there now decides, not what the server said.
    if (!(await isThere(requests, upload, completion, signal)))
      throw new DestinationError(
        'UploadNotFound',
        `The upload of ${upload.Key} could not be completed (${error.type}); the file is exported anew.`,
        { transient: true },
      );
  }
}

async function isThere(
  requests: S3Requests,
  { Bucket, Key }: UploadTarget,
  { bytes, upload_token }: Pick<Completion, 'bytes' | 'upload_token'>,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const found = await requests.send('HeadObject', signal, (client, call) =>
      client.send(new HeadObjectCommand({ Bucket, Key }), call),
    );
    return found.ContentLength === bytes && found.Metadata?.[uploadTokenMetadata] === upload_token;
  } catch (error) {
    // Not there, or not allowed to look: then the file starts anew under the next generation, which is always safe.
    if (error instanceof DestinationError && !error.transient) return false;
    throw error;
  }
}

/** Whether the object under a key was made of the upload with this mark; null when the credentials may not look. */
export async function isFromUpload(
  requests: S3Requests,
  { key, upload_token }: Pick<UploadReference, 'key' | 'upload_token'>,
  signal: AbortSignal,
): Promise<boolean | null> {
  try {
    const found = await requests.send('HeadObject', signal, (client, call) =>
      client.send(new HeadObjectCommand({ Bucket: requests.bucket, Key: key }), call),
    );
    return found.Metadata?.[uploadTokenMetadata] === upload_token;
  } catch (error) {
    if (isFault(error, 'NotFound') || isFault(error, 'NoSuchKey')) return false;
    if (isFault(error, 'AccessDenied')) return null;
    throw error;
  }
}

const isFault = (error: unknown, type: string): boolean =>
  error instanceof DestinationError && error.type === type;

function requireField(value: string | undefined, what: string): string {
  if (value === undefined)
    throw new DestinationError(
      'UnexpectedResponse',
      `The S3 server answered without ${what}; is endpoint_url an S3 server?`,
      {
        transient: true,
      },
    );
  return value;
}
