import { randomUUID } from 'node:crypto';
import {
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  ListObjectsV2Command,
  S3Client,
} from '@aws-sdk/client-s3';
import type { ObjectStore } from '../embedded/servers/start_servers.ts';

/** A bucket for one bench. */
export interface ScratchBucket {
  readonly name: string;
  /** Removes its objects. */
  readonly empty: () => Promise<void>;
  /** Removes it with all objects. */
  readonly remove: () => Promise<void>;
}

/** Makes an empty bucket. */
export async function createScratchBucket(objectStore: ObjectStore): Promise<ScratchBucket> {
  const { endpoint, region, accessKeyId, secretAccessKey } = objectStore;
  const client = new S3Client({
    endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  const name = `exportd-bench-${randomUUID()}`;
  await client.send(new CreateBucketCommand({ Bucket: name }));
  const empty = async () => {
    for (;;) {
      const { Contents } = await client.send(new ListObjectsV2Command({ Bucket: name }));
      if (Contents === undefined || Contents.length === 0) return;
      for (const { Key } of Contents) await client.send(new DeleteObjectCommand({ Bucket: name, Key }));
    }
  };
  const remove = async () => {
    await empty();
    await client.send(new DeleteBucketCommand({ Bucket: name }));
    client.destroy();
  };
  return { name, empty, remove };
}
