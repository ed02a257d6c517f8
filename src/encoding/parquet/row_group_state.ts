import type { JsonValue } from '../../domain/json_value.ts';

/** What the footer has to say of the values of one column in a row group. Plain JSON, as short as can be. */
export type ColumnChunk = {
  /** Bytes of its pages with their headers, as they are in the file. */
  readonly compressed: number;
  /** The same before compression. */
  readonly uncompressed: number;
  readonly nulls: number;
  /** Bytes of the dictionary's page, the first of the chunk; absent where values are written plain. */
  readonly dictionary?: number;
  /** The smallest and the largest value, for columns of numbers and times, where a JSON number can hold both. */
  readonly min?: number;
  readonly max?: number;
};

/**
 * All that the footer needs to know of a row group. The chunks lie end to end in the order of the columns, so that their
 * places follow from their sizes.
 */
export type RowGroup = {
  readonly rows: number;
  readonly columns: readonly ColumnChunk[];
};

/** A journalled value as a row group. @throws TypeError when it is none, which this encoder never made */
export function rowGroupOf(value: JsonValue): RowGroup {
  if (isRowGroup(value)) return value;
  throw new TypeError('The state of a part is not that of a Parquet row group.');
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
