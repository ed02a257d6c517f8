import type { JsonValue } from '../../domain/json_value.ts';

/** Metadata of one column chunk for the footer. Plain JSON, kept short because it is journaled. */
export type ColumnChunk = {
  /** Size of the pages with headers in the file, in bytes. */
  readonly compressed: number;
  /** The same size before compression. */
  readonly uncompressed: number;
  readonly nulls: number;
  /** Size of the dictionary page in bytes, the first page of the chunk; absent without a dictionary. */
  readonly dictionary?: number;
  /** Minimum and maximum of columns of numbers and times, if both are safe integers. */
  readonly min?: number;
  readonly max?: number;
};

/**
 * Metadata of a row group for the footer. The chunks follow each other in column order, so their offsets follow from
 * their sizes.
 */
export type RowGroup = {
  readonly rows: number;
  readonly columns: readonly ColumnChunk[];
};

/** Parses a journaled row group. @throws TypeError when it is not one */
export function parseRowGroup(value: JsonValue): RowGroup {
  if (isRowGroup(value)) return value;
  throw new TypeError('The state of a part is not a Parquet row group.');
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isOptionalNumber = (value: unknown): boolean => value === undefined || typeof value === 'number';

const isRowGroup = (value: unknown): value is RowGroup =>
  isRecord(value) &&
  typeof value.rows === 'number' &&
  Array.isArray(value.columns) &&
  value.columns.every(
    (chunk: unknown) =>
      isRecord(chunk) &&
      typeof chunk.compressed === 'number' &&
      typeof chunk.uncompressed === 'number' &&
      typeof chunk.nulls === 'number' &&
      isOptionalNumber(chunk.dictionary) &&
      isOptionalNumber(chunk.min) &&
      isOptionalNumber(chunk.max),
  );
