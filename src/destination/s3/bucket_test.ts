import { randomUUID } from 'node:crypto';
import { DestinationError } from '../destination.ts';
import { ToleratedError, type PlannedStep } from '../test_steps.ts';
import { conditionFailureCodes } from './errors.ts';
import { testKey } from './keys.ts';
import type { ObjectOptions } from './multipart.ts';
import type { S3Requests } from './requests.ts';
import { createTestRequests, type TestRequests } from './test_requests.ts';

/**
 * The steps of an S3 destination test. They check whether exports can be written to the bucket, and which optional
 * permissions are missing. They write one small object under the prefix and delete it.
 */
export function bucketTestSteps(
  requests: S3Requests,
  prefix: string,
  options: ObjectOptions,
  signal: AbortSignal,
): readonly PlannedStep[] {
  const text = `exportd tested this destination at ${new Date().toISOString()}.\n`;
  const object = { key: testKey(prefix, randomUUID()), text, options };
  return stepsOf(createTestRequests(requests, object, signal), Buffer.byteLength(text));
}

const stepsOf = (bucket: TestRequests, bytes: number): readonly PlannedStep[] => [
  {
    name: 'bucket',
    description: 'Find the bucket',
    needs: [],
    run: () =>
      ifDenied(
        'The S3 server denied listing the bucket: the credentials lack s3:ListBucket, or are wrong. Exports work without this permission if the next steps pass.',
        () => bucket.list(),
      ),
  },
  {
    name: 'write',
    description: 'Write an object under the prefix',
    needs: ['bucket'],
    run: () => bucket.put(),
  },
  {
    name: 'read back',
    description: 'Read the object back',
    needs: ['write'],
    run: async () => {
      const same = await ifDenied(
        'The credentials may not read objects (s3:GetObject). Exports work, but exportd cannot verify what it wrote.',
        () => bucket.isReadBack(),
      );
      if (!same) throw testError('The object was written, but its content differs when read back.');
    },
  },
  {
    name: 'conditional write',
    description: 'Check that the store refuses to overwrite an object',
    needs: ['write'],
    run: () => checkConditionalWrites(bucket),
  },
  {
    name: 'multipart list parts',
    description: 'Start a multipart upload, list its parts and abort it',
    needs: ['write'],
    run: () => checkUpload(bucket, bytes),
  },
  {
    name: 'delete',
    description: 'Delete the object',
    needs: ['write'],
    isCleanUp: true,
    run: () =>
      ifDenied(
        'The credentials may not delete objects (s3:DeleteObject). Exports work, but replaced files and the object of this test remain in the bucket.',
        () => bucket.delete(),
      ),
  },
];

/** An ETag that does not match any object. */
const otherEtag = '"00000000000000000000000000000000"';

async function checkConditionalWrites(bucket: TestRequests): Promise<void> {
  await expectConditionFailure(() => bucket.put({ IfNoneMatch: '*' }));
  await expectConditionFailure(() => bucket.put({ IfMatch: otherEtag }));
  const upload = await bucket.upload();
  try {
    await expectConditionFailure(() => upload.complete({ IfNoneMatch: '*' }));
  } finally {
    // The next step checks whether uploads can be aborted.
    await upload.abort().catch(() => undefined);
  }
}

async function checkUpload(bucket: TestRequests, bytes: number): Promise<void> {
  const upload = await bucket.upload();
  const listed = await ifDenied(
    'The credentials may not list the parts of an upload (s3:ListMultipartUploadParts). Exports work, but interrupted files are exported again instead of resumed.',
    () => upload.listParts(),
  ).finally(() => upload.abort().catch(() => undefined));
  if (listed.length !== 1 || listed[0] !== bytes)
    throw testError('The server lists other parts of the upload than were sent.');
  await ifDenied(
    'The credentials may not abort uploads (s3:AbortMultipartUpload). Exports work, but parts of ended runs remain in the bucket until a lifecycle rule deletes them.',
    () => upload.abort(),
  );
}

async function expectConditionFailure(write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    if (conditionFailureCodes.has(error.type)) return;
    if (error.type !== 'NotImplemented') throw error;
  }
  throw testError(
    'The S3 server does not support conditional writes. Exports work, but only the journal prevents two runs from overwriting each other.',
  );
}

/** Runs an operation whose permission is optional. If it is denied, the message says what exports lose. */
async function ifDenied<Result>(message: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DestinationError && error.type === 'AccessDenied') throw new ToleratedError(message);
    throw error;
  }
}

const testError = (message: string): DestinationError =>
  new DestinationError('TestFailed', message, { transient: false });
