import { digestBytes, digestText, withoutLineBreaks, type ValueDigest } from '../value_digest.ts';
import { FileUnreadable, KeysMissing, type RowShape, type VerifiedRow, withoutKey } from '../row.ts';
import { skipSpace, skipString, skipValue } from './json_text.ts';

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
): AsyncGenerator<VerifiedRow> {
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

/** Reads one string field of each line. @throws FileUnreadable */
export async function* readFieldTexts(chunks: AsyncIterable<Buffer>, name: string): AsyncGenerator<string> {
  for await (const fields of readFields(chunks, [name])) {
    const text = textOf(fields.get(name));
    if (text === undefined) throw new FileUnreadable(`a line has no ${name}`);
    yield text;
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

async function* lines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let incomplete: Buffer[] = [];
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      const rest = chunk.subarray(from, end);
      yield incomplete.length === 0 ? rest : Buffer.concat([...incomplete, rest]);
      incomplete = [];
      from = end + 1;
    }
    if (from < chunk.length) incomplete.push(chunk.subarray(from));
  }
  if (incomplete.length > 0) throw new FileUnreadable('its last line is incomplete');
}

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
  if (type === 'json') return digestBytes(withoutLineBreaks(raw));
  const text = textOf(raw);
  return text === undefined ? digestBytes(raw) : digestText(text);
}
