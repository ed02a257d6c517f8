import { HeadObjectCommand, type HeadObjectCommandOutput } from '@aws-sdk/client-s3';
import { DestinationError, type UploadReference, type WrittenObject } from '../destination.ts';
import { parseExpiration } from './expiration.ts';
import type { S3Requests } from './requests.ts';

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
    return await requests.send('HeadObject', signal, (client, call) =>
      client.send(new HeadObjectCommand({ Bucket: requests.bucket, Key: key }), call),
    );
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    if (error.type === 'NotFound' || error.type === 'NoSuchKey') return 'absent';
    if (error.type === 'AccessDenied') return 'unreadable';
    throw error;
  }
}

/** Whether an object is known to have this key; false when it is absent or unreadable. */
export const isTaken = async (requests: S3Requests, key: string, signal: AbortSignal): Promise<boolean> =>
  typeof (await headObject(requests, key, signal)) === 'object';

type FileReference = Pick<UploadReference, 'key' | 'upload_token'>;

/** Whether the object was created with this upload token; null when it is absent or unreadable. */
export async function isFromUpload(
  requests: S3Requests,
  { key, upload_token }: FileReference,
  signal: AbortSignal,
): Promise<boolean | null> {
  const found = await headObject(requests, key, signal);
  if (found === 'unreadable') return null;
  return found !== 'absent' && tokenOf(found) === upload_token;
}

/**
 * The object, if it was created with this upload token and has `bytes` bytes. Null otherwise, and when it may not be
 * read: the file is then exported again in the next generation, which is always safe.
 */
export async function findFile(
  requests: S3Requests,
  { key, upload_token }: FileReference,
  bytes: number,
  signal: AbortSignal,
): Promise<WrittenObject | null> {
  try {
    const found = await headObject(requests, key, signal);
    if (typeof found !== 'object' || found.ContentLength !== bytes || tokenOf(found) !== upload_token)
      return null;
    return { expires_at: parseExpiration(found.Expiration) };
  } catch (error) {
    if (error instanceof DestinationError && !error.transient) return null;
    throw error;
  }
}
