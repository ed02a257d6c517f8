/** Completes an upload at a server, in a thread that a test can end. Posts the type of the error. */
import { parentPort, workerData } from 'node:worker_threads';
import { CompleteMultipartUploadCommand } from '@aws-sdk/client-s3';
import { DestinationError } from '../../src/destination/destination.ts';
import { sendCommand } from '../../src/destination/requests.ts';
import { bucketAt, requestsOf } from './bucket_requests.ts';

const { endpoint } = workerData as { readonly endpoint: string };
const requests = requestsOf(bucketAt(endpoint), {}, { EXPORTD_S3_RETRY_BUDGET: '0s' });
const input = { Bucket: 'bucket', Key: 'key', UploadId: 'upload', MultipartUpload: { Parts: [] } };
const { signal } = new AbortController();
await sendCommand(requests, CompleteMultipartUploadCommand, input, signal).then(
  () => parentPort?.postMessage('completed'),
  (error: unknown) => parentPort?.postMessage(error instanceof DestinationError ? error.type : String(error)),
);
requests.close();
