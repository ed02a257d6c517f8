import { createHash } from 'node:crypto';

/** Longer values are compared by their digest, so that a row of any size takes little memory while it waits. */
const plainBytes = 64;

/** A value as it is compared: null, its text, or what stands for a long one. */
export type ValueDigest = string | null;

/** What stands for a text of UTF-8 bytes; the source makes the same of it in SQL (`digestSql`). */
export function digestBytes(bytes: Uint8Array): string {
  if (bytes.length <= plainBytes)
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** The same of a string. */
export const digestText = (text: string): string =>
  // UTF-8 takes at most three bytes for a unit of UTF-16.
  text.length * 3 <= plainBytes ? text : digestBytes(Buffer.from(text, 'utf8'));

/** The same as an SQL expression over one of the type text, which is evaluated once; null stays null. */
export const digestSql = (text: string): string =>
  `(select case when octet_length(convert_to(value, 'UTF8')) <= ${plainBytes} then value
     else 'sha256:' || encode(sha256(convert_to(value, 'UTF8')), 'hex') end
   from (select ${text} as value offset 0) evaluated)`;

/** JSON without the line breaks that only lay it out: inside a string JSON has none. */
export function withoutLineBreaks(json: Buffer): Buffer {
  if (!json.includes(0x0a) && !json.includes(0x0d)) return json;
  return Buffer.from(json.filter((byte) => byte !== 0x0a && byte !== 0x0d));
}
