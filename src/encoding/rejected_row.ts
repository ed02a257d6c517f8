import { fieldOf } from '../source/sort_key.ts';
import type { UnrepresentableValue } from './unrepresentable_value.ts';
import type { RejectedRow } from './encoder.ts';
import { createGrowingBuffer } from './growing_buffer.ts';
import { jsonLines } from './json_lines.ts';
import { appendText } from './json_values.ts';
import { formatPostgresqlTime } from './postgresql_time.ts';
import { rowIdOf, type Rows } from './rows.ts';
import type { AppendValue, TextFormat } from './text_format.ts';
import { appendRows } from './text_rows.ts';

/** Appends a date as in JSON lines; for infinities and years outside 0001 to 9999, a description. */
const appendAnyDate: AppendValue = (target, block, start, end) => {
  if (jsonLines.append.date(target, block, start, end)) return true;
  const days = block.readInt32BE(start);
  const text = Buffer.from(
    days === 0x7fff_ffff ? 'infinity' : days === -0x8000_0000 ? '-infinity' : `${days} days from 2000-01-01`,
  );
  return appendText(target, text, 0, text.length);
};

/** Appends a time as in JSON lines, or as PostgreSQL prints it outside the years 0001 to 9999. */
const appendAnyTime: AppendValue = (target, block, start, end) => {
  if (jsonLines.append.timestamp(target, block, start, end)) return true;
  const text = Buffer.from(formatPostgresqlTime(block, start));
  return appendText(target, text, 0, text.length);
};

/** JSON lines that can represent every row. */
const lenientJsonLines: TextFormat = {
  ...jsonLines,
  append: { ...jsonLines.append, timestamp: appendAnyTime, date: appendAnyDate },
};

/** Describes a row that the format cannot represent. Bytes that are not UTF-8 become U+FFFD. */
export function rejectedRow(
  rows: Pick<Rows, 'block' | 'columns'>,
  { rowAt, column, reason }: UnrepresentableValue,
): RejectedRow {
  const { block, columns } = rows;
  const { start, end } = fieldOf(block, rowAt, columns.length - 1);
  const tuple = block.subarray(rowAt, Math.max(start, end));
  const line = createGrowingBuffer(tuple.length + 1_024);
  appendRows(line, { block: tuple, rows: 1, columns }, lenientJsonLines, () => undefined);
  const row = line.bytes.toString('utf8', 0, line.length - 1);
  return { id: rowIdOf(rows, rowAt), column, reason, row };
}
