import type { Fingerprint } from '../domain/fingerprint.ts';
import type { ExportedColumn } from '../source/columns.ts';
import type { FingerprintPlan } from '../source/source.ts';
import type { EncoderState, EncodingOptions, RejectedRow } from './encoder.ts';

/** A task of a thread: encode a block of rows (see `RowBlock`). */
export interface EncodingTask {
  readonly id: number;
  readonly options: EncodingOptions;
  readonly columns: readonly ExportedColumn[];
  readonly block: Uint8Array;
  readonly rows: number;
  readonly fingerprint: FingerprintPlan;
}

/** A block that a thread encoded. */
export interface EncodingResult {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Rows in `bytes`. */
  readonly rows: number;
  /** The rows in `bytes`, and the rejected ones. */
  readonly fingerprint: Fingerprint;
  readonly rejected_fingerprint: Fingerprint;
  readonly rejected: readonly RejectedRow[];
  readonly state: EncoderState;
}

/**
 * The reply of a thread: the encoded block, the row that the format cannot represent, or what is wrong with the
 * block.
 */
export type EncodingReply =
  | ({ readonly id: number; readonly outcome: 'encoded' } & EncodingResult)
  | {
      readonly id: number;
      readonly outcome: 'unencodable';
      readonly row: string;
      readonly column: string;
      readonly reason: string;
    }
  | { readonly id: number; readonly outcome: 'malformed'; readonly message: string };
