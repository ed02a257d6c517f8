import type { ValueDigest } from './value_digest.ts';

/** A row as it is compared. */
export interface VerifiedRow {
  /** ISO 8601 UTC with microseconds. */
  readonly inserted_at: string;
  /** uuid of an event, distinct_id of a person. */
  readonly id: string;
  /** Values of the compared columns, in their order; undefined where a file does not have the column. */
  readonly values: readonly (ValueDigest | undefined)[];
}

/** A column that is compared. */
export interface ComparedColumn {
  readonly name: string;
  readonly type: string;
}

/** What is read of a file: where each row belongs, and the columns that are compared. */
export interface RowShape {
  /** Name of the column with the row's id; null where files do not say when a row was inserted or which one it is. */
  readonly id: string | null;
  readonly columns: readonly ComparedColumn[];
}

/** A row whose file does not tell its key. */
export const withoutKey = (values: VerifiedRow['values']): VerifiedRow => ({
  inserted_at: '',
  id: '',
  values,
});

/** What rows are ordered by. */
export type RowKey = Pick<VerifiedRow, 'inserted_at' | 'id'>;

/** The order of rows in a source and in files: by time, then by the bytes of the id. */
export function compareKeys(one: RowKey, other: RowKey): number {
  if (one.inserted_at !== other.inserted_at) return one.inserted_at < other.inserted_at ? -1 : 1;
  if (one.id === other.id) return 0;
  return Buffer.compare(Buffer.from(one.id), Buffer.from(other.id));
}

/** A file that cannot be decoded; the message says where, and never holds a value. */
export class FileUnreadable extends Error {
  override readonly name = 'FileUnreadable';
}
