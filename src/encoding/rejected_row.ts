import { fieldOf } from '../source/sort_key.ts';
import type { UnrepresentableValue } from './unrepresentable_value.ts';
import type { RejectedRow } from './encoder.ts';
import { createGrowingBuffer } from './growing_buffer.ts';
import { jsonLines } from './json_lines.ts';
import { appendText } from './json_values.ts';
import { postgresqlTimeText } from './postgresql_time.ts';
import { rowName, type Rows } from './rows.ts';
import type { AppendValue, TextFormat } from './text_format.ts';
import { appendRows } from './text_rows.ts';

/** A date in JSON's usual text, or what stands for the infinities and years that have none. */
const appendAnyDate: AppendValue = (target, block, start, end) => {
  if (jsonLines.append.date(target, block, start, end)) return true;
  const days = block.readInt32BE(start);
  const text = Buffer.from(
    days === 0x7fff_ffff ? 'infinity' : days === -0x8000_0000 ? '-infinity' : `${days} days from 2000-01-01`,
  );
  return appendText(target, text, 0, text.length);
};

/** A time in JSON's usual text, or as PostgreSQL prints it where there is none. */
const appendAnyTime: AppendValue = (target, block, start, end) => {
  if (jsonLines.append.timestamp(target, block, start, end)) return true;
  const text = Buffer.from(postgresqlTimeText(block, start));
  return appendText(target, text, 0, text.length);
};

/** JSON lines that hold every row. */
const anyRow: TextFormat = {
  ...jsonLines,
  append: { ...jsonLines.append, timestamp: appendAnyTime, date: appendAnyDate },
};

/** What is told of a row that the format cannot hold. Bytes that are not UTF-8 become U+FFFD. */
export function rejectedRow(
  rows: Pick<Rows, 'block' | 'columns'>,
  { rowAt, column, reason }: UnrepresentableValue,
): RejectedRow {
  const { block, columns } = rows;
  const { start, end } = fieldOf(block, rowAt, columns.length - 1);
  const tuple = block.subarray(rowAt, Math.max(start, end));
  const line = createGrowingBuffer(tuple.length + 1_024);
  appendRows(line, { block: tuple, rows: 1, columns }, anyRow, () => undefined);
  const row = line.bytes.toString('utf8', 0, line.length - 1);
  return { id: rowName(rows, rowAt), column, reason, row };
}
