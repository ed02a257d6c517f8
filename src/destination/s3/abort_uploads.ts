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
export async function abortOrphanedUploads(
  requests: S3Requests,
  key: string,
  known: string | null,
  signal: AbortSignal,
): Promise<void> {
  try {
    for (const id of await uploadsOf(requests, key, signal))
      if (id !== known) await abortUpload(requests, key, id, signal);
  } catch (error) {
    if (!(error instanceof DestinationError) || error.transient) throw error;
  }
}

async function uploadsOf(requests: S3Requests, key: string, signal: AbortSignal): Promise<string[]> {
  const ids: string[] = [];
  let marker: { KeyMarker: string | undefined; UploadIdMarker: string | undefined } | undefined;
  do {
    const input = { Bucket: requests.bucket, Prefix: key, ...marker };
    const page = await requests.send('ListMultipartUploads', signal, (client, call) =>
      client.send(new ListMultipartUploadsCommand(input), call),
    );
    for (const { Key, UploadId } of page.Uploads ?? [])
      if (Key === key && UploadId !== undefined) ids.push(UploadId);
    marker = page.IsTruncated
      ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker }
      : undefined;
  } while (marker);
  return ids;
}
