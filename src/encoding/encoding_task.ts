import type { ExportedColumn } from '../source/source.ts';
import type { EncodingOptions } from './encoder.ts';
import type { TextState } from './text_state.ts';

/** What a thread is asked to do. */
export interface EncodingTask {
  readonly id: number;
  readonly options: EncodingOptions;
  readonly columns: readonly ExportedColumn[];
  readonly block: Uint8Array;
  readonly rows: number;
}

/** What it answers: the bytes, the row it could not encode, or what else went wrong. */
export type EncodingAnswer =
  | {
      readonly id: number;
      readonly ok: true;
      readonly bytes: Uint8Array<ArrayBuffer>;
      readonly text: TextState;
    }
  | {
      readonly id: number;
      readonly ok: false;
      readonly row: string;
      readonly column: string;
      readonly reason: string;
    }
  | { readonly id: number; readonly ok: false; readonly message: string };

export type EncodingResult = Extract<EncodingAnswer, { ok: true }>;
