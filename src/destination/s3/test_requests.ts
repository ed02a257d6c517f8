import { crc32 } from 'node:zlib';
import {
  CompleteMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import type { FileUpload } from '../destination.ts';
import { abortUpload } from './abort_uploads.ts';
import { headObject } from './head_object.ts';
import { createUpload, listParts, type ObjectOptions } from './multipart.ts';
import type { S3Requests } from './requests.ts';

/** A condition of a write. */
export interface WriteCondition {
  readonly IfNoneMatch?: string;
  readonly IfMatch?: string;
}

/** An incomplete upload whose parts were sent. */
export interface TestUpload {
  /** The size of each uploaded part in bytes. */
  listParts(): Promise<readonly number[]>;
  complete(condition: WriteCondition): Promise<void>;
  abort(): Promise<void>;
}

/** The requests of a destination test, all for one object. All methods throw DestinationError. */
export interface TestRequests {
  list(): Promise<void>;
  put(condition?: WriteCondition): Promise<void>;
  /** Writes the object with a wrong checksum, which a server may refuse. */
  putWithWrongChecksum(): Promise<void>;
  /** Whether the content of the object is what was written. */
  isReadBack(): Promise<boolean>;
  /** Whether a key that nothing was written to is absent or unreadable. */
  readMissing(): Promise<'absent' | 'unreadable'>;
  /** Starts an upload and sends its parts: one with the content by default. */
  upload(parts?: readonly Buffer[]): Promise<TestUpload>;
  delete(): Promise<void>;
}

/** Timeout in milliseconds for deleting what a test wrote; it applies after the test's own timeout too. */
const cleanUpTimeoutMs = 3_000;

/** Creates the requests for the object `key` with the content `text`. Each is sent once. */
export function createTestRequests(
  requests: S3Requests,
  object: { readonly key: string; readonly text: string; readonly options: ObjectOptions },
  signal: AbortSignal,
): TestRequests {
  const { key, text, options } = object;
  const target = { Bucket: requests.bucket, Key: key };
  const bytes = Buffer.from(text);
  const uploadOf = (started: FileUpload, etags: readonly string[]): TestUpload => ({
    listParts: async () =>
      (await listParts(requests, key, started.upload_id, signal)).map((part) => part.bytes),
    complete: async (condition) => {
      const Parts = etags.map((ETag, index) => ({ PartNumber: index + 1, ETag }));
      const MultipartUpload = { Parts };
      const input = { ...target, ...condition, UploadId: started.upload_id, MultipartUpload };
      await requests.send('CompleteMultipartUpload', signal, (client, call) =>
        client.send(new CompleteMultipartUploadCommand(input), call),
      );
    },
    abort: () => abortUpload(requests, key, started.upload_id, AbortSignal.timeout(cleanUpTimeoutMs)),
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
    putWithWrongChecksum: async () => {
      const checksum = Buffer.alloc(4);
      checksum.writeUInt32BE((crc32(bytes) ^ 1) >>> 0);
      const input = { ...target, ...options, Body: bytes, ChecksumCRC32: checksum.toString('base64') };
      await requests.send('PutObject', signal, (client, call) =>
        client.send(new PutObjectCommand(input), call),
      );
    },
    readMissing: async () => {
      const found = await headObject(requests, `${key}-missing`, signal);
      return found === 'unreadable' ? 'unreadable' : 'absent';
    },
    isReadBack: async () => {
      const found = await requests.send('GetObject', signal, async (client, call) => {
        const { Body } = await client.send(new GetObjectCommand(target), call);
        return Body?.transformToString();
      });
      return found === text;
    },
    upload: async (parts = [bytes]) => {
      const started = await createUpload(requests, key, { ...options, firstPartBytes: bytes.length }, signal);
      const sent = await Promise.all(parts.map((part, index) => started.putPart(index + 1, part, signal)));
      return uploadOf(
        started,
        sent.map(({ etag }) => etag),
      );
    },
    delete: async () => {
      await requests.send('DeleteObject', AbortSignal.timeout(cleanUpTimeoutMs), (client, call) =>
        client.send(new DeleteObjectCommand(target), call),
      );
    },
  };
}
