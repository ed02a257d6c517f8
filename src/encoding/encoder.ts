import type { JsonValue } from '../domain/json_value.ts';
import type { SortKey } from '../domain/run.ts';
import type { ExportedColumn, RowBlock } from '../source/source.ts';

/** Compressions of JSON lines and CSV. */
export const textCompressions = ['gzip', 'zstd', 'brotli'] as const;
export type TextCompression = (typeof textCompressions)[number];

/** Compressions inside a Parquet file; `lz4` is the codec LZ4_RAW. */
export const parquetCompressions = ['zstd', 'snappy', 'gzip', 'brotli', 'lz4'] as const;
export type ParquetCompression = (typeof parquetCompressions)[number];

/** What a destination asks of the encoding. */
export type EncodingOptions = (
  | { readonly file_format: 'JSONLines' | 'CSV'; readonly compression: TextCompression | null }
  | { readonly file_format: 'Parquet'; readonly compression: ParquetCompression | null }
) & {
  /** What becomes of a row that the format cannot hold: it ends the export, or it is left out and reported. */
  readonly on_bad_row: 'fail' | 'reject';
};

/**
 * What the end of a file has to know of a stretch of it: plain JSON, since it is journalled with the part that holds
 * the stretch. The states of a file's parts, in their order, say all that is needed to go on with the file.
 */
export type EncoderState = JsonValue;

/** A row that the format cannot hold. */
export interface RejectedRow {
  /** The row's uuid (events) or distinct_id (persons). */
  readonly id: string;
  readonly column: string;
  /** What is wrong with the value, as the end of a sentence. */
  readonly reason: string;
  /** The whole row as a line of JSON without a line break: times without a text as PostgreSQL prints them. */
  readonly row: string;
}

/** A block of rows in the file's format, so that blocks laid end to end can make a file. */
export interface EncodedBlock {
  readonly bytes: Buffer;
  /** Rows in `bytes`; the rejected ones are not among them. */
  readonly rows: number;
  readonly rejected: readonly RejectedRow[];
  /** Keys of the block's first and last row, whether encoded or rejected. */
  readonly first: SortKey;
  readonly last: SortKey;
  readonly state: EncoderState;
}

/** Joins the blocks of one file, in order. Not for two callers at once. */
export interface FileAssembly {
  /** The bytes by which this block makes the file longer, the file's head in front of the first. */
  append(block: EncodedBlock): Promise<Buffer>;
  /** The state of what was appended since the last call, or since the beginning. */
  takeState(): EncoderState;
  /** The bytes that end the file. */
  finish(): Promise<Buffer>;
  /** Gives up what it holds; safe after `finish` too. */
  close(): void;
}

/** Makes files of one shape out of blocks of rows. */
export interface FileEncoder {
  /** Name and version, e.g. `jsonlines+gzip/1`; a file begun by one encoder is never continued by another. */
  readonly identity: string;
  /** `jsonl`, `jsonl.gz`: what follows the dot in the object's key. */
  readonly extension: string;
  /** Media type of the object. */
  readonly contentType: string;
  /** Whether a file can be gone on with behind parts of another attempt; else it starts anew. */
  readonly resumable: boolean;
  /** How many bytes of rows a block best has. */
  readonly blockBytes: number;
  /**
   * Encodes a block in a worker thread; several calls may be under way. The block's memory goes to the thread:
   * `block.block` is not to be used afterwards, nor anything that shares its memory.
   * @throws UnencodableRow (in ./row_not_encodable.ts) names the row and the column; no retry cures it
   * @throws EncoderThreadLost (in ./encoder_threads.ts) when the thread died; the rows have to be read again
   */
  encode(block: RowBlock): Promise<EncodedBlock>;
  /** Begins a file, or goes on with one behind parts that have these states. */
  assemble(resumed: readonly EncoderState[]): FileAssembly;
}

/** The encoder threads of a process, shared by all its runs. */
export interface EncoderPool {
  /** An encoder for files with these columns; blocks may have hidden ones beside them. */
  fileEncoder(options: EncodingOptions, columns: readonly ExportedColumn[]): FileEncoder;
  close(): Promise<void>;
}
