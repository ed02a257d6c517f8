import { rowsOfFingerprint, subtractFingerprint, type Fingerprint } from '../domain/fingerprint.ts';
import { fieldOf } from '../source/sort_key.ts';
import { type ExportedColumn, fileColumns } from '../source/columns.ts';
import type { FingerprintPlan } from '../source/source.ts';
import type { UnrepresentableValue } from './unrepresentable_value.ts';
import { encodeText } from './encode_text.ts';
import type { RejectedRow } from './encoder.ts';
import type { EncodingResult, EncodingTask } from './encoding_task.ts';
import { fingerprintBlock, startFingerprint } from './fingerprint_rows.ts';
import { InvalidText, withoutInvalidText } from './invalid_text.ts';
import type { encodeFragment } from './parquet/row_group.ts';
import type { ParquetOptions } from './parquet_encoder.ts';
import { rejectedRow } from './rejected_row.ts';
import { MalformedBlock, UnencodableRow } from './unencodable_row.ts';
import { rowIdOf, type Rows } from './rows.ts';
import type { TextOptions } from './text_encoder.ts';

/** A rejected row and its tuple. */
interface Rejection {
  readonly row: RejectedRow;
  readonly block: Buffer;
  readonly rowAt: number;
}

type EncodedRows = Pick<EncodingResult, 'bytes' | 'rows' | 'state'> & {
  readonly rejections: readonly Rejection[];
  /** That of the rows in `bytes`, where the format computes it. */
  readonly fingerprint?: Fingerprint;
};

/**
 * Encodes the block of a task. A block of a Parquet file becomes a fragment of a row group: `joinBlocks` joins them.
 * The modules of Parquet are loaded with its first block, because threads of text formats start faster without them.
 * @throws UnencodableRow for a row that the format cannot represent, unless `on_bad_row` is `reject`
 * @throws MalformedBlock
 */
export async function encodeBlock({
  options,
  columns,
  rows,
  block,
  fingerprint: plan,
}: Omit<EncodingTask, 'id'>): Promise<EncodingResult> {
  const input = { block: Buffer.from(block.buffer, block.byteOffset, block.byteLength), rows, columns };
  const { rejections, ...encoded } =
    options.file_format === 'Parquet'
      ? encodeAsParquet((await import('./parquet/row_group.ts')).encodeFragment, options, input, plan)
      : encodeAsText(options, input);
  const rejected = startFingerprint(plan);
  for (const rejection of rejections) rejected.add(rejection.block, rejection.rowAt, rejection.rowAt + 1);
  const rejected_fingerprint = rejected.result();
  const fingerprint =
    encoded.fingerprint ?? subtractFingerprint(fingerprintBlock(input.block, plan), rejected_fingerprint);
  if (rowsOfFingerprint(fingerprint) !== encoded.rows || encoded.rows + rejections.length !== rows)
    throw new MalformedBlock(
      `A block of ${rows} rows has ${encoded.rows} encoded and ${rejections.length} rejected ones.`,
    );
  const rejected_rows = rejections.toSorted((one, other) => compareKeys(one, other, plan));
  return { ...encoded, fingerprint, rejected_fingerprint, rejected: rejected_rows.map(({ row }) => row) };
}

/** The order of rows in a block. Rows with invalid text are found first, and in another block than the others. */
function compareKeys(one: Rejection, other: Rejection, { inserted_at, id }: FingerprintPlan): number {
  const [oneTime, otherTime] = [timeOf(one, inserted_at), timeOf(other, inserted_at)];
  if (oneTime !== otherTime) return oneTime < otherTime ? -1 : 1;
  return Buffer.compare(bytesOf(one, id), bytesOf(other, id));
}

const timeOf = ({ block, rowAt }: Rejection, field: number): bigint =>
  block.readBigInt64BE(fieldOf(block, rowAt, field).start);

function bytesOf({ block, rowAt }: Rejection, field: number): Buffer {
  const { start, end } = fieldOf(block, rowAt, field);
  return block.subarray(start, end);
}

/** The positions in the file of the columns by which rows are sorted. The order of text depends on the database. */
function sortedColumns(columns: readonly ExportedColumn[], { inserted_at, id }: FingerprintPlan): number[] {
  const shown = fileColumns(columns);
  const keys = [columns[inserted_at], columns[id]?.type === 'uuid' ? columns[id] : undefined];
  const positions = keys.map((column) => (column ? shown.indexOf(column) : -1));
  const end = positions.indexOf(-1);
  return end < 0 ? positions : positions.slice(0, end);
}

function encodeAsParquet(
  encode: typeof encodeFragment,
  options: ParquetOptions,
  input: Rows,
  plan: FingerprintPlan,
): EncodedRows {
  try {
    return encodeValidText(encode, options, input, plan);
  } catch (error) {
    if (!(error instanceof InvalidText)) throw error;
  }
  const invalid: Rejection[] = [];
  const valid = withoutInvalidText(input, throwOrReject(options, input, invalid));
  const others = encodeValidText(encode, options, valid, plan);
  return { ...others, rejections: [...invalid, ...others.rejections] };
}

/** @throws InvalidText */
function encodeValidText(
  encode: typeof encodeFragment,
  options: ParquetOptions,
  input: Rows,
  plan: FingerprintPlan,
): EncodedRows {
  const { columns } = input;
  const rejections: Rejection[] = [];
  const sum = startFingerprint(plan);
  const { bytes, fragment } = encode(
    input.block,
    input.rows,
    columns,
    options,
    throwOrReject(options, input, rejections),
    { sorted: sortedColumns(columns, plan), fingerprint: { sum, plan } },
  );
  return {
    bytes: new Uint8Array(bytes.buffer),
    rows: fragment.rows,
    rejections,
    state: fragment,
    fingerprint: sum.result(),
  };
}

function encodeAsText(options: TextOptions, input: Rows): EncodedRows {
  const rejections: Rejection[] = [];
  const encoded = encodeText(options, input, throwOrReject(options, input, rejections));
  if (encoded) return { ...encoded, rejections };
  const invalid: Rejection[] = [];
  const valid = withoutInvalidText(input, throwOrReject(options, input, invalid));
  if (valid.rows === input.rows)
    throw new MalformedBlock('The encoded text is not valid UTF-8, although all its values are.');
  const others = encodeAsText(options, valid);
  return { ...others, rejections: [...invalid, ...others.rejections] };
}

/** Handles a row that the format cannot represent: throws, or adds it to `rejections`. */
const throwOrReject =
  ({ on_bad_row }: TextOptions | ParquetOptions, rows: Rows, rejections: Rejection[]) =>
  (bad: UnrepresentableValue): void => {
    if (on_bad_row === 'fail') throw new UnencodableRow(rowIdOf(rows, bad.rowAt), bad.column, bad.reason);
    rejections.push({ row: rejectedRow(rows, bad), block: rows.block, rowAt: bad.rowAt });
  };
