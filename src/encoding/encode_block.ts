import { rowName, type BadValue } from './bad_value.ts';
import { encodeText } from './encode_text.ts';
import type { EncodingResult, EncodingTask } from './encoding_task.ts';
import { RowNotEncodable } from './row_not_encodable.ts';

/**
 * Encodes the block of a task.
 * @throws RowNotEncodable for a row that the format cannot hold
 * @throws MalformedBlock
 */
export function encodeBlock({ options, columns, rows, block: bytes }: EncodingTask): EncodingResult {
  const block = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const onBadValue = ({ rowAt, column, reason }: BadValue): never => {
    throw new RowNotEncodable(rowName(block, rowAt, columns), column, reason);
  };
  if (options.file_format === 'Parquet') throw new Error('Parquet is not wired in.');
  return { ...encodeText(options, { block, columns, rows }, onBadValue), rejected: [] };
}
