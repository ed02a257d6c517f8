import {
  CompleteMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import type { FileUpload } from '../destination.ts';
import { abortUpload } from './abort_uploads.ts';
import { createUpload, listParts, type ObjectOptions } from './multipart.ts';
import type { S3Requests } from './requests.ts';

/** A condition that a write has to obey. */
export interface WriteCondition {
  readonly IfNoneMatch?: string;
  readonly IfMatch?: string;
}

/** An upload of a single part that is not completed. */
export interface TestUpload {
  /** How many bytes the server holds of each part. */
  listParts(): Promise<readonly number[]>;
  complete(condition: WriteCondition): Promise<void>;
  abort(): Promise<void>;
}

/** What a test asks of a bucket, all of it about one object. Every method throws DestinationError. */
export interface TestRequests {
  list(): Promise<void>;
  put(condition?: WriteCondition): Promise<void>;
  /** Whether the object reads back as it was written. */
  readsBack(): Promise<boolean>;
  upload(): Promise<TestUpload>;
  remove(): Promise<void>;
}

/** How long removing what a test made may take, also when the time of the test is up. */
const cleaningMs = 3_000;

/** Requests about the object `key` that hold `text`, each made once. */
export function createTestRequests(
  requests: S3Requests,
  object: { readonly key: string; readonly text: string; readonly options: ObjectOptions },
  signal: AbortSignal,
): TestRequests {
  const { key, text, options } = object;
  const target = { Bucket: requests.bucket, Key: key };
  const bytes = Buffer.from(text);
  const uploadOf = (begun: FileUpload, etag: string): TestUpload => ({
    listParts: async () =>
      (await listParts(requests, key, begun.upload_id, signal)).map((part) => part.bytes),
    complete: async (condition) => {
      const MultipartUpload = { Parts: [{ PartNumber: 1, ETag: etag }] };
      const input = { ...target, ...condition, UploadId: begun.upload_id, MultipartUpload };
      await requests.send('CompleteMultipartUpload', signal, (client, call) =>
        client.send(new CompleteMultipartUploadCommand(input), call),
      );
    },
    abort: () => abortUpload(requests, key, begun.upload_id, AbortSignal.timeout(cleaningMs)),
  });
  return {
    list: async () => {
      const input = { Bucket: requests.bucket, Prefix: key, MaxKeys: 1 };
      await requests.send('ListObjectsV2', signal, (client, call) =>
        client.send(new ListObjectsV2Command(input), call),
      );
    },
    put: async (condition = {}) => {
      const input = { ...target, ...options, ...condition, Body: bytes };
      await requests.send('PutObject', signal, (client, call) =>
        client.send(new PutObjectCommand(input), call),
      );
    },
    readsBack: async () => {
      const found = await requests.send('GetObject', signal, async (client, call) => {
        const { Body } = await client.send(new GetObjectCommand(target), call);
        return Body?.transformToString();
      });
      return found === text;
    },
    upload: async () => {
      const begun = await createUpload(requests, key, { ...options, firstPartBytes: bytes.length }, signal);
      const { etag } = await begun.putPart(1, bytes, signal);
      return uploadOf(begun, etag);
    },
    remove: async () => {
      await requests.send('DeleteObject', AbortSignal.timeout(cleaningMs), (client, call) =>
        client.send(new DeleteObjectCommand(target), call),
      );
    },
  };
}
