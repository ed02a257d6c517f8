import { createHash } from 'node:crypto';
import type { DataInterval } from '../domain/intervals.ts';

/** Values longer than this (in bytes) are compared by digest, so that rows of any size need little memory. */
const maxPlainBytes = 64;

/** A value, as it is compared: null, its text, or the digest of a long text. */
export type ValueDigest = string | null;

/** The digest of UTF-8 text; `digestSql` computes the same in SQL. */
export function digestBytes(bytes: Uint8Array): string {
  if (bytes.length <= maxPlainBytes)
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** The digest of a string. */
export const digestText = (text: string): string =>
  // UTF-8 takes at most three bytes for a UTF-16 code unit.
  text.length * 3 <= maxPlainBytes ? text : digestBytes(Buffer.from(text, 'utf8'));

/** The digest of a text expression as SQL, which evaluates the expression once. Null stays null. */
export const digestSql = (text: string): string =>
  `(select case when octet_length(convert_to(value, 'UTF8')) <= ${maxPlainBytes} then value
     else 'sha256:' || encode(sha256(convert_to(value, 'UTF8')), 'hex') end
   from (select ${text} as value offset 0) evaluated)`;

/**
 * The digest of JSON, without its line breaks and without whitespace around it; `jsonDigestSql` computes the same in SQL.
 * Strings cannot contain line breaks, and in a line of JSON the whitespace around a value belongs to no value.
 */
export function digestJson(json: Buffer): string {
  const value =
    json.includes(0x0a) || json.includes(0x0d)
      ? Buffer.from(json.filter((byte) => byte !== 0x0a && byte !== 0x0d))
      : json;
  const isSpace = (at: number): boolean => value[at] === 0x20 || value[at] === 0x09;
  let [start, end] = [0, value.length];
  while (start < end && isSpace(start)) start += 1;
  while (end > start && isSpace(end - 1)) end -= 1;
  return digestBytes(value.subarray(start, end));
}

/** The digest of JSON that is stored as `json`, as SQL; see `digestJson`. */
export const jsonDigestSql = (text: string): string =>
  digestSql(`btrim(replace(replace(${text}, E'\\n', ''), E'\\r', ''), E' \\t')`);

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

/** Passes rows through and calls `onRow` for each. */
export async function* observeRows(
  rows: AsyncIterable<ComparedRow>,
  onRow: (row: ComparedRow) => void,
): AsyncGenerator<ComparedRow> {
  for await (const row of rows) {
    onRow(row);
    yield row;
  }
}

/** Reads rows to the end. */
export async function readAll(rows: AsyncGenerator<ComparedRow>): Promise<void> {
  while (!(await rows.next()).done);
}

/** Rows are not sorted. */
export class OutOfOrder extends Error {
  override readonly name = 'OutOfOrder';
}

/** Maximum number of rows that are sorted in memory: about 200 bytes per row, 1 KB with values. */
export const maxSortableRows = 1_000_000;

/** Passes rows through while they are sorted. @throws OutOfOrder */
export async function* inOrder(rows: AsyncIterable<ComparedRow>): AsyncGenerator<ComparedRow> {
  let previous: ComparedRow | undefined;
  for await (const row of rows) {
    if (previous && compareKeys(previous, row) > 0) throw new OutOfOrder('The rows are not sorted.');
    previous = row;
    yield row;
  }
}

/** Sorts rows in memory. @throws OutOfOrder when there are more than `maxSortableRows` */
export async function* sorted(rows: AsyncIterable<ComparedRow>): AsyncGenerator<ComparedRow> {
  const collected: ComparedRow[] = [];
  for await (const row of rows) {
    if (collected.length >= maxSortableRows) throw new OutOfOrder('There are too many rows to sort.');
    collected.push(row);
  }
  yield* collected.sort(compareKeys);
}

/** Passes the rows of an interval through, and all others to `onMisplacedRow`. */
export async function* within(
  rows: AsyncIterable<ComparedRow>,
  interval: DataInterval,
  onMisplacedRow: (row: ComparedRow) => void,
): AsyncGenerator<ComparedRow> {
  const [start, end] = [formatMicroseconds(interval.start), formatMicroseconds(interval.end)];
  for await (const row of rows) {
    if (row.inserted_at >= start && row.inserted_at < end) yield row;
    else onMisplacedRow(row);
  }
}

/** Formats a time as in rows. */
export const formatMicroseconds = (time: string): string => new Date(time).toISOString().replace('Z', '000Z');
