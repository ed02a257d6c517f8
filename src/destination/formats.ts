import { levelsOf } from '../encoding/compression.ts';
import {
  type EncodingOptions,
  type ParquetCompression,
  parquetCompressions,
  type TextCompression,
  textCompressions,
  type TextFileFormat,
  textFileFormats,
} from '../encoding/encoder.ts';
import { formatNames, rejectField } from './config_fields.ts';

const allCompressions: readonly string[] = [...textCompressions, ...parquetCompressions];

/**
 * A file format with a compression that it supports, and the level of the compression; null is its usual one. Only Parquet
 * has bloom filters.
 */
export type FileFormat = (
  | { readonly file_format: TextFileFormat; readonly compression: TextCompression | null }
  | { readonly file_format: 'Parquet'; readonly compression: ParquetCompression | null }
) & {
  readonly compression_level: number | null;
  readonly bloom_filters: boolean;
};

/** The file formats; the first is the default. */
export const fileFormats = [...textFileFormats, 'Parquet'] as const;

/**
 * Checks that a file format supports a compression, and the compression its level.
 * @throws CommandRejected with `compression`; the message repeats its value only if another format supports it
 * @throws CommandRejected with `compression_level`
 * @throws CommandRejected with `bloom_filters`
 */
export function fileFormatOf({
  file_format,
  compression,
  compression_level,
  bloom_filters,
}: {
  readonly file_format: FileFormat['file_format'];
  readonly compression: string | null;
  readonly compression_level: number | null;
  readonly bloom_filters: boolean;
}): FileFormat {
  const options = { compression_level, bloom_filters };
  const format =
    file_format === 'Parquet'
      ? { file_format, compression: supported(file_format, parquetCompressions, compression), ...options }
      : { file_format, compression: supported(file_format, textCompressions, compression), ...options };
  if (bloom_filters && file_format !== 'Parquet')
    throw rejectField('bloom_filters', "The field 'bloom_filters' requires 'file_format' to be 'Parquet'.");
  checkLevel(format);
  return format;
}

/** @throws CommandRejected when the compression has no such level */
function checkLevel({ compression, compression_level: level }: FileFormat): void {
  if (level === null) return;
  if (compression === null)
    throw rejectField('compression_level', "The field 'compression_level' requires 'compression'.");
  const levels = levelsOf(compression);
  if (levels === null)
    throw rejectField('compression_level', `Compression ${compression} has no levels. Leave the field out.`);
  if (level < levels.lowest || level > levels.highest)
    throw rejectField(
      'compression_level',
      `The compression_level must be from ${levels.lowest} to ${levels.highest} for compression ${compression}.`,
    );
}

/** One of the compressions of a format; null, no compression, is always supported. */
function supported<Compression extends string>(
  format: FileFormat['file_format'],
  compressions: readonly Compression[],
  given: string | null,
): Compression | null {
  if (given === null) return null;
  const found = compressions.find((compression) => compression === given);
  if (found !== undefined) return found;
  throw rejectField(
    'compression',
    `${allCompressions.includes(given) ? `Compression ${given}` : 'This compression'} is not supported for file format ${format}. Supported compressions are ${formatNames(compressions)}.`,
  );
}

/** The encoding options of a config. */
export function encodingOf(config: FileFormat & Pick<EncodingOptions, 'on_bad_row'>): EncodingOptions {
  const { compression_level, bloom_filters, on_bad_row } = config;
  return config.file_format === 'Parquet'
    ? {
        file_format: config.file_format,
        compression: config.compression,
        compression_level,
        bloom_filters,
        on_bad_row,
      }
    : { file_format: config.file_format, compression: config.compression, compression_level, on_bad_row };
}
