import type { Settings } from '../../config/settings.ts';
import type { Destination, DestinationContext, DestinationType } from '../destination.ts';
import type { TestStep } from '../test_result.ts';
import { runTestSteps } from '../test_steps.ts';
import { abortOrphanedUploads, abortUpload } from './abort_uploads.ts';
import { withCredentialsOf } from './shared_credentials.ts';
import { openObject } from './bucket_reader.ts';
import { bucketTestSteps } from './bucket_test.ts';
import { defaultFields, parseS3Config, secretFields, selectionOf, type S3Config } from './config.ts';
import { encodingOf } from './formats.ts';
import { fileKey, manifestKey, rejectedKey } from './keys.ts';
import { getManifestObject, putManifestObject } from './manifest_object.ts';
import { createUpload, isFromUpload, resumeUpload, type ObjectOptions } from './multipart.ts';
import { createS3Requests } from './requests.ts';
import { keysCollide } from './key_collision.ts';
import { deleteObject, deleteIfUnchanged, putSmallObject } from './small_object.ts';

const mebibyte = 1024 * 1024;

/** Amazon S3 and compatible servers. */
export const s3: DestinationType<S3Config> = {
  name: 'S3',
  secretFields,
  defaultFields,
  parseConfig: parseS3Config,
  selectionOf,
  serverOf: ({ endpoint_url }) => (typeof endpoint_url === 'string' ? new URL(endpoint_url).host : ''),
  keysCollide,
  withCredentialsOf,
  open: openS3,
  test: testS3,
};

function openS3(config: S3Config, context: DestinationContext): Destination {
  const requests = createS3Requests(config, context);
  const encryption = encryptionOf(config);
  const fileOptions = {
    ...encryption,
    firstPartBytes: context.settings.EXPORTD_S3_PART_SIZE,
  };
  const manifestOptions = { ...encryption, ContentType: 'application/json' };
  return {
    encoding: encodingOf(config),
    maxFileBytes: config.max_file_size_mb === null ? null : config.max_file_size_mb * mebibyte,
    fileKey: (spec, file, extension) => fileKey(config.prefix, spec, file, extension),
    rejectedKey: (spec, generation) => rejectedKey(config.prefix, spec, generation),
    manifestKey: (spec) => manifestKey(config.prefix, spec),
    nameOf: (key) => `s3://${config.bucket_name}/${key}`,
    createUpload: (key, contentType, signal) =>
      createUpload(requests, key, { ...fileOptions, ContentType: contentType }, signal),
    putObject: (key, contentType, bytes, signal) =>
      putSmallObject(requests, key, bytes, { ...encryption, ContentType: contentType }, signal),
    openObject: (key, signal) => openObject(requests, key, signal),
    deleteObject: (key, signal) => deleteObject(requests, key, signal),
    resumeUpload: (upload) => resumeUpload(requests, upload, fileOptions.firstPartBytes),
    abortUpload: (key, uploadId, signal) => abortUpload(requests, key, uploadId, signal),
    abortOrphanedUploads: (key, signal) => abortOrphanedUploads(requests, key, null, signal),
    putManifest: (key, manifest, signal) =>
      putManifestObject(requests, key, manifest, manifestOptions, signal),
    getManifest: (key, signal) => getManifestObject(requests, key, signal),
    deleteManifest: (key, { etag }, signal) => deleteIfUnchanged(requests, key, etag, signal),
    isFromUpload: (upload, signal) => isFromUpload(requests, upload, signal),
    close: requests.close,
  };
}

/** Errors are reported without retries, because the caller waits for the result. */
async function testS3(config: S3Config, settings: Settings): Promise<readonly TestStep[]> {
  const requests = createS3Requests(config, {
    settings: { ...settings, EXPORTD_S3_RETRY_BUDGET: 0 },
    onError: () => undefined,
  });
  try {
    return await runTestSteps(settings.EXPORTD_DESTINATION_TEST_TIMEOUT, (signal) =>
      bucketTestSteps(requests, config.prefix, encryptionOf(config), signal),
    );
  } finally {
    requests.close();
  }
}

function encryptionOf({ encryption, kms_key_id }: S3Config): ObjectOptions {
  if (encryption === null) return {};
  return { ServerSideEncryption: encryption, ...(kms_key_id === null ? {} : { SSEKMSKeyId: kms_key_id }) };
}
