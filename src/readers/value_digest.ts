import { createHash } from 'node:crypto';

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
