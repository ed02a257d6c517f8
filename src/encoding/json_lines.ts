import { appendDate, appendDouble, appendText, appendTimestamp, appendUuid } from './json_values.ts';
import { appendBigint, appendBoolean, appendInteger, appendJson } from './text_values.ts';
import type { TextFormat } from './text_format.ts';

/** JSON lines: one object per row with its fields in column order, LF after each row. */
export const jsonLines: TextFormat = {
  header: () => Buffer.alloc(0),
  prefixes: (columns) =>
    columns.map(({ name }, index) => Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(name)}:`)),
  nullText: Buffer.from('null'),
  rowEnd: Buffer.from('}\n'),
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
