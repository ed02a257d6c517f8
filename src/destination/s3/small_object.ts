import { DeleteObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { DestinationError } from '../destination.ts';
import { conditionFailed } from './errors.ts';
import type { ObjectOptions } from './multipart.ts';
import type { S3Requests } from './requests.ts';
import { unconditionalStore } from './unconditional_store.ts';

/** Writes an object in one request where none stands; one that stands there is left alone. */
export async function putSmallObject(
  requests: S3Requests,
  key: string,
  bytes: Buffer,
  options: ObjectOptions,
  signal: AbortSignal,
): Promise<void> {
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
      requests.tell(unconditionalStore());
      await put({});
    } else if (!conditionFailed.has(error.type)) throw error;
  }
}

/** Removes an object; S3 answers the same whether it was there or not. */
export async function deleteObject(requests: S3Requests, key: string, signal: AbortSignal): Promise<void> {
  await requests.send('DeleteObject', signal, (client, call) =>
    client.send(new DeleteObjectCommand({ Bucket: requests.bucket, Key: key }), call),
  );
}

/** The same, provided that it still is the object with this ETag: another one stays, where the server knows conditions. */
export async function deleteUnchanged(
  requests: S3Requests,
  key: string,
  etag: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const remove = (conditions: { IfMatch?: string }) =>
    requests.send('DeleteObject', signal, (client, call) =>
      client.send(new DeleteObjectCommand({ Bucket: requests.bucket, Key: key, ...conditions }), call),
    );
  try {
    await remove(etag === undefined ? {} : { IfMatch: etag });
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    if (error.type === 'NotImplemented') await remove({});
    else if (!conditionFailed.has(error.type)) throw error;
  }
}
