/** What a config from a request will write, before it is complete. */
import { textEncoder } from '../encoding/encode_block.ts';
import type { EncodingOptions } from '../encoding/encoder.ts';
import { parquetEncoder } from '../encoding/parquet_encoder.ts';
import type { RowSelection } from '../source/row_selection.ts';
import { checkPrefix, configSchema, type DestinationSettings, maxFileBytesOf } from './config.ts';
import { encodingOf, fileFormatOf } from './formats.ts';
import { givenFields, parseFields } from './config_fields.ts';
import { fileKey, type KeySpec, manifestKey } from './keys.ts';
import { fileFolder } from './prefix.ts';

/** What an export will write, as far as its config alone determines it. */
export interface DestinationPreview {
  readonly selection: RowSelection;
  readonly encoding: EncodingOptions;
  /** Null when an interval has one file. */
  readonly maxFileBytes: number | null;
  /** The names of an interval's manifest and of its first file, such as `s3://bucket/key`. */
  namesOf(spec: KeySpec): { readonly manifest: string; readonly file: string };
}

/** The fields that decide about rows, files and keys. While a config is written, bucket and prefix may be missing. */
const previewFields = configSchema
  .pick({
    bucket_name: true,
    prefix: true,
    file_format: true,
    compression: true,
    max_file_size_mb: true,
    compression_level: true,
    bloom_filters: true,
    table_format: true,
    partition_by: true,
    on_bad_row: true,
    include_events: true,
    exclude_events: true,
    filters: true,
  })
  .partial({ bucket_name: true, prefix: true });

/**
 * Previews what a config from a request writes, before it is complete: fields that decide nothing about keys and rows,
 * such as credentials, may be missing.
 * @throws CommandRejected with the invalid field
 */
export function previewOf(
  config: unknown,
  { checkTarget }: Pick<DestinationSettings, 'checkTarget'> = {},
): DestinationPreview {
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
    partition_by,
  } = parsed;
  checkPrefix({ prefix, partition_by });
  const encoding = encodingOf({ ...parsed, ...fileFormatOf(parsed) });
  checkTarget?.({ ...parsed, prefix });
  const nameOf = (key: string): string => `s3://${bucket_name}/${key}`;
  const file = { generation: 1, range: null, file: max_file_size_mb === null ? null : 0, mark: null };
  return {
    selection: { include_events, exclude_events, filters },
    encoding,
    maxFileBytes: maxFileBytesOf({ max_file_size_mb }),
    namesOf: (spec) => ({
      manifest: nameOf(manifestKey(prefix, spec)),
      file: nameOf(fileKey(fileFolder({ prefix, partition_by }), spec, file, extensionOf(encoding))),
    }),
  };
}

const extensionOf = (encoding: EncodingOptions): string =>
  (encoding.file_format === 'Parquet' ? parquetEncoder(encoding, []) : textEncoder(encoding, [])).extension;
