import { randomUUID } from 'node:crypto';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { fromSetUp } from './environment.ts';

/** A bucket that one test file uses alone. */
export interface TestBucket {
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly bucket: string;
  readonly client: S3Client;
}

/** Names a bucket without creating it. */
export function planBucket(): TestBucket {
  const endpoint = fromSetUp('EXPORTD_TEST_S3_ENDPOINT');
  const accessKeyId = fromSetUp('EXPORTD_TEST_S3_ACCESS_KEY_ID');
  const secretAccessKey = fromSetUp('EXPORTD_TEST_S3_SECRET_ACCESS_KEY');
  const region = 'us-east-1';
  const client = new S3Client({
    endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  return { endpoint, region, accessKeyId, secretAccessKey, bucket: `test-${randomUUID()}`, client };
}

/** Creates a planned bucket, empty. The global tear-down deletes it with the server's data. */
export async function createPlanned({ client, bucket }: TestBucket): Promise<void> {
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
}

/** Creates an empty bucket. */
export async function createBucket(): Promise<TestBucket> {
  const bucket = planBucket();
  await createPlanned(bucket);
  return bucket;
}
