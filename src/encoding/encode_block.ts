import type { UnrepresentableValue } from './unrepresentable_value.ts';
import { encodeText } from './encode_text.ts';
import type { RejectedRow } from './encoder.ts';
import type { EncodingResult, EncodingTask } from './encoding_task.ts';
import { withoutInvalidText } from './invalid_text.ts';
import { encodeRowGroup } from './parquet/row_group.ts';
import type { ParquetOptions } from './parquet_encoder.ts';
import { rejectedRow } from './rejected_row.ts';
import { MalformedBlock, UnencodableRow } from './unencodable_row.ts';
import { rowName, type Rows } from './rows.ts';
import type { TextOptions } from './text_encoder.ts';

/**
 * Encodes the block of a task.
 * @throws UnencodableRow for a row that the format cannot hold, unless such rows are rejected
 * @throws MalformedBlock
 */
export function encodeBlock({ options, columns, rows, block }: EncodingTask): EncodingResult {
  const given = { block: Buffer.from(block.buffer, block.byteOffset, block.byteLength), rows, columns };
  return options.file_format === 'Parquet' ? encodeAsParquet(options, given) : encodeAsText(options, given);
}

function encodeAsParquet(options: ParquetOptions, given: Rows): EncodingResult {
  const rejected: RejectedRow[] = [];
  const valid = withoutInvalidText(given, refuseOrReject(options, given, rejected));
  const { bytes, rowGroup } = encodeRowGroup(
    valid.block,
    valid.rows,
    valid.columns,
    options.compression,
    refuseOrReject(options, valid, rejected),
  );
  return { bytes: new Uint8Array(bytes.buffer), rows: rowGroup.rows, rejected, state: rowGroup };
}

function encodeAsText(options: TextOptions, given: Rows): EncodingResult {
  const rejected: RejectedRow[] = [];
  const encoded = encodeText(options, given, refuseOrReject(options, given, rejected));
  if (encoded) return { ...encoded, rejected };
  const invalid: RejectedRow[] = [];
  const valid = withoutInvalidText(given, refuseOrReject(options, given, invalid));
  if (valid.rows === given.rows) throw new MalformedBlock('A text is not UTF-8, though all its values are.');
  const others = encodeAsText(options, valid);
  return { ...others, rejected: [...invalid, ...others.rejected] };
}

/** What becomes of a row that the format cannot hold: it ends the encoding, or it is added to `rejected`. */
const refuseOrReject =
  ({ on_bad_row }: TextOptions | ParquetOptions, rows: Rows, rejected: RejectedRow[]) =>
  (bad: UnrepresentableValue): void => {
    if (on_bad_row === 'fail') throw new UnencodableRow(rowName(rows, bad.rowAt), bad.column, bad.reason);
    rejected.push(rejectedRow(rows, bad));
  };
