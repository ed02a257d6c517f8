import type { SortKey } from '../domain/run.ts';
import type { ExportedColumn, Page } from '../source/source.ts';

/** What has to be known of a file's text so far to go on with it and to close it: CRC-32 and length in bytes. */
export interface EncoderState {
  readonly crc32: number;
  readonly length: number;
}

/** A page in the file's format, compressed so that blocks laid end to end make one valid file. */
export interface EncodedBlock {
  readonly bytes: Buffer;
  readonly rows: number;
  readonly first: SortKey;
  readonly last: SortKey;
  /** CRC-32 and length of the block's text before compression. */
  readonly text: EncoderState;
}

/** Makes one file out of pages. Stateless but for its threads: the caller carries the EncoderState. */
export interface FileEncoder {
  /** Name and version, e.g. `jsonlines+gzip/1`; a file begun by one encoder is never continued by another. */
  readonly identity: string;
  /** `jsonl`, `jsonl.gz`: what follows the dot in the object's key. */
  readonly extension: string;
  readonly initialState: EncoderState;
  /** Bytes before the first block (the gzip header; for plain text none). */
  header(): Buffer;
  /**
   * Encodes a page in a worker thread; several calls may be under way, their blocks are joined in the pages' order.
   * The page's memory goes to the thread: `page.block` is not to be used afterwards, nor anything that shares its
   * memory. Two pages for each thread keep all threads busy; more wait here, in the caller's memory.
   * @throws RowNotEncodable (in ./row_not_encodable.ts) names the row and the column; no retry cures it
   * @throws EncoderThreadLost (in ./encoder_threads.ts) when the thread died; the page has to be read again
   */
  encode(page: Page): Promise<EncodedBlock>;
  /** The state after a block has been joined. */
  advance(state: EncoderState, block: Pick<EncodedBlock, 'text'>): EncoderState;
  /** Bytes after the last block (gzip: final block, CRC, length). */
  trailer(state: EncoderState): Buffer;
}

/** What a destination asks of the encoding. */
export interface EncodingOptions {
  readonly file_format: 'JSONLines';
  readonly compression: 'gzip' | null;
}

/** The encoder threads of a process, shared by all its runs. */
export interface EncoderPool {
  /** An encoder for a file with these columns. */
  fileEncoder(options: EncodingOptions, columns: readonly ExportedColumn[]): FileEncoder;
  close(): Promise<void>;
}
