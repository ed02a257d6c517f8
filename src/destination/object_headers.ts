/** What the headers of an object say: whose upload it is, how long it is, when the bucket deletes it. */
import { HeadObjectCommand, type HeadObjectCommandOutput } from '@aws-sdk/client-s3';
import { DestinationError, type UploadReference, type WrittenObject } from './destination.ts';
import { isErrorType } from './errors.ts';
import { type S3Requests, sendCommand } from './requests.ts';

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
 * The metadata key of the upload token, which distinguishes the object of an upload from others with the same key and
 * size.
 */
const uploadTokenMetadata = 'exportd-upload';

/** The metadata of an object with this upload token. */
export const tokenMetadata = (upload_token: string): Record<string, string> => ({
  [uploadTokenMetadata]: upload_token,
});

/** The upload token of an object; undefined when it has none. */
export const tokenOf = ({ Metadata }: HeadObjectCommandOutput): string | undefined =>
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

export type FileReference = Pick<UploadReference, 'key' | 'upload_token'>;

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
