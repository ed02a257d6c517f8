import { randomUUID } from 'node:crypto';
import { DestinationError } from '../destination.ts';
import { ToleratedError, type PlannedStep } from '../test_steps.ts';
import { conditionFailed } from './errors.ts';
import { testKey } from './keys.ts';
import type { ObjectOptions } from './multipart.ts';
import type { S3Requests } from './requests.ts';
import { createTestRequests, type TestRequests } from './test_requests.ts';

/**
 * The steps that show whether exports can be written to a bucket, and what they cannot do with the rights that they
 * have. They write one small object under the prefix and remove it.
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
        'The S3 server denied access to the bucket: the credentials may not list it, or are wrong. Without that right exports still work, as far as the next steps pass.',
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
        'The credentials may not read objects. Exports still work, but exportd cannot check what it wrote.',
        () => bucket.readsBack(),
      );
      if (!same) throw testError('The object was written but reads back as something else.');
    },
  },
  {
    name: 'conditional write',
    description: 'See objects and finished uploads refused that would replace another object',
    needs: ['write'],
    run: () => tryConditions(bucket),
  },
  {
    name: 'multipart list parts',
    description: 'Begin an upload in parts, list its parts and throw it away',
    needs: ['write'],
    run: () => tryUpload(bucket, bytes),
  },
  {
    name: 'delete',
    description: 'Delete the object',
    needs: ['write'],
    cleansUp: true,
    run: () =>
      ifDenied(
        'The credentials may not delete objects. Exports still work, but files that were replaced stay in the bucket, and so does the object of this test.',
        () => bucket.remove(),
      ),
  },
];

/** An ETag that no object has. */
const otherEtag = '"00000000000000000000000000000000"';

async function tryConditions(bucket: TestRequests): Promise<void> {
  await expectRefusal(() => bucket.put({ IfNoneMatch: '*' }));
  await expectRefusal(() => bucket.put({ IfMatch: otherEtag }));
  const upload = await bucket.upload();
  try {
    await expectRefusal(() => upload.complete({ IfNoneMatch: '*' }));
  } finally {
    // Whether uploads can be thrown away is the next step's to say.
    await upload.abort().catch(() => undefined);
  }
}

async function tryUpload(bucket: TestRequests, bytes: number): Promise<void> {
  const upload = await bucket.upload();
  const listed = await ifDenied(
    'The credentials may not list the parts of an upload. Exports still work, but a file that is interrupted starts anew.',
    () => upload.listParts(),
  ).finally(() => upload.abort().catch(() => undefined));
  if (listed.length !== 1 || listed[0] !== bytes)
    throw testError('The parts that the server lists of an upload are not those that were sent.');
  await ifDenied(
    'The credentials may not throw uploads away. Exports still work, but parts of runs that ended stay in the bucket until one of its rules removes them.',
    () => upload.abort(),
  );
}

async function expectRefusal(write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    if (conditionFailed.has(error.type)) return;
    if (error.type !== 'NotImplemented') throw error;
  }
  throw testError(
    'The S3 server knows no conditional writes. Exports still work, but the journal alone keeps two runs of an interval apart.',
  );
}

/** Does what a right is needed for that exports can do without; the message says what they lose. */
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
