import { bounds, boundText } from '../config/bounds.ts';
import { FileUnreadable, KeysMissing, type RowShape, type ComparedRow, withoutKey } from './row.ts';
import { digestBytes, digestJson, digestText, type ValueDigest } from './value_digest.ts';

const quotationMark = 0x22;
const backslash = 0x5c;

/** The offset of the first byte from `at` that is not JSON whitespace. */
function skipSpace(text: Buffer, at: number): number {
  let next = at;
  for (
    let byte = text[next];
    byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
    byte = text[next]
  )
    next += 1;
  return next;
}

/** The end of the string that starts at `at`; -1 when it is not terminated. */
function skipString(text: Buffer, at: number): number {
  let end = text.indexOf(quotationMark, at + 1);
  while (end >= 0) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return end + 1;
    end = text.indexOf(quotationMark, end + 1);
  }
  return -1;
}

/**
 * The end of the value that starts at `at`; -1 when there is none or it is incomplete. Brackets and braces are only
 * counted.
 */
function skipValue(text: Buffer, at: number): number {
  const first = text[at];
  if (first === quotationMark) return skipString(text, at);
  if (first === 0x7b || first === 0x5b) return skipNested(text, at);
  let end = at;
  // Numbers, true, false and null end at a comma, bracket, brace or whitespace.
  for (let byte = text[end]; byte !== undefined && isScalarByte(byte); byte = text[end]) end += 1;
  return end > at ? end : -1;
}

const isScalarByte = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) ||
  (byte >= 0x61 && byte <= 0x7a) ||
  byte === 0x2d ||
  byte === 0x2b ||
  byte === 0x2e ||
  byte === 0x45;

function skipNested(text: Buffer, at: number): number {
  let depth = 0;
  for (let next = at; next < text.length; next += 1) {
    const byte = text[next];
    if (byte === quotationMark) {
      next = skipString(text, next) - 1;
      if (next < 0) return -1;
    } else if (byte === 0x7b || byte === 0x5b) depth += 1;
    else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1;
      if (depth === 0) return next + 1;
    }
  }
  return -1;
}

const lineFeed = 0x0a;
const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const closingBrace = 0x7d;

/**
 * Reads rows of JSON lines. Fields are extracted as raw text, because JSON.parse changes numbers and drops duplicate
 * fields. Memory holds one line.
 * @throws FileUnreadable
 */
export async function* readJsonLines(
  chunks: AsyncIterable<Buffer>,
  shape: RowShape,
): AsyncGenerator<ComparedRow> {
  const { id: idName } = shape;
  const key = idName === null ? [] : ['_inserted_at', idName];
  const names = [...key, ...shape.columns.map(({ name }) => name)];
  let number = 0;
  for await (const fields of readFields(chunks, names)) {
    number += 1;
    const values = shape.columns.map(({ name, type }) => valueOf(fields.get(name), type));
    if (idName === null) {
      yield withoutKey(values);
      continue;
    }
    const inserted_at = textOf(fields.get('_inserted_at'));
    const id = textOf(fields.get(idName));
    if (inserted_at === undefined || id === undefined)
      throw new KeysMissing(`line ${number} has no _inserted_at or no ${idName}`);
    yield { inserted_at, id, values };
  }
}

/** Reads the raw text of the named fields of each line. */
async function* readFields(
  chunks: AsyncIterable<Buffer>,
  names: readonly string[],
): AsyncGenerator<ReadonlyMap<string, Buffer>> {
  const requested = new Set(names);
  let number = 0;
  for await (const line of lines(chunks)) {
    number += 1;
    const fields = fieldsOf(line, requested);
    if (!fields) throw new FileUnreadable(`line ${number} is not a JSON object`);
    yield fields;
  }
}

/** The lines of a text. @throws FileUnreadable for an incomplete last line, and one that is longer than the bound */
export async function* lines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let incomplete: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      const rest = chunk.subarray(from, end);
      yield incomplete.length === 0 ? rest : Buffer.concat([...incomplete, rest]);
      incomplete = [];
      length = 0;
      from = end + 1;
    }
    if (from === chunk.length) continue;
    length += chunk.length - from;
    if (length > bounds.line.max) throw lineTooLong();
    incomplete.push(chunk.subarray(from));
  }
  if (incomplete.length > 0) throw new FileUnreadable('its last line is incomplete');
}

/** A line or record is longer than exportd writes any. */
export const lineTooLong = (): FileUnreadable =>
  new FileUnreadable(`it has a line longer than ${boundText(bounds.line)}`);

/** The raw text of the requested fields; undefined when the line is not an object. Stops when all are found. */
function fieldsOf(line: Buffer, requested: ReadonlySet<string>): Map<string, Buffer> | undefined {
  const fields = new Map<string, Buffer>();
  let at = skipSpace(line, 0);
  if (line[at] !== 0x7b) return undefined;
  do {
    const nameAt = skipSpace(line, at + 1);
    const nameEnd = line[nameAt] === quote ? skipString(line, nameAt) : -1;
    if (nameEnd < 0) return undefined;
    const name = line.toString('utf8', nameAt + 1, nameEnd - 1);
    at = skipSpace(line, nameEnd);
    if (line[at] !== colon) return undefined;
    const valueAt = skipSpace(line, at + 1);
    const valueEnd = skipValue(line, valueAt);
    if (valueEnd < 0) return undefined;
    if (requested.has(name)) {
      fields.set(name, line.subarray(valueAt, valueEnd));
      if (fields.size === requested.size) return fields;
    }
    at = skipSpace(line, valueEnd);
  } while (line[at] === comma);
  return line[at] === closingBrace && skipSpace(line, at + 1) === line.length ? fields : undefined;
}

/** The value of a raw string; undefined when it is not a string. */
function textOf(raw: Buffer | undefined): string | undefined {
  if (raw?.[0] !== quote) return undefined;
  if (!raw.includes(0x5c)) return raw.toString('utf8', 1, raw.length - 1);
  try {
    return String(JSON.parse(raw.toString('utf8')));
  } catch {
    return undefined;
  }
}

function valueOf(raw: Buffer | undefined, type: string): ValueDigest | undefined {
  if (raw === undefined) return undefined;
  if (raw.length === 4 && raw.toString('latin1') === 'null') return null;
  if (type === 'json') return digestJson(raw);
  const text = textOf(raw);
  return text === undefined ? digestBytes(raw) : digestText(text);
}
