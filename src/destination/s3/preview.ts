import type { EncodingOptions } from '../../encoding/encoder.ts';
import { parquetEncoder } from '../../encoding/parquet_encoder.ts';
import { textEncoder } from '../../encoding/text_encoder.ts';
import { givenFields, parseFields } from '../config_fields.ts';
import type { DestinationPreview } from '../destination_type.ts';
import { checkPrefix, configSchema } from './config.ts';
import { encodingOf, fileFormatOf } from './formats.ts';
import { fileKey, manifestKey } from './keys.ts';

const mebibyte = 1024 * 1024;

/** The fields that decide about rows, files and keys. While a config is written, bucket and prefix may be missing. */
const previewFields = configSchema
  .pick({
    ...{ bucket_name: true, prefix: true, file_format: true, compression: true, max_file_size_mb: true },
    ...{
      compression_level: true,
      bloom_filters: true,
      on_bad_row: true,
      include_events: true,
      exclude_events: true,
      filters: true,
    },
  })
  .partial({ bucket_name: true, prefix: true });

/** Previews what an S3 config writes, before it is complete. @throws CommandRejected with the invalid field */
export function previewOf(config: unknown): DestinationPreview {
  const given = Object.entries(givenFields(config)).filter(
    ([field, value]) => field in previewFields.shape && value !== '',
  );
  const parsed = parseFields(previewFields, Object.fromEntries(given));
  const {
    bucket_name = '…',
    prefix = '',
    max_file_size_mb,
    include_events,
    exclude_events,
    filters,
  } = parsed;
  checkPrefix({ prefix });
  const encoding = encodingOf({ ...parsed, ...fileFormatOf(parsed) });
  const nameOf = (key: string): string => `s3://${bucket_name}/${key}`;
  const file = { generation: 1, range: null, file: max_file_size_mb === null ? null : 0, mark: null };
  return {
    selection: { include_events, exclude_events, filters },
    encoding,
    maxFileBytes: max_file_size_mb === null ? null : max_file_size_mb * mebibyte,
    namesOf: (spec) => ({
      manifest: nameOf(manifestKey(prefix, spec)),
      file: nameOf(fileKey(prefix, spec, file, extensionOf(encoding))),
    }),
  };
}

const extensionOf = (encoding: EncodingOptions): string =>
  (encoding.file_format === 'Parquet' ? parquetEncoder(encoding, []) : textEncoder(encoding, [])).extension;
