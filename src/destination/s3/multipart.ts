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
  type WrittenObject,
} from '../destination.ts';
import { abortOrphanedUploads } from './abort_uploads.ts';
import type { S3Requests } from './requests.ts';
import { partBytes, maxPartNumber } from './part_sizes.ts';
import { conditionalWritesUnsupported } from './conditional_writes.ts';
import { parseExpiration } from './expiration.ts';

/** Server-side encryption and content type of an object. */
export type ObjectOptions = Pick<
  CreateMultipartUploadCommandInput,
  'ServerSideEncryption' | 'SSEKMSKeyId' | 'ContentType'
>;

/** Timeout in milliseconds for aborting uploads after a lost response. */
const abortTimeoutMs = 5_000;

/**
 * The metadata key of the upload token, which distinguishes the object of an upload from others with the same key and
 * size.
 */
const uploadTokenMetadata = 'exportd-upload';

/** Creates a multipart upload of `key`. Small files are uploaded as a single part. */
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
  let attempts = 0;
  const created = await requests
    .send('CreateMultipartUpload', signal, (client, call) => {
      attempts += 1;
      return client.send(new CreateMultipartUploadCommand(input), call);
    })
    .catch(async (error: unknown) => {
      await abortAfterLostResponse(requests, key, error);
      throw error;
    });
  const upload_id = requireField(created.UploadId, 'an upload id');
  if (attempts > 1 || (created.$metadata.attempts ?? 1) > 1)
    await abortOrphanedUploads(requests, key, upload_id, signal);
  return resumeUpload(requests, { key, upload_id, upload_token }, firstPartBytes);
}

/** After a lost response the server may have created an upload. */
async function abortAfterLostResponse(requests: S3Requests, key: string, error: unknown): Promise<void> {
  if (error instanceof DestinationError && !error.transient) return;
  await abortOrphanedUploads(requests, key, null, AbortSignal.timeout(abortTimeoutMs)).catch(() => undefined);
}

/** Resumes an upload of this or another attempt. */
export function resumeUpload(
  requests: S3Requests,
  reference: UploadReference,
  firstPartBytes: number,
): FileUpload {
  const { key, upload_id, upload_token } = reference;
  const upload = { Bucket: requests.bucket, Key: key, UploadId: upload_id };
  return {
    ...reference,
    maxPartNumber,
    partBytes: (position) => partBytes(position, firstPartBytes),
    listParts: (signal) =>
      listParts(requests, key, upload_id, signal).catch((error: unknown) => {
        if (isErrorType(error, 'NoSuchUpload')) return null;
        throw error;
      }),
    findCompleted: (bytes, signal) => findUploadedObject(requests, upload, { bytes, upload_token }, signal),
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

/** Lists the uploaded parts by number. */
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
): Promise<WrittenObject> {
  const Parts = completion.parts.map(({ part_number, etag }) => ({ PartNumber: part_number, ETag: etag }));
  const complete = (conditions: { IfNoneMatch?: string }) =>
    requests.send('CompleteMultipartUpload', signal, (client, call) =>
      client.send(
        new CompleteMultipartUploadCommand({ ...upload, ...conditions, MultipartUpload: { Parts } }),
        call,
      ),
    );
  try {
    const { Expiration } = await complete({ IfNoneMatch: '*' }).catch((error: unknown) => {
      // The server does not support conditional writes. The journal assigned the generation in the key to this
      // attempt only.
      if (!isErrorType(error, 'NotImplemented')) throw error;
      requests.report(conditionalWritesUnsupported());
      return complete({});
    });
    return { expires_at: parseExpiration(Expiration) };
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    if (!error.transient) throw error;
    // The response to an earlier attempt may have been lost, so the stored object decides.
    const found = await findUploadedObject(requests, upload, completion, signal);
    if (!found)
      throw new DestinationError(
        'UploadNotFound',
        `The upload of ${upload.Key} could not be completed (${error.type}); the file will be exported again.`,
        { transient: true },
      );
    return found;
  }
}

async function findUploadedObject(
  requests: S3Requests,
  { Bucket, Key }: UploadTarget,
  { bytes, upload_token }: Pick<Completion, 'bytes' | 'upload_token'>,
  signal: AbortSignal,
): Promise<WrittenObject | null> {
  try {
    const found = await requests.send('HeadObject', signal, (client, call) =>
      client.send(new HeadObjectCommand({ Bucket, Key }), call),
    );
    return found.ContentLength === bytes && found.Metadata?.[uploadTokenMetadata] === upload_token
      ? { expires_at: parseExpiration(found.Expiration) }
      : null;
  } catch (error) {
    // The object does not exist or may not be read. The file is then exported again in the next generation, which is
    // always safe.
    if (error instanceof DestinationError && !error.transient) return null;
    throw error;
  }
}

/** Whether the object was created by the upload with this token; null when it is absent or unreadable. */
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
    if (isErrorType(error, 'NotFound') || isErrorType(error, 'NoSuchKey')) return false;
    if (isErrorType(error, 'AccessDenied')) return null;
    throw error;
  }
}

const isErrorType = (error: unknown, type: string): boolean =>
  error instanceof DestinationError && error.type === type;

function requireField(value: string | undefined, what: string): string {
  if (value === undefined)
    throw new DestinationError(
      'UnexpectedResponse',
      `The response of the S3 server lacks ${what}; check that endpoint_url is an S3 server.`,
      {
        transient: true,
      },
    );
  return value;
}
