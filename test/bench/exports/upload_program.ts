import {
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { observeS3Requests, publishRequests } from '../../../src/destination/s3_outcomes.ts';

/**
 * The last program of the shell pipeline: uploads stdin as one object, like `aws s3 cp - s3://…`, with several parts of
 * 8 MiB in flight. Prints `{"bytes": …, "peak_memory_bytes": …, "s3_requests": …}`.
 */

const partBytes = 8 * 1024 * 1024;
const partsInFlight = 4;

const required = (name: string): string => {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set.`);
  return value;
};

const target = { Bucket: required('BUCKET'), Key: required('KEY') };
// Region and credentials come from the environment.
const client = new S3Client({
  endpoint: required('S3_ENDPOINT'),
  forcePathStyle: true,
  requestChecksumCalculation: 'WHEN_REQUIRED',
});
let s3_requests = 0;
observeS3Requests(() => (s3_requests += 1));
publishRequests(client);
const { UploadId } = await client.send(new CreateMultipartUploadCommand(target));

const parts: CompletedPart[] = [];
const inFlight = new Set<Promise<void>>();
let gathered: Buffer[] = [];
let gatheredBytes = 0;
let bytes = 0;

async function send(): Promise<void> {
  const part: CompletedPart = { PartNumber: parts.length + 1 };
  const Body = Buffer.concat(gathered, gatheredBytes);
  gathered = [];
  gatheredBytes = 0;
  parts.push(part);
  while (inFlight.size >= partsInFlight) await Promise.race(inFlight);
  const sending = client
    .send(new UploadPartCommand({ ...target, UploadId, PartNumber: part.PartNumber, Body }))
    .then(({ ETag }) => {
      part.ETag = ETag;
      inFlight.delete(sending);
    });
  inFlight.add(sending);
}

for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
  gathered.push(chunk);
  gatheredBytes += chunk.length;
  bytes += chunk.length;
  if (gatheredBytes >= partBytes) await send();
}
if (gatheredBytes > 0 || parts.length === 0) await send();
await Promise.all(inFlight);
await client.send(
  new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload: { Parts: parts } }),
);
const peak_memory_bytes = process.resourceUsage().maxRSS * 1_024;
process.stdout.write(JSON.stringify({ bytes, peak_memory_bytes, s3_requests }));
