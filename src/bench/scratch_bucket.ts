import { randomUUID } from 'node:crypto';
import {
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  ListObjectsV2Command,
  S3Client,
} from '@aws-sdk/client-s3';
import type { ObjectStore } from '../local_stack/servers/start_servers.ts';

/** A bucket of a benchmark. */
export interface ScratchBucket {
  readonly name: string;
  /** The keys of all its objects. */
  readonly keys: () => Promise<ReadonlySet<string>>;
  /** Deletes its objects. */
  readonly empty: () => Promise<void>;
  /** Deletes it with all objects. */
  readonly remove: () => Promise<void>;
}

/** Creates an empty bucket. */
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
  const keys = async () => {
    const found = new Set<string>();
    let ContinuationToken: string | undefined;
    do {
      const page = await client.send(new ListObjectsV2Command({ Bucket: name, ContinuationToken }));
      for (const { Key } of page.Contents ?? []) found.add(Key ?? '');
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
    return found;
  };
  const empty = async () => {
    for (let left = await keys(); left.size > 0; left = await keys())
      for (const Key of left) await client.send(new DeleteObjectCommand({ Bucket: name, Key }));
  };
  const remove = async () => {
    await empty();
    await client.send(new DeleteBucketCommand({ Bucket: name }));
    client.destroy();
  };
  return { name, keys, empty, remove };
}
