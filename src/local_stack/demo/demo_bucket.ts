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

/** Creates a bucket if it is missing. */
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

/** The files that a manifest references. */
export async function readManifestFiles(
  objectStore: ObjectStore,
  bucket: string,
  manifestKey: string,
): Promise<readonly ManifestFile[]> {
  const client = clientOf(objectStore);
  try {
    const response = await client.send(new GetObjectCommand({ Bucket: bucket, Key: manifestKey }));
    const manifest = JSON.parse((await response.Body?.transformToString()) ?? '{}') as {
      files?: ManifestFile[];
    };
    return manifest.files ?? [];
  } finally {
    client.destroy();
  }
}
