import { AbortMultipartUploadCommand, ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { DestinationError } from '../destination.ts';
import type { S3Requests } from './requests.ts';

/** Throws an upload and its parts away; one that is gone already is no error. */
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
 * Throws away what uploads the server has of a key, but for the one that is known: it began them, and its answer was
 * lost with a connection or a process. Where uploads may not be listed they stay; without a part they cost nothing.
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
