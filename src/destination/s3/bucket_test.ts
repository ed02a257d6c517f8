import { randomUUID } from 'node:crypto';
import { DestinationError } from '../destination.ts';
import { ToleratedError, type PlannedStep } from '../test_steps.ts';
import type { StoreTraits } from '../store_traits.ts';
import { conditionFailureCodes, partRefusals } from './errors.ts';
import { testKey } from './keys.ts';
import type { ObjectOptions } from './multipart.ts';
import type { S3Requests } from './requests.ts';
import { createTestRequests, type TestRequests } from './test_requests.ts';

/** Traits that the steps of a test have found so far. */
export type StoreTraitsFound = { -readonly [Trait in keyof StoreTraits]: StoreTraits[Trait] };

/**
 * The steps of an S3 destination test. They check whether exports can be written to the bucket, which optional
 * permissions are missing, and how the store behaves. They write one object under the prefix and delete it.
 * @param traits receives what the steps find out of the store
 */
export function bucketTestSteps(
  requests: S3Requests,
  prefix: string,
  options: ObjectOptions,
  traits: StoreTraitsFound,
  signal: AbortSignal,
): readonly PlannedStep[] {
  const text = `exportd tested this destination at ${new Date().toISOString()}.\n`;
  const object = { key: testKey(prefix, randomUUID()), text, options };
  return stepsOf(createTestRequests(requests, object, signal), Buffer.byteLength(text), traits, signal);
}

const stepsOf = (
  bucket: TestRequests,
  bytes: number,
  traits: StoreTraitsFound,
  signal: AbortSignal,
): readonly PlannedStep[] => [
  {
    name: 'bucket',
    description: 'Find the bucket',
    needs: [],
    run: async () => {
      await ifDenied(
        'The S3 server denied listing the bucket: the credentials lack s3:ListBucket, or are wrong. Exports work without this permission if the next steps pass.',
        () => bucket.list(),
      );
      return undefined;
    },
  },
  {
    name: 'write',
    description: 'Write an object under the prefix',
    needs: ['bucket'],
    run: async () => {
      await bucket.put();
      traits.checksums = await refusesWrongChecksum(bucket);
      return traits.checksums
        ? 'The store refuses bytes that differ from their checksum.'
        : 'The store does not check the checksums of objects.';
    },
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
      traits.missing_key = (await bucket.readMissing()) === 'absent' ? 'not_found' : 'denied';
      return traits.missing_key === 'not_found'
        ? 'The response to reading a missing object is 404.'
        : 'The response to reading a missing object is 403, because the credentials lack s3:ListBucket. exportd takes it as absent or unreadable.';
    },
  },
  {
    name: 'conditional write',
    description: 'Check that the store refuses to overwrite an object',
    needs: ['write'],
    run: () => checkConditionalWrites(bucket, traits),
  },
  {
    name: 'multipart list parts',
    description: 'Start a multipart upload, list its parts and abort it',
    needs: ['write'],
    run: () => checkUpload(bucket, bytes),
  },
  {
    name: 'parts',
    description: 'Complete a multipart upload with parts of different sizes',
    needs: ['write', 'multipart list parts'],
    run: () => checkPartSizes(bucket, traits, signal),
  },
  {
    name: 'delete',
    description: 'Delete the object',
    needs: ['write'],
    isCleanUp: true,
    run: async () => {
      await ifDenied(
        'The credentials may not delete objects (s3:DeleteObject). Exports work, but replaced files and the object of this test remain in the bucket.',
        () => bucket.delete(),
      );
      return undefined;
    },
  },
];

/** An ETag that does not match any object. */
const otherEtag = '"00000000000000000000000000000000"';

async function checkConditionalWrites(bucket: TestRequests, traits: StoreTraitsFound): Promise<string> {
  traits.conditional_put = await refuses(() => bucket.put({ IfNoneMatch: '*' }));
  const replaces = await refuses(() => bucket.put({ IfMatch: otherEtag }));
  const upload = await bucket.upload();
  try {
    traits.conditional_complete = await refuses(() => upload.complete({ IfNoneMatch: '*' }));
  } finally {
    // The next step checks whether uploads can be aborted.
    await upload.abort().catch(() => undefined);
  }
  if (!traits.conditional_put || !traits.conditional_complete)
    throw testError(
      'The S3 server does not support conditional writes. Exports work, and the keys of their files have a random mark, so that no file is overwritten. Only the journal prevents two runs from overwriting a manifest.',
    );
  if (!replaces)
    throw testError(
      'The S3 server ignores If-Match. Exports work, but only the journal prevents two runs from overwriting a manifest.',
    );
  return 'The store refuses to overwrite objects. A file of one part is written in one request.';
}

/** The smallest size that S3 accepts for a part that is not the last. */
const minPartBytes = 5 * 1024 * 1024;

/** Sends two parts of different sizes, and two of one size if the store refuses these; a last part may be shorter. */
async function checkPartSizes(
  bucket: TestRequests,
  traits: StoreTraitsFound,
  signal: AbortSignal,
): Promise<string> {
  const completes = async (second: number): Promise<boolean> => {
    const upload = await bucket.upload([minPartBytes, second, 1].map((size) => Buffer.alloc(size)));
    try {
      await upload.complete({});
      return true;
    } catch (error) {
      await upload.abort().catch(() => undefined);
      if (error instanceof DestinationError && partRefusals.has(error.type)) return false;
      throw error;
    }
  };
  try {
    const differ = await completes(minPartBytes + 1);
    if (!differ && !(await completes(minPartBytes)))
      throw testError(
        'The S3 server refuses to complete uploads with several parts. Files of one part work.',
      );
    traits.equal_parts = !differ;
    // Replaces the large object, in case it may not be deleted.
    await bucket.put();
    return differ
      ? 'The store accepts parts of different sizes.'
      : 'The store requires parts of one size. Files are cut accordingly.';
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new ToleratedError(
      'The parts did not arrive in time, so it is unknown whether the store accepts parts of different sizes. Exports find it out with the first large file.',
    );
  }
}

async function checkUpload(bucket: TestRequests, bytes: number): Promise<undefined> {
  const upload = await bucket.upload();
  let listed;
  try {
    listed = await ifDenied(
      'The credentials may not list the parts of an upload (s3:ListMultipartUploadParts). Exports work, but interrupted files are exported again instead of resumed.',
      () => upload.listParts(),
    );
  } finally {
    await upload.abort().catch(() => undefined);
  }
  if (listed.length !== 1 || listed[0] !== bytes)
    throw testError('The server lists other parts of the upload than were sent.');
  await ifDenied(
    'The credentials may not abort uploads (s3:AbortMultipartUpload). Exports work, but parts of ended runs remain in the bucket until a lifecycle rule deletes them.',
    () => upload.abort(),
  );
}

/** Whether a write is refused because of its condition. */
async function refuses(write: () => Promise<void>): Promise<boolean> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    if (conditionFailureCodes.has(error.type)) return true;
    if (error.type !== 'NotImplemented') throw error;
  }
  return false;
}

/** Whether the store checks checksums. Servers name the error differently. */
async function refusesWrongChecksum(bucket: TestRequests): Promise<boolean> {
  try {
    await bucket.putWithWrongChecksum();
    return false;
  } catch (error) {
    if (!(error instanceof DestinationError) || error.transient) throw error;
    return error.type !== 'NotImplemented';
  }
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
