import type { SortKey } from '../domain/sort_key.ts';
import type { Fingerprint } from '../domain/fingerprint.ts';
import type { JsonValue } from '../domain/event.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import type { FingerprintPlan, HeldBlock, PageThreads, RowBlock } from '../source/source.ts';

/** The text formats, by their names in configs. */
export const textFileFormats = ['JSONLines', 'CSV'] as const;
export type TextFileFormat = (typeof textFileFormats)[number];

/** Compressions of text formats. */
export const textCompressions = ['gzip', 'zstd', 'brotli'] as const;
export type TextCompression = (typeof textCompressions)[number];

/** Compressions inside a Parquet file; `lz4` is the codec LZ4_RAW. */
export const parquetCompressions = ['zstd', 'snappy', 'gzip', 'brotli', 'lz4'] as const;
export type ParquetCompression = (typeof parquetCompressions)[number];

/** Encoding options of a destination. */
export type EncodingOptions = (
  | { readonly file_format: TextFileFormat; readonly compression: TextCompression | null }
  | {
      readonly file_format: 'Parquet';
      readonly compression: ParquetCompression | null;
      /** Whether the columns uuid and distinct_id have bloom filters. */
      readonly bloom_filters?: boolean;
    }
) & {
  /** The level of the compression; its usual one when it is absent or null. Only for compressions with levels. */
  readonly compression_level?: number | null;
  /** What happens to a row that the format cannot represent: the export fails, or the row is rejected and reported. */
  readonly on_bad_row: 'fail' | 'reject';
};

/**
 * What the end of a file needs to know about a part of it. It is plain JSON because it is journaled with the part.
 * The states of all parts, in order, are sufficient to resume the file.
 */
export type EncoderState = JsonValue;

/** A row that the format cannot represent. */
export interface RejectedRow {
  /** The row's uuid (events) or distinct_id (persons). */
  readonly id: string;
  readonly column: string;
  /** The problem with the value, as the end of a sentence. */
  readonly reason: string;
  /** The row as one line of JSON. Times outside the years 0001 to 9999 are written as PostgreSQL prints them. */
  readonly row: string;
}

/** Encoded rows. Concatenated blocks make a file. */
export interface EncodedBlock extends Omit<EncodingResult, 'bytes'> {
  readonly bytes: Buffer;
  /** Keys of the first and last row of the block, including rejected rows. */
  readonly first: SortKey;
  readonly last: SortKey;
  /** The rows of each block that was joined, including rejected ones; absent for a single block. */
  readonly joined?: readonly number[];
  /** Size of its rows in bytes. */
  readonly uncompressed?: number;
}

/** Joins the blocks of one file in order. Calls must not overlap. */
export interface FileAssembly {
  /** Returns the bytes that this block adds to the file, preceded by the file header for the first block. */
  append(block: EncodedBlock): Promise<Buffer>;
  /**
   * Returns the state of everything appended since the last call, or since the start. With `exceptLast`, the last block
   * is left for the next call.
   */
  takeState(options?: { readonly exceptLast: boolean }): EncoderState;
  /** Returns the bytes that end the file. */
  finish(): Promise<Buffer>;
  /** Releases its resources. Safe after `finish`. */
  close(): void;
}

/** Joins consecutive blocks, which may be encoded in different threads, to a larger one, such as a row group. */
export interface BlockGrouping {
  /** Encodes a block that is joined with others before it is appended to a file. Otherwise as `FileEncoder.encode`. */
  encode(block: RowBlock | HeldBlock): Promise<EncodedBlock>;
  /** Whether the blocks are enough. */
  isComplete(blocks: readonly EncodedBlock[]): boolean;
  /** Joins blocks. Their bytes are transferred to a thread: do not use them afterwards. */
  join(blocks: readonly EncodedBlock[]): Promise<EncodedBlock>;
}

/** Encodes files of one format, compression and set of columns. */
export interface FileEncoder {
  /**
   * Name and version, with the level and library version of the compression, e.g. `jsonlines+gzip-5/1 zlib/1.3.1`. A file is never continued
   * by an encoder with another identity, because it may encode the same rows as other bytes.
   */
  readonly identity: string;
  /** Extension of the object key without the first dot: `jsonl`, `jsonl.gz`. */
  readonly extension: string;
  /** Media type of the object. */
  readonly contentType: string;
  /** Whether a file can be resumed after parts of another attempt; otherwise it is started again. */
  readonly resumable: boolean;
  /** Recommended block size in bytes of rows. */
  readonly blockBytes: number;
  /**
   * Encodes a block in a worker thread: in the one that holds it, which then releases it, or else in any. Calls may
   * overlap. The block's buffer is transferred to the thread: do not use `block.block`, or anything that shares its
   * memory, afterwards.
   * @throws UnencodableRow with row and column; permanent
   * @throws EncoderThreadExited when the thread died; read the rows again
   */
  encode(block: RowBlock | HeldBlock): Promise<EncodedBlock>;
  /** How blocks are joined; null when each block stands alone. */
  readonly grouping: BlockGrouping | null;
  /** Starts a file, or resumes one after parts with these states. */
  assemble(resumed: readonly EncoderState[]): FileAssembly;
}

/** The encoder threads of a process, shared by all its runs. */
export interface EncoderPool {
  /** The threads, which also read the pages that they encode. */
  readonly pageThreads: PageThreads;
  /** Creates an encoder for files with these columns. Blocks may have additional hidden columns. */
  fileEncoder(options: EncodingOptions, columns: readonly ExportedColumn[]): FileEncoder;
  /** Starts all threads, and lets each load and compile the code of the usual formats. */
  warmUp(): void;
  close(): Promise<void>;
}

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
  /** Rows in `bytes`, without the rejected ones. */
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
