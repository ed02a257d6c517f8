import type { ExportedColumn } from '../../source/columns.ts';
import type { FingerprintPlan } from '../../source/source.ts';
import type { UnrepresentableValue } from '../unrepresentable_value.ts';
import type { EncodingOptions } from '../encoder.ts';
import type { FingerprintSum } from '../fingerprint_rows.ts';
import { MalformedBlock } from '../unencodable_row.ts';
import {
  createColumnEncoder,
  createColumnMemory,
  type ColumnMemory,
  type EncodedColumn,
} from './column_chunk.ts';
import { isFiltered } from './bloom_filter.ts';
import { codecOf } from './compression.ts';
import { createFieldIndex, type FieldIndex, type IndexMemory } from './field_index.ts';
import type { RowGroupFragment } from './row_group_fragment.ts';

/** Batch size in bytes of rows: small enough to stay in the CPU cache while all columns are encoded. */
const batchBytes = 512 * 1024;
/** Larger buffers are released after the block. */
const maxRetainedPageBytes = 64 * 1024 * 1024;
const maxRetainedFields = 4 * 1024 * 1024;

interface Memory {
  readonly index: IndexMemory;
  readonly columns: ColumnMemory[];
}

const createMemory = (): Memory => ({
  index: { positions: new Int32Array(0), present: new Uint8Array(0) },
  columns: [],
});

let memory = createMemory();

/** How pages are compressed. */
export type PageOptions = Pick<
  Extract<EncodingOptions, { file_format: 'Parquet' }>,
  'compression' | 'compression_level' | 'bloom_filters'
>;

/** What is known about the rows of a block. */
export interface BlockKeys {
  /** The positions in the file of the columns by which the rows are sorted. */
  readonly sorted: readonly number[];
  /** Receives the rows that are encoded. */
  readonly fingerprint?: { readonly sum: FingerprintSum; readonly plan: FingerprintPlan };
}

/** An encoded block, which becomes a row group with others. */
export interface EncodedFragment {
  /** The bytes in a separate buffer; empty without rows. */
  readonly bytes: Buffer<ArrayBuffer>;
  readonly fragment: RowGroupFragment;
}

/**
 * Encodes a block of rows (see `RowBlock`) as a fragment of a row group. Every column is OPTIONAL. Data pages have about 1 MiB,
 * or more for a larger value. The same block always makes the same bytes. In addition to the block, memory holds the
 * compressed pages, and for each column one page and a dictionary of at most 1 MiB.
 * @param onUnrepresentable receives a row that Parquet cannot represent (its time is infinite or after the year
 * 294246), which is then left out; or throws
 * @throws MalformedBlock
 * @throws InvalidText
 */
export function encodeFragment(
  block: Buffer,
  rows: number,
  columns: readonly ExportedColumn[],
  { compression, compression_level, bloom_filters = false }: PageOptions,
  onUnrepresentable: (bad: UnrepresentableValue) => void,
  { sorted, fingerprint }: BlockKeys = { sorted: [] },
): EncodedFragment {
  try {
    const index = createFieldIndex(block, rows, columns, memory.index, onUnrepresentable);
    const codec = codecOf(compression, compression_level);
    const visible = index.columns.filter(({ column }) => column.hidden !== true);
    const encoders = visible.map((values, position) =>
      createColumnEncoder(
        values,
        codec,
        (memory.columns[position] ??= createColumnMemory()),
        bloom_filters && isFiltered(values.column),
      ),
    );
    for (let row = 0; index.advance(batchBytes); row = index.rows) {
      if (fingerprint) addToFingerprint(fingerprint, index, row);
      for (const encoder of encoders) encoder.encodePending();
    }
    const encoded = index.rows === 0 ? [] : encoders.map((encoder) => encoder.finish(index.rows));
    return {
      bytes: concatenated(encoded),
      fragment: { rows: index.rows, columns: encoded.map(({ fragment }) => fragment), sorted },
    };
  } finally {
    const pages = memory.columns.reduce(
      (sum, { page, output }) => sum + page.bytes.length + output.bytes.length,
      0,
    );
    if (pages > maxRetainedPageBytes || memory.index.positions.length > maxRetainedFields)
      memory = createMemory();
  }
}

/** Adds the indexed rows from `row` on. */
function addToFingerprint(
  { sum, plan }: NonNullable<BlockKeys['fingerprint']>,
  { columns, rows }: FieldIndex,
  row: number,
): void {
  const [times, ids] = [columns[plan.inserted_at], columns[plan.id]];
  if (times?.count !== rows || ids?.count !== rows)
    throw new MalformedBlock('A row has no id or no insertion time.');
  sum.addFields(times.block, times.positions, ids.positions, row, rows);
}

function concatenated(columns: readonly EncodedColumn[]): Buffer<ArrayBuffer> {
  const length = columns.reduce((sum, { bytes }) => sum + bytes.length, 0);
  const joint = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const { bytes } of columns) {
    joint.set(bytes, at);
    at += bytes.length;
  }
  return joint;
}
