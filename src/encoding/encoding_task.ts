import type { ExportedColumn } from '../source/source.ts';
import type { EncoderState, EncodingOptions, RejectedRow } from './encoder.ts';

/** What a thread is asked to do: encode a block of rows (see `RowBlock`). */
export interface EncodingTask {
  readonly id: number;
  readonly options: EncodingOptions;
  readonly columns: readonly ExportedColumn[];
  readonly block: Uint8Array;
  readonly rows: number;
}

/** A block as a thread encoded it. */
export interface EncodingResult {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Rows in `bytes`. */
  readonly rows: number;
  readonly rejected: readonly RejectedRow[];
  readonly state: EncoderState;
}

/** What a thread answers: the encoded block, the row that ends the export, or what is wrong with the block. */
export type EncodingAnswer =
  | ({ readonly id: number; readonly outcome: 'encoded' } & EncodingResult)
  | {
      readonly id: number;
      readonly outcome: 'refused';
      readonly row: string;
      readonly column: string;
      readonly reason: string;
    }
  | { readonly id: number; readonly outcome: 'malformed'; readonly message: string };
