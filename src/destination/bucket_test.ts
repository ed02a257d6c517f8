import { randomUUID } from 'node:crypto';
import { crc32 } from 'node:zlib';
import {
  CompleteMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { safeText } from '../config/bounds.ts';
import type { Settings } from '../config/settings.ts';
import type { S3Config } from './config.ts';
import { DestinationError, type FileUpload } from './destination.ts';
import { conditionFailureCodes, damagedBodyCodes, partRefusals } from './errors.ts';
import { testKey } from './keys.ts';
import { abortUpload, createUpload, listParts } from './multipart.ts';
import { createS3Requests, type S3Requests, sendCommand } from './requests.ts';
import { collectObject } from './responses.ts';
import { type StoreTraits, unknownTraits } from './store_traits.ts';
import { deleteVersion } from './delete_object.ts';
import { headObject } from './object_headers.ts';
import type { ObjectOptions } from './write_object.ts';
import { encryptionOf } from './encryption.ts';

/** The result of a step of a destination test. The message is for the owner of the export. */
interface TestResult {
  readonly status: 'Passed' | 'Failed' | 'Skipped';
  readonly message: string | null;
  /** How the store behaves, where the step found out something about it. */
  readonly details?: string;
}

/** A step of a destination test in API responses. */
export interface TestStep {
  readonly name: string;
  readonly description: string;
  readonly result: TestResult;
}

/** A step of a destination test. */
interface PlannedStep {
  readonly name: string;
  readonly description: string;
  /** Names of earlier steps that this one depends on. */
  readonly needs: readonly string[];
  /** Whether it cleans up after other steps. It runs after the timeout too; its requests have their own timeout. */
  readonly isCleanUp?: true;
  /**
   * Returns how the store behaves, if it found out something.
   * @throws DestinationError whose message says what is wrong and what it means for exports
   */
  readonly run: (test: RunningTest) => Promise<string | undefined>;
}

/** What the steps of a test share. */
interface RunningTest {
  readonly bucket: TestRequests;
  /** The size of the object that the test writes. */
  readonly bytes: number;
  /** Receives what the steps find out of the store. */
  readonly traits: StoreTraitsFound;
  /** Is aborted after the timeout of the test. */
  readonly signal: AbortSignal;
}

/** A problem that exports can work around: the step fails, but dependent steps run. */
class ToleratedError extends Error {
  override readonly name = 'ToleratedError';
}

const skipped = { status: 'Skipped', message: null } as const;

/**
 * Runs steps in order, up to one and those that clean up after them. A step is skipped when a step that it needs has failed or
 * was not run. After the timeout only clean-up steps run.
 */
async function runTestSteps(test: RunningTest, last: number): Promise<readonly TestStep[]> {
  const { signal } = test;
  const usableSteps = new Set<string>();
  const steps: TestStep[] = [];
  for (const [index, { name, description, needs, isCleanUp, run }] of plannedSteps.entries()) {
    const isWanted = isCleanUp ?? (index <= last && !signal.aborted);
    const canRun = isWanted && needs.every((need) => usableSteps.has(need));
    const { usable, ...result } = canRun
      ? await runStep(() => run(test), signal)
      : { ...skipped, usable: false };
    if (usable) usableSteps.add(name);
    steps.push({ name, description, result });
  }
  return steps;
}

async function runStep(
  run: () => Promise<string | undefined>,
  deadline: AbortSignal,
): Promise<TestResult & { readonly usable: boolean }> {
  const failed = (message: string, usable: boolean) =>
    ({ status: 'Failed', message: safeText(message), usable }) as const;
  try {
    const details = await run();
    return { status: 'Passed', message: null, ...(details !== undefined && { details }), usable: true };
  } catch (error) {
    if (error instanceof ToleratedError) return failed(error.message, true);
    if (error instanceof DestinationError) return failed(error.messageForOwner, false);
    // Cleaning up has a time limit of its own.
    const isTimeout = error instanceof DOMException && error.name === 'TimeoutError';
    if (!deadline.aborted && !isTimeout) throw error;
    return failed(
      `The destination did not respond in time${deadline.aborted ? ' (EXPORTD_DESTINATION_TEST_TIMEOUT)' : ''}; check its address and whether it is running.`,
      false,
    );
  }
}

/** A condition of a write. */
interface WriteCondition {
  readonly IfNoneMatch?: string;
  readonly IfMatch?: string;
}

/** An incomplete upload whose parts were sent. */
interface TestUpload {
  /** The size of each uploaded part in bytes. */
  listParts(): Promise<readonly number[]>;
  complete(condition: WriteCondition): Promise<void>;
  abort(): Promise<void>;
}

/** The requests of a destination test, all for one object. All methods throw DestinationError. */
interface TestRequests {
  list(): Promise<void>;
  put(condition?: WriteCondition): Promise<void>;
  /** Whether the bucket has given the objects that were written a version. */
  isVersioned(): boolean;
  /** Writes the object with a wrong checksum, which a server may refuse. */
  putWithWrongChecksum(): Promise<void>;
  /** Whether the content of the object is what was written. */
  isReadBack(): Promise<boolean>;
  /** Whether a key that nothing was written to is absent or unreadable. */
  readMissing(): Promise<'absent' | 'unreadable'>;
  /** Starts an upload and sends its parts: one with the content by default. */
  upload(parts?: readonly Buffer[]): Promise<TestUpload>;
  /** Deletes the object with all versions that were written. @returns whether no version stays */
  delete(): Promise<boolean>;
}

/** Timeout in milliseconds for deleting what a test wrote; it applies after the test's own timeout too. */
const cleanUpTimeoutMs = 3_000;

/** Creates the requests for the object `key` with the content `text`. Each is sent once. */
function createTestRequests(
  requests: S3Requests,
  object: { readonly key: string; readonly text: string; readonly options: ObjectOptions },
  signal: AbortSignal,
): TestRequests {
  const { key, text, options } = object;
  const target = { Bucket: requests.bucket, Key: key };
  const bytes = Buffer.from(text);
  const uploadOf = (started: FileUpload, etags: readonly string[]): TestUpload => ({
    listParts: async () =>
      (await listParts(requests, key, started.upload_id, signal)).map((part) => part.bytes),
    complete: async (condition) => {
      const Parts = etags.map((ETag, index) => ({ PartNumber: index + 1, ETag }));
      const MultipartUpload = { Parts };
      const input = { ...target, ...condition, UploadId: started.upload_id, MultipartUpload };
      written(await sendCommand(requests, CompleteMultipartUploadCommand, input, signal));
    },
    abort: () => abortUpload(requests, key, started.upload_id, AbortSignal.timeout(cleanUpTimeoutMs)),
  });
  const versions = new Set<string>();
  const written = ({ VersionId }: { readonly VersionId?: string | undefined }): void => {
    if (VersionId !== undefined) versions.add(VersionId);
  };
  return {
    isVersioned: () => versions.size > 0,
    list: async () => {
      const input = { Bucket: requests.bucket, Prefix: key, MaxKeys: 1 };
      await sendCommand(requests, ListObjectsV2Command, input, signal);
    },
    put: async (condition = {}) => {
      const input = { ...target, ...options, ...condition, Body: bytes };
      written(await sendCommand(requests, PutObjectCommand, input, signal));
    },
    putWithWrongChecksum: async () => {
      const checksum = Buffer.alloc(4);
      checksum.writeUInt32BE((crc32(bytes) ^ 1) >>> 0);
      const input = { ...target, ...options, Body: bytes, ChecksumCRC32: checksum.toString('base64') };
      await sendCommand(requests, PutObjectCommand, input, signal);
    },
    readMissing: async () => {
      const found = await headObject(requests, `${key}-missing`, signal);
      return found === 'unreadable' ? 'unreadable' : 'absent';
    },
    isReadBack: async () => {
      const found = await requests.send('GetObject', signal, async (client, call) => {
        const output = await client.send(new GetObjectCommand(target), call);
        const bound = { maxBytes: bytes.length, silenceMs: requests.silenceMs };
        return collectObject(output, bound, differsWhenRead);
      });
      return found.equals(bytes);
    },
    upload: async (parts = [bytes]) => {
      const started = await createUpload(requests, key, { ...options, firstPartBytes: bytes.length }, signal);
      const sent = await Promise.all(parts.map((part, index) => started.putPart(index + 1, part, signal)));
      return uploadOf(
        started,
        sent.map(({ etag }) => etag),
      );
    },
    delete: async () => {
      const timeout = AbortSignal.timeout(cleanUpTimeoutMs);
      for (const version of versions)
        if (!(await deleteVersion(requests, key, version, timeout))) {
          await sendCommand(requests, DeleteObjectCommand, target, timeout);
          return false;
        }
      if (versions.size === 0) await sendCommand(requests, DeleteObjectCommand, target, timeout);
      return true;
    },
  };
}

/** Traits that the steps of a test have found so far. */
type StoreTraitsFound = { -readonly [Trait in keyof StoreTraits]: StoreTraits[Trait] };

/**
 * Tests a destination step by step, and finds out how its store behaves. Deletes what it wrote, if permitted. Errors are
 * reported without retries, because the caller waits for the result.
 * @param last the index of the last step that is run, besides clean-up; by default all are
 */
export async function testS3(
  config: S3Config,
  settings: Settings,
  last = plannedSteps.length,
): Promise<{ readonly steps: readonly TestStep[]; readonly traits: StoreTraits }> {
  const traits: StoreTraitsFound = { ...unknownTraits };
  const requests = createS3Requests(config, {
    settings: { ...settings, EXPORTD_S3_RETRY_BUDGET: 0 },
    onError: () => undefined,
    onTraits: (found) => {
      Object.assign(traits, found);
      return Promise.resolve();
    },
  });
  try {
    const text = `exportd tested this destination at ${new Date().toISOString()}.\n`;
    const object = { key: testKey(config.prefix, randomUUID()), text, options: encryptionOf(config) };
    const signal = AbortSignal.timeout(settings.EXPORTD_DESTINATION_TEST_TIMEOUT);
    const bucket = createTestRequests(requests, object, signal);
    const steps = await runTestSteps({ bucket, bytes: Buffer.byteLength(text), traits, signal }, last);
    return { steps, traits };
  } finally {
    requests.close();
  }
}

/**
 * The steps of an S3 destination test. They check whether exports can be written to the bucket, which optional
 * permissions are missing, and how the store behaves. They write one object under the prefix and delete it.
 */
const plannedSteps: readonly PlannedStep[] = [
  {
    name: 'bucket',
    description: 'Find the bucket',
    needs: [],
    run: async ({ bucket }) => {
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
    run: async ({ bucket, traits }) => {
      await bucket.put();
      traits.versioned = bucket.isVersioned();
      traits.checksums = await refusesWrongChecksum(bucket);
      return [
        traits.checksums
          ? 'The store refuses bytes that differ from their checksum.'
          : 'The store does not check the checksums of objects.',
        ...(traits.demands_checksums === true ? ['It refuses bytes without a checksum.'] : []),
        ...(traits.versioned
          ? [
              'The bucket is versioned: what exportd overwrites stays as a version until a lifecycle rule deletes it.',
            ]
          : []),
      ].join(' ');
    },
  },
  {
    name: 'read back',
    description: 'Read the object back',
    needs: ['write'],
    run: async ({ bucket, traits }) => {
      const same = await ifDenied(
        'The credentials may not read objects (s3:GetObject). Exports work, but exportd cannot verify what it wrote.',
        () => bucket.isReadBack(),
      );
      if (!same) throw differsWhenRead();
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
    run: ({ bucket, traits }) => checkConditionalWrites(bucket, traits),
  },
  {
    name: 'multipart list parts',
    description: 'Start a multipart upload, list its parts and abort it',
    needs: ['write'],
    run: ({ bucket, bytes }) => checkUpload(bucket, bytes),
  },
  {
    name: 'parts',
    description: 'Complete a multipart upload with parts of different sizes',
    needs: ['write', 'multipart list parts'],
    run: ({ bucket, traits, signal }) => checkPartSizes(bucket, traits, signal),
  },
  {
    name: 'delete',
    description: 'Delete the object',
    needs: ['write'],
    isCleanUp: true,
    run: async ({ bucket }) => {
      const isDeleted = await ifDenied(
        'The credentials may not delete objects (s3:DeleteObject). Exports work, but replaced files and the object of this test remain in the bucket.',
        () => bucket.delete(),
      );
      if (!isDeleted)
        throw new ToleratedError(
          'The bucket is versioned, and the versions of objects may not be deleted (s3:DeleteObjectVersion, or object lock). Exports work, but what exportd deletes, also rows that you want to be gone, stays in the bucket as a version until a lifecycle rule deletes it.',
        );
      return bucket.isVersioned() ? 'Its versions were deleted too.' : undefined;
    },
  },
];

/** What the steps are called, in order. */
export const testSteps = plannedSteps.map(({ name, description }) => ({ name, description }));

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
    if (!(error instanceof DestinationError)) throw error;
    if (damagedBodyCodes.has(error.type)) return true;
    if (error.transient) throw error;
    return error.type !== 'NotImplemented';
  }
}

/** Runs an operation whose permission is optional. If it is denied, the message says what exports lose. */
async function ifDenied<Result>(message: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DestinationError && error.type === 'AccessDenied')
      throw new ToleratedError(error.withServerText(message));
    throw error;
  }
}

const differsWhenRead = (): DestinationError =>
  testError('The object was written, but its content differs when read back.');

const testError = (message: string): DestinationError =>
  new DestinationError('TestFailed', message, { transient: false });
