import type { BadValue } from './bad_value.ts';
import { encodeText } from './encode_text.ts';
import type { RejectedRow } from './encoder.ts';
import type { EncodingResult, EncodingTask } from './encoding_task.ts';
import { withoutInvalidText } from './invalid_text.ts';
import { encodeRowGroup } from './parquet/row_group.ts';
import { rejectedRow } from './rejected_row.ts';
import { RowNotEncodable } from './row_not_encodable.ts';
import { rowName, type Rows } from './rows.ts';

/**
 * Encodes the block of a task.
 * @throws RowNotEncodable for a row that the format cannot hold, unless such rows are rejected
 * @throws MalformedBlock
 */
export function encodeBlock({ options, columns, rows, block }: EncodingTask): EncodingResult {
  const rejected: RejectedRow[] = [];
  const badValueIn =
    (within: Rows) =>
    (bad: BadValue): void => {
      if (options.on_bad_row === 'fail')
        throw new RowNotEncodable(rowName(within, bad.rowAt), bad.column, bad.reason);
      rejected.push(rejectedRow(within, bad));
    };
  const given = { block: Buffer.from(block.buffer, block.byteOffset, block.byteLength), rows, columns };
  const valid = withoutInvalidText(given, badValueIn(given));
  const encoded =
    options.file_format === 'Parquet'
      ? encodeParquet(valid, options.compression, badValueIn(valid))
      : encodeText(options, valid, badValueIn(valid));
  return { ...encoded, rejected };
}

function encodeParquet(
  { block, rows, columns }: Rows,
  compression: Parameters<typeof encodeRowGroup>[3],
  onBadValue: (bad: BadValue) => void,
): Omit<EncodingResult, 'rejected'> {
  const { bytes, rowGroup } = encodeRowGroup(block, rows, columns, compression, onBadValue);
  return { bytes: new Uint8Array(bytes.buffer), rows: rowGroup.rows, state: rowGroup };
}
