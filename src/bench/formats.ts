import type { ScratchStack } from './scratch_stack.ts';
import { readSettings } from '../config/settings.ts';
import { parseS3Config } from '../destination/config.ts';
import { CommandRejected } from '../domain/errors.ts';

/** The formats that are measured by default: a file format and, after a plus sign, its compression. */
export const defaultFormats = [
  'JSONLines+gzip',
  'JSONLines',
  'JSONLines+zstd',
  'CSV+gzip',
  'Parquet+zstd',
  'Parquet+snappy',
] as const;

/** A destination in the scratch bucket with a format. */
export function destinationFor(format: string, { objectStore, bucket }: ScratchStack) {
  const [file_format, compression = null] = format.split('+');
  return {
    type: 'S3',
    config: {
      bucket_name: bucket,
      region: objectStore.region,
      prefix: format.toLowerCase().replace('+', '-'),
      endpoint_url: objectStore.endpoint,
      aws_access_key_id: objectStore.accessKeyId,
      aws_secret_access_key: objectStore.secretAccessKey,
      file_format,
      compression,
    },
  };
}

/** Why exportd does not support a format; undefined when it does. */
export function unsupportedReason(format: string, stack: ScratchStack): string | undefined {
  const { config } = destinationFor(format, stack);
  const settings = readSettings({
    DATABASE_URL: stack.databaseUrl,
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
  });
  try {
    parseS3Config(config, settings);
    return undefined;
  } catch (error) {
    if (error instanceof CommandRejected) return error.message;
    throw error;
  }
}
