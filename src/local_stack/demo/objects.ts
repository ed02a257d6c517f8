import { CreateBucketCommand, GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { ObjectStore } from '../servers/start_servers.ts';

const clientOf = ({ endpoint, region, accessKeyId, secretAccessKey }: ObjectStore): S3Client =>
  new S3Client({
    endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });

/** Makes the demo's bucket, unless an earlier start has. */
export async function ensureBucket(objectStore: ObjectStore, bucket: string): Promise<void> {
  const client = clientOf(objectStore);
  try {
    await client.send(new CreateBucketCommand({ Bucket: bucket }));
  } catch (error) {
    if ((error as Error).name !== 'BucketAlreadyOwnedByYou') throw error;
  } finally {
    client.destroy();
  }
}

interface ManifestFile {
  readonly key: string;
  readonly rows: number;
  readonly bytes: number;
}

/** The files that a manifest names. */
export async function filesOf(
  objectStore: ObjectStore,
  bucket: string,
  manifestKey: string,
): Promise<readonly ManifestFile[]> {
  const client = clientOf(objectStore);
  try {
    const answer = await client.send(new GetObjectCommand({ Bucket: bucket, Key: manifestKey }));
    const manifest = JSON.parse((await answer.Body?.transformToString()) ?? '{}') as {
      files?: ManifestFile[];
    };
    return manifest.files ?? [];
  } finally {
    client.destroy();
  }
}
