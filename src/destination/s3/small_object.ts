import { DeleteObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { DestinationError } from '../destination.ts';
import { conditionFailureCodes } from './errors.ts';
import type { ObjectOptions } from './multipart.ts';
import type { S3Requests } from './requests.ts';
import { reportUnconditionalWrites } from './conditional_writes.ts';
import { getManifestObject } from './manifest_object.ts';

/**
 * Writes an object in one request, unless it exists already.
 * @returns false when an object with other bytes exists; one that may not be read is taken for ours
 */
export async function putSmallObject(
  requests: S3Requests,
  key: string,
  bytes: Buffer,
  options: ObjectOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const put = (conditions: { IfNoneMatch?: string }) =>
    requests.send('PutObject', signal, (client, call) =>
      client.send(
        new PutObjectCommand({ Bucket: requests.bucket, Key: key, Body: bytes, ...options, ...conditions }),
        call,
      ),
    );
  try {
    await put({ IfNoneMatch: '*' });
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    if (error.type === 'NotImplemented') {
      await reportUnconditionalWrites(requests, { conditional_put: false });
      await put({});
    } else if (conditionFailureCodes.has(error.type)) {
      const found = await getManifestObject(requests, key, signal);
      return found.state !== 'present' || found.text === bytes.toString();
    } else throw error;
  }
  return true;
}

/** Deletes an object. S3's response does not depend on whether it existed. */
export async function deleteObject(requests: S3Requests, key: string, signal: AbortSignal): Promise<void> {
  await requests.send('DeleteObject', signal, (client, call) =>
    client.send(new DeleteObjectCommand({ Bucket: requests.bucket, Key: key }), call),
  );
}

/** Deletes an object if it still has this ETag. Servers without conditional deletes delete any object. */
export async function deleteIfUnchanged(
  requests: S3Requests,
  key: string,
  etag: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const deleteWith = (conditions: { IfMatch?: string }) =>
    requests.send('DeleteObject', signal, (client, call) =>
      client.send(new DeleteObjectCommand({ Bucket: requests.bucket, Key: key, ...conditions }), call),
    );
  try {
    await deleteWith(etag === undefined ? {} : { IfMatch: etag });
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    if (error.type === 'NotImplemented') await deleteWith({});
    else if (!conditionFailureCodes.has(error.type)) throw error;
  }
}
