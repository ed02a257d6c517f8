import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import type { ScratchStack } from '../scratch_stack.ts';

/** The keys of all objects in the scratch bucket. */
export async function objectKeys({ objectStore, bucket }: ScratchStack): Promise<ReadonlySet<string>> {
  const { endpoint, region, accessKeyId, secretAccessKey } = objectStore;
  const client = new S3Client({
    endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: true,
  });
  try {
    const keys = new Set<string>();
    let ContinuationToken: string | undefined;
    do {
      const page = await client.send(new ListObjectsV2Command({ Bucket: bucket, ContinuationToken }));
      for (const { Key } of page.Contents ?? []) keys.add(Key ?? '');
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
    return keys;
  } finally {
    client.destroy();
  }
}
