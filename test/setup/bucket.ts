import { randomUUID } from 'node:crypto';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';

/** A bucket of its own on the S3 server that the global set-up started. */
export interface TestBucket {
  readonly endpoint: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly bucket: string;
  readonly client: S3Client;
}

function required(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: the global set-up starts the servers.`);
  return value;
}

/** Makes a fresh bucket. */
export async function createBucket(): Promise<TestBucket> {
  const endpoint = required('EXPORTD_TEST_S3_ENDPOINT');
  const accessKeyId = required('EXPORTD_TEST_S3_ACCESS_KEY_ID');
  const secretAccessKey = required('EXPORTD_TEST_S3_SECRET_ACCESS_KEY');
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
    requestChecksumCalculation: 'WHEN_REQUIRED',
  });
  const bucket = `test-${randomUUID()}`;
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  return { endpoint, accessKeyId, secretAccessKey, bucket, client };
}
