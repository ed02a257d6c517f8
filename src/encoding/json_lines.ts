import { fieldOf, uuidText } from '../source/sort_key.ts';
import type { ColumnType, ExportedColumn } from '../source/source.ts';
import { reserve, type GrowingBuffer } from './growing_buffer.ts';
import {
  appendAscii,
  appendBytes,
  appendJson,
  appendText,
  appendTimestamp,
  appendUuid,
} from './json_values.ts';
import { MalformedBlock, RowNotEncodable } from './row_not_encodable.ts';

const closingBrace = 0x7d;
const lineFeed = 0x0a;

/** How many bytes a value has in the block, for the types that always have as many. */
const fixedSizes: Partial<Record<ColumnType, number>> = {
  uuid: 16,
  timestamp: 8,
  bigint: 8,
  integer: 4,
  boolean: 1,
};

/**
 * Appends a page's block to `target` as JSON lines: one object for each row, its members in the order of the columns,
 * LF after each. Values go from bytes to bytes; no strings are made of them.
 * @returns the number of rows
 * @throws RowNotEncodable for a time that has no text (the infinities, years outside 0001 to 9999)
 * @throws MalformedBlock
 */
export function appendJsonLines(
  target: GrowingBuffer,
  block: Buffer,
  columns: readonly ExportedColumn[],
): number {
  const members = columns.map(({ name, type }, index) => ({
    name,
    type,
    prefix: Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(name)}:`),
    size: fixedSizes[type],
  }));
  let rows = 0;
  let at = 0;
  while (at < block.length) {
    const rowAt = at;
    if (at + 2 > block.length || block.readInt16BE(at) !== columns.length)
      throw new MalformedBlock(`Row ${rows} of a block has not the ${columns.length} fields of its columns.`);
    at += 2;
    for (const member of members) {
      const length = at + 4 > block.length ? Number.NaN : block.readInt32BE(at);
      const start = at + 4;
      at = start + Math.max(0, length);
      if (!(at <= block.length) || (length >= 0 && member.size !== undefined && length !== member.size))
        throw new MalformedBlock(`Row ${rows} of a block ends within its column ${member.name}.`);
      appendBytes(target, member.prefix, 0, member.prefix.length);
      if (length < 0) appendAscii(target, 'null');
      else if (!appendValue(target, member.type, block, start, at))
        throw new RowNotEncodable(
          rowName(block, rowAt, columns),
          member.name,
          'holds a time that is infinite or outside the years 0001 to 9999',
        );
    }
    reserve(target, 2);
    target.bytes[target.length] = closingBrace;
    target.bytes[target.length + 1] = lineFeed;
    target.length += 2;
    rows += 1;
  }
  return rows;
}

/** Appends one value; false when there is no text for it. */
function appendValue(
  target: GrowingBuffer,
  type: ColumnType,
  block: Buffer,
  start: number,
  end: number,
): boolean {
  switch (type) {
    case 'timestamp':
      return appendTimestamp(target, block, start);
    case 'text':
      appendText(target, block, start, end);
      break;
    case 'json':
      appendJson(target, block, start, end);
      break;
    case 'uuid':
      appendUuid(target, block, start);
      break;
    case 'bigint':
      appendAscii(target, block.readBigInt64BE(start).toString());
      break;
    case 'integer':
      appendAscii(target, block.readInt32BE(start).toString());
      break;
    case 'boolean':
      appendAscii(target, block[start] === 1 ? 'true' : 'false');
      break;
  }
  return true;
}

/** What people know a row by: its uuid, or its distinct_id where it has none. */
function rowName(block: Buffer, rowAt: number, columns: readonly ExportedColumn[]): string {
  const position = ['uuid', 'distinct_id']
    .map((name) => columns.findIndex((column) => column.name === name))
    .find((index) => index >= 0);
  if (position === undefined) return '(unnamed)';
  const { start, end } = fieldOf(block, rowAt, position);
  if (end < start) return '(unnamed)';
  return columns[position]?.type === 'uuid' ? uuidText(block, start) : block.toString('utf8', start, end);
}
