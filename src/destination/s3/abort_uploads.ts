import { AbortMultipartUploadCommand, ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { DestinationError } from '../destination.ts';
import type { S3Requests } from './requests.ts';

/** Aborts an upload, which deletes its parts. It is not an error if it no longer exists. */
export async function abortUpload(
  requests: S3Requests,
  key: string,
  uploadId: string,
  signal: AbortSignal,
): Promise<void> {
  const input = { Bucket: requests.bucket, Key: key, UploadId: uploadId };
  try {
    await requests.send('AbortMultipartUpload', signal, (client, call) =>
      client.send(new AbortMultipartUploadCommand(input), call),
    );
  } catch (error) {
    if (!(error instanceof DestinationError) || error.type !== 'NoSuchUpload') throw error;
  }
}

/**
 * Aborts all uploads of a key except `known`. They are orphaned: the server created them, but the response was lost
 * with a connection or a process. If the credentials may not list uploads, they remain; without parts they cost
 * nothing.
 */
export const abortOrphanedUploads = (
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
  let marker: { KeyMarker: string | undefined; UploadIdMarker: string | undefined } | undefined;
  do {
    const input = { Bucket: requests.bucket, Prefix: prefix, ...marker };
    const page = await requests.send('ListMultipartUploads', signal, (client, call) =>
      client.send(new ListMultipartUploadsCommand(input), call),
    );
    for (const { Key, UploadId } of page.Uploads ?? [])
      if (Key !== undefined && UploadId !== undefined && matches(Key))
        found.push({ key: Key, upload_id: UploadId });
    marker = page.IsTruncated
      ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker }
      : undefined;
  } while (marker);
  return found;
}
