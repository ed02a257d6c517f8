import {
  appendDate,
  appendDouble,
  appendJson,
  appendText,
  appendTimestamp,
  appendUuid,
} from './csv_values.ts';
import { appendBytes, createGrowingBuffer } from './growing_buffer.ts';
import { appendBigint, appendBoolean, appendInteger } from './text_values.ts';
import type { TextFormat } from './text_format.ts';

const comma = Buffer.from(',');
const lineFeed = Buffer.from('\n');

/** CSV (RFC 4180) with a header line and LF after each row. Null is nothing, an empty string is `""`. */
export const csv: TextFormat = {
  header(columns) {
    const line = createGrowingBuffer(1_024);
    for (const [index, { name }] of columns.entries()) {
      const text = Buffer.from(name);
      if (index > 0) appendBytes(line, comma, 0, comma.length);
      appendText(line, text, 0, text.length);
    }
    appendBytes(line, lineFeed, 0, lineFeed.length);
    return line.bytes.subarray(0, line.length);
  },
  prefixes: (columns) => columns.map((_, index) => (index === 0 ? Buffer.alloc(0) : comma)),
  nullText: Buffer.alloc(0),
  rowEnd: lineFeed,
  append: {
    uuid: appendUuid,
    text: appendText,
    timestamp: appendTimestamp,
    date: appendDate,
    json: appendJson,
    bigint: appendBigint,
    integer: appendInteger,
    double: appendDouble,
    boolean: appendBoolean,
  },
};
