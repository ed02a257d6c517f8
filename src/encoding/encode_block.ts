import type { UnrepresentableValue } from './unrepresentable_value.ts';
import { encodeText } from './encode_text.ts';
import type { RejectedRow } from './encoder.ts';
import type { EncodingResult, EncodingTask } from './encoding_task.ts';
import { withoutInvalidText } from './invalid_text.ts';
import { encodeRowGroup } from './parquet/row_group.ts';
import type { ParquetOptions } from './parquet_encoder.ts';
import { rejectedRow } from './rejected_row.ts';
import { MalformedBlock, UnencodableRow } from './unencodable_row.ts';
import { rowIdOf, type Rows } from './rows.ts';
import type { TextOptions } from './text_encoder.ts';

/**
 * Encodes the block of a task.
 * @throws UnencodableRow for a row that the format cannot represent, unless `on_bad_row` is `reject`
 * @throws MalformedBlock
 */
export function encodeBlock({ options, columns, rows, block }: EncodingTask): EncodingResult {
  const input = { block: Buffer.from(block.buffer, block.byteOffset, block.byteLength), rows, columns };
  return options.file_format === 'Parquet' ? encodeAsParquet(options, input) : encodeAsText(options, input);
}

function encodeAsParquet(options: ParquetOptions, input: Rows): EncodingResult {
  const rejected: RejectedRow[] = [];
  const valid = withoutInvalidText(input, throwOrReject(options, input, rejected));
  const { bytes, rowGroup } = encodeRowGroup(
    valid.block,
    valid.rows,
    valid.columns,
    options.compression,
    throwOrReject(options, valid, rejected),
  );
  return { bytes: new Uint8Array(bytes.buffer), rows: rowGroup.rows, rejected, state: rowGroup };
}

function encodeAsText(options: TextOptions, input: Rows): EncodingResult {
  const rejected: RejectedRow[] = [];
  const encoded = encodeText(options, input, throwOrReject(options, input, rejected));
  if (encoded) return { ...encoded, rejected };
  const invalid: RejectedRow[] = [];
  const valid = withoutInvalidText(input, throwOrReject(options, input, invalid));
  if (valid.rows === input.rows)
    throw new MalformedBlock('The encoded text is not valid UTF-8, although all its values are.');
  const others = encodeAsText(options, valid);
  return { ...others, rejected: [...invalid, ...others.rejected] };
}

/** Handles a row that the format cannot represent: throws, or adds it to `rejected`. */
const throwOrReject =
  ({ on_bad_row }: TextOptions | ParquetOptions, rows: Rows, rejected: RejectedRow[]) =>
  (bad: UnrepresentableValue): void => {
    if (on_bad_row === 'fail') throw new UnencodableRow(rowIdOf(rows, bad.rowAt), bad.column, bad.reason);
    rejected.push(rejectedRow(rows, bad));
  };
