import type * as z from 'zod';
import { bounds, boundText } from '../config/bounds.ts';
import { CommandRejected } from '../domain/errors.ts';
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

/** The path of a config field in a request, as error responses name it. */
export const configAttribute = (field?: string): string =>
  field === undefined ? 'destination__config' : `destination__config__${field}`;

/** Creates the error that rejects a config because of one field. */
export const rejectField = (field: string, detail: string): CommandRejected =>
  new CommandRejected('invalid_input', detail, configAttribute(field));

/** How many unknown fields a message names. */
const maxNamed = 10;

/**
 * The fields of a config without those that are null, which mean their default.
 * @throws CommandRejected also for one that is too large to be listed with others
 */
export function givenFields(config: unknown): Record<string, unknown> {
  if (typeof config !== 'object' || config === null || Array.isArray(config))
    throw new CommandRejected('invalid_input', 'Configuration must be an object.', configAttribute());
  for (const [field, value] of Object.entries(config))
    if (typeof value === 'string' && value.length > bounds.configText.max)
      throw rejectField(field, `A text of a configuration has at most ${boundText(bounds.configText)}.`);
  if (Buffer.byteLength(JSON.stringify(config)) > bounds.config.max)
    throw new CommandRejected(
      'invalid_input',
      `A configuration has at most ${boundText(bounds.config)}, as JSON.`,
      configAttribute(),
    );
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null));
}

/**
 * Validates the fields of a config against a strict schema. The error names the invalid field and never repeats its
 * value, which may be a secret.
 * @throws CommandRejected
 */
export function parseFields<Schema extends z.ZodObject>(
  schema: Schema,
  fields: Readonly<Record<string, unknown>>,
): z.infer<Schema> {
  const unknown = Object.keys(fields)
    .filter((field) => !(field in schema.shape))
    .sort();
  if (unknown[0] !== undefined)
    throw rejectField(
      unknown[0],
      `Configuration has unknown field/s: ${unknown
        .slice(0, maxNamed)
        .map((field) => `'${field}'`)
        .join(', ')}${unknown.length > maxNamed ? ` and ${unknown.length - maxNamed} more` : ''}`,
    );
  const parsed = schema.safeParse(fields);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = String(issue?.path[0] ?? '');
  if (!(field in fields))
    throw new CommandRejected(
      'required',
      `Configuration missing required field: '${field}'`,
      configAttribute(field),
    );
  // Only for the field itself: values inside it have their own messages.
  if (issue?.code === 'invalid_type' && issue.path.length === 1)
    throw rejectField(
      field,
      `Configuration has invalid type for '${field}': got '${typeName(fields[field])}', expected '${issue.expected}'`,
    );
  // An item of a list of objects has fields of its own, such as filters__0__key.
  const path = (issue?.path.length ?? 0) > 2 ? (issue?.path.join('__') ?? field) : field;
  throw rejectField(path, issue?.message ?? 'Configuration is invalid.');
}

const typeName = (value: unknown): string => (Array.isArray(value) ? 'array' : typeof value);

const allCompressions: readonly string[] = [...textCompressions, ...parquetCompressions];

/**
 * A file format with a compression that it supports, and the level of the compression; null is its usual one. Only Parquet
 * has bloom filters, and can be the files of a table.
 */
export type FileFormat = (
  | { readonly file_format: TextFileFormat; readonly compression: TextCompression | null }
  | { readonly file_format: 'Parquet'; readonly compression: ParquetCompression | null }
) & {
  readonly compression_level: number | null;
  readonly bloom_filters: boolean;
  readonly table_format: string | null;
};

/** The file formats; the first is the default. */
export const fileFormats = [...textFileFormats, 'Parquet'] as const;

/**
 * Checks that a file format supports a compression, and the compression its level.
 * @throws CommandRejected with `compression`; the message repeats its value only if another format supports it
 * @throws CommandRejected with `compression_level`
 * @throws CommandRejected with `bloom_filters` or `table_format`
 */
export function fileFormatOf({
  file_format,
  compression,
  compression_level,
  bloom_filters,
  table_format,
}: {
  readonly file_format: FileFormat['file_format'];
  readonly compression: string | null;
  readonly compression_level: number | null;
  readonly bloom_filters: boolean;
  readonly table_format: string | null;
}): FileFormat {
  const options = { compression_level, bloom_filters, table_format };
  const format =
    file_format === 'Parquet'
      ? { file_format, compression: supported(file_format, parquetCompressions, compression), ...options }
      : { file_format, compression: supported(file_format, textCompressions, compression), ...options };
  if (bloom_filters && file_format !== 'Parquet')
    throw rejectField('bloom_filters', "The field 'bloom_filters' requires 'file_format' to be 'Parquet'.");
  if (table_format !== null && file_format !== 'Parquet')
    throw rejectField('table_format', "The field 'table_format' requires 'file_format' to be 'Parquet'.");
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

/** Formats a list of names: `['gzip', 'zstd']`. */
export const formatNames = (names: readonly string[]): string =>
  `[${names.map((name) => `'${name}'`).join(', ')}]`;
