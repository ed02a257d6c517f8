import type { Settings } from '../../config/settings.ts';
import type { Destination } from '../destination.ts';
import type { DestinationContext, DestinationTestResult, DestinationType } from '../destination_type.ts';
import { unknownTraits } from '../store_traits.ts';
import { runTestSteps } from '../test_steps.ts';
import { abortMatchingUploads, abortUpload } from './abort_uploads.ts';
import { withCredentialsOf } from './shared_credentials.ts';
import { openObject } from './bucket_reader.ts';
import { bucketTestSteps, type StoreTraitsFound } from './bucket_test.ts';
import { circuitOf, probeS3 } from './circuit.ts';
import {
  configSchema,
  defaultFields,
  parseS3Config,
  secretFields,
  selectionOf,
  type S3Config,
} from './config.ts';
import { encodingOf } from './formats.ts';
import { findFile, isFromUpload, isTaken } from './head_object.ts';
import { fileKey, fileKeyPattern, manifestKey, rejectedKey } from './keys.ts';
import { getManifestObject, putManifestObject } from './manifest_object.ts';
import { createUpload, resumeUpload, type ObjectOptions } from './multipart.ts';
import { previewOf } from './preview.ts';
import { createS3Requests } from './requests.ts';
import { keysCollide, locationOf } from './key_collision.ts';
import { deleteObject, deleteIfUnchanged, putSmallObject } from './small_object.ts';
import { putWholeFile } from './whole_file.ts';

const mebibyte = 1024 * 1024;

/** Amazon S3 and compatible servers. */
export const s3: DestinationType<S3Config> = {
  name: 'S3',
  secretFields,
  defaultFields,
  configSchema,
  parseConfig: parseS3Config,
  selectionOf,
  locationOf,
  serverOf,
  keysCollide,
  withCredentialsOf,
  circuitOf,
  previewOf,
  open: openS3,
  probe: probeS3,
  test: testS3,
};

/** The host of a server other than AWS. */
function serverOf({ endpoint_url }: Readonly<Record<string, unknown>>): string {
  return typeof endpoint_url === 'string' ? new URL(endpoint_url).host : '';
}

function openS3(config: S3Config, context: DestinationContext): Destination {
  const requests = createS3Requests(config, context);
  const encryption = encryptionOf(config);
  const traits = context.traits ?? unknownTraits;
  const firstPartBytes = context.settings.EXPORTD_S3_PART_SIZE;
  const equalPartBytes = traits.equal_parts === true ? firstPartBytes : null;
  const fileOptions = { ...encryption, firstPartBytes, equalPartBytes };
  const manifestOptions = {
    ...encryption,
    ContentType: 'application/json',
    provesWrites: traits.conditional_put === true && traits.checksums !== false,
    testsConditions: traits.conditional_put === null,
  };
  return {
    encoding: encodingOf(config),
    maxFileBytes: config.max_file_size_mb === null ? null : config.max_file_size_mb * mebibyte,
    fileKey: (spec, file, extension) => fileKey(config.prefix, spec, file, extension),
    rejectedKey: (spec, file) => rejectedKey(config.prefix, spec, file),
    manifestKey: (spec) => manifestKey(config.prefix, spec),
    nameOf: (key) => `s3://${config.bucket_name}/${key}`,
    marksKeys: traits.conditional_put === false || traits.conditional_complete === false,
    writesWholeFiles: traits.conditional_put === true,
    firstPartBytes,
    equalPartBytes,
    isTaken: (key, signal) => isTaken(requests, key, signal),
    createUpload: ({ key, contentType, upload_token, resumable }, signal) =>
      createUpload(
        requests,
        key,
        { ...fileOptions, ContentType: contentType, upload_token, resumable },
        signal,
      ),
    putFile: (file, bytes, signal) => putWholeFile(requests, file, bytes, encryption, signal),
    findFile: (file, bytes, signal) => findFile(requests, file, bytes, signal),
    putObject: (key, contentType, bytes, signal) =>
      putSmallObject(requests, key, bytes, { ...encryption, ContentType: contentType }, signal),
    openObject: (key, signal) => openObject(requests, key, signal),
    deleteObject: (key, signal) => deleteObject(requests, key, signal),
    resumeUpload: (upload) => resumeUpload(requests, upload, firstPartBytes),
    abortUpload: (key, uploadId, signal) => abortUpload(requests, key, uploadId, signal),
    abortOrphanedUploads: (spec, file, extension, signal) =>
      abortMatchingUploads(requests, fileKeyPattern(config.prefix, spec, file, extension), signal),
    putManifest: (key, publication, known, signal) =>
      putManifestObject(requests, key, { publication, known }, manifestOptions, signal),
    getManifest: (key, signal) => getManifestObject(requests, key, signal),
    deleteManifest: (key, { etag }, signal) => deleteIfUnchanged(requests, key, etag, signal),
    isFromUpload: (upload, signal) => isFromUpload(requests, upload, signal),
    close: requests.close,
  };
}

/** Errors are reported without retries, because the caller waits for the result. */
async function testS3(config: S3Config, settings: Settings): Promise<DestinationTestResult> {
  const requests = createS3Requests(config, {
    settings: { ...settings, EXPORTD_S3_RETRY_BUDGET: 0 },
    onError: () => undefined,
  });
  try {
    const traits: StoreTraitsFound = { ...unknownTraits };
    const steps = await runTestSteps(settings.EXPORTD_DESTINATION_TEST_TIMEOUT, (signal) =>
      bucketTestSteps(requests, config.prefix, encryptionOf(config), traits, signal),
    );
    return { steps, traits };
  } finally {
    requests.close();
  }
}

function encryptionOf({ encryption, kms_key_id }: S3Config): ObjectOptions {
  if (encryption === null) return {};
  return { ServerSideEncryption: encryption, ...(kms_key_id === null ? {} : { SSEKMSKeyId: kms_key_id }) };
}
