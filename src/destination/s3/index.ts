import type { Destination, DestinationContext, DestinationType } from '../destination.ts';
import { parseS3Config, secretMembers, type S3Config } from './config.ts';
import { fileKey, manifestKey, rejectedKey } from './keys.ts';
import { putManifestObject, readManifestObject } from './manifest_object.ts';
import { abortUpload, beginUpload, resumeUpload, type ObjectOptions } from './multipart.ts';
import { createS3Requests } from './requests.ts';

/** Amazon S3 and every server that speaks its protocol. */
export const s3: DestinationType<S3Config> = {
  name: 'S3',
  secretMembers,
  parseConfig: parseS3Config,
  open: openS3,
};

function openS3(config: S3Config, context: DestinationContext): Destination {
  const requests = createS3Requests(config, context);
  const encryption = encryptionOf(config);
  const fileOptions = {
    ...encryption,
    ContentType: config.compression === 'gzip' ? 'application/gzip' : 'application/jsonl',
    firstPartBytes: context.settings.EXPORTD_PART_BYTES,
  };
  const manifestOptions = { ...encryption, ContentType: 'application/json' };
  return {
    encoding: { file_format: config.file_format, compression: config.compression },
    fileKey: (subject, place, extension) => fileKey(config.prefix, subject, place, extension),
    rejectedKey: (subject, generation) => rejectedKey(config.prefix, subject, generation),
    manifestKey: (subject) => manifestKey(config.prefix, subject),
    nameOf: (key) => `s3://${config.bucket_name}/${key}`,
    beginFile: (key, signal) => beginUpload(requests, key, fileOptions, signal),
    resumeFile: (upload) => resumeUpload(requests, upload, fileOptions.firstPartBytes),
    abandonFile: (key, uploadId, signal) => abortUpload(requests, key, uploadId, signal),
    putManifest: (key, manifest, signal) =>
      putManifestObject(requests, key, manifest, manifestOptions, signal),
    readManifest: (key, signal) => readManifestObject(requests, key, signal),
    close: requests.close,
  };
}

function encryptionOf({ encryption, kms_key_id }: S3Config): ObjectOptions {
  if (encryption === null) return {};
  return { ServerSideEncryption: encryption, ...(kms_key_id === null ? {} : { SSEKMSKeyId: kms_key_id }) };
}
