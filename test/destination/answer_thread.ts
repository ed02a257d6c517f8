/** Completes an upload at a server, in a thread that a test can end. Posts the type of the error. */
import { parentPort, workerData } from 'node:worker_threads';
import { CompleteMultipartUploadCommand } from '@aws-sdk/client-s3';
import { parseS3Config } from '../../src/destination/config.ts';
import { DestinationError } from '../../src/destination/destination.ts';
import { createS3Requests, sendCommand } from '../../src/destination/requests.ts';
import { configOf, s3Settings } from './bucket_requests.ts';

const { endpoint } = workerData as { readonly endpoint: string };
const settings = s3Settings({ EXPORTD_S3_RETRY_BUDGET: '0s' });
const bucket = { bucket: 'bucket', endpoint, accessKeyId: 'key', secretAccessKey: 'secret' };
const requests = createS3Requests(parseS3Config(configOf(bucket as never), settings), {
  settings,
  onError: () => undefined,
});
const input = { Bucket: 'bucket', Key: 'key', UploadId: 'upload', MultipartUpload: { Parts: [] } };
const { signal } = new AbortController();
await sendCommand(requests, CompleteMultipartUploadCommand, input, signal).then(
  () => parentPort?.postMessage('completed'),
  (error: unknown) => parentPort?.postMessage(error instanceof DestinationError ? error.type : String(error)),
);
requests.close();
