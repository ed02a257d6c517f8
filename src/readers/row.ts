import type { ValueDigest } from './value_digest.ts';

/** A row, as it is compared. */
export interface ComparedRow {
  /** ISO 8601 UTC with microseconds. */
  readonly inserted_at: string;
  /** uuid of an event, distinct_id of a person. */
  readonly id: string;
  /** Values of the compared columns; undefined where a file lacks the column. */
  readonly values: readonly (ValueDigest | undefined)[];
}

/** A column that is compared. */
export interface ComparedColumn {
  readonly name: string;
  readonly type: string;
}

/** What is read of a file: the keys of the rows, and the compared columns. */
export interface RowShape {
  /** The column with the id of the row; null when the files do not contain the keys. */
  readonly id: string | null;
  readonly columns: readonly ComparedColumn[];
}

/** Creates a row of a file without keys. */
export const withoutKey = (values: ComparedRow['values']): ComparedRow => ({
  inserted_at: '',
  id: '',
  values,
});

/** The sort key of rows. */
export type RowKey = Pick<ComparedRow, 'inserted_at' | 'id'>;

/** The key of a row as text. */
export const keyText = ({ inserted_at, id }: RowKey): string => `${inserted_at} ${id}`;

/** The order of rows in the source and in files: by time, then by the bytes of the id. */
export function compareKeys(one: RowKey, other: RowKey): number {
  if (one.inserted_at !== other.inserted_at) return one.inserted_at < other.inserted_at ? -1 : 1;
  if (one.id === other.id) return 0;
  return Buffer.compare(Buffer.from(one.id), Buffer.from(other.id));
}

/** A file cannot be decoded. The message says where, and never contains values. */
export class FileUnreadable extends Error {
  override readonly name = 'FileUnreadable';
  /** Which of them, for the process that has the file read by another one. */
  readonly type: string = 'FileUnreadable';
}

/** A file does not contain the keys of its rows. */
export class KeysMissing extends FileUnreadable {
  override readonly type = 'KeysMissing';
}
