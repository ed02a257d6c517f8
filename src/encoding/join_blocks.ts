import type { ExportedColumn } from '../source/columns.ts';
import type { EncoderState } from './encoder.ts';
import { joinRowGroup } from './parquet/join_row_group.ts';
import type { RowGroupFragment } from './parquet/row_group_fragment.ts';
import type { ParquetOptions } from './parquet_encoder.ts';

/** A task of a thread: join encoded blocks to a row group. */
export interface JoiningTask {
  readonly id: number;
  readonly options: ParquetOptions;
  readonly columns: readonly ExportedColumn[];
  readonly blocks: readonly { readonly bytes: Uint8Array<ArrayBuffer>; readonly state: EncoderState }[];
}

/** Blocks that were joined. */
export interface JoinedBlocks {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly state: EncoderState;
}

/** Joins the blocks of a task. */
export function joinBlocks({ options, columns, blocks }: Omit<JoiningTask, 'id'>): JoinedBlocks {
  const { bytes, rowGroup } = joinRowGroup(
    blocks.map(({ bytes, state }) => ({
      bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
      // `encodeBlock` of the same process returned it.
      fragment: state as RowGroupFragment,
    })),
    columns,
    options,
  );
  return { bytes: new Uint8Array(bytes.buffer), state: rowGroup };
}
