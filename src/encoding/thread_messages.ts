import type { CopiedBlocks, HeldPageBlock, PageRequest } from '../source/source.ts';
import type { SourceConnectionOptions } from '../source/source_connection.ts';
import type { TransferredReadError } from '../source/transferred_error.ts';
import type { EncodingReply, EncodingTask } from './encoding_task.ts';
import type { JoinedBlocks, JoiningTask } from './join_blocks.ts';

/** What a thread is started with. */
export interface ThreadOptions {
  /** The maximum of unused memory that it keeps for the next blocks, in bytes. */
  readonly unusedBlockBytes: number;
}

/** A page to read, over the connections that the thread has to this source. */
export interface ReadTask {
  readonly id: number;
  readonly source: SourceConnectionOptions;
  readonly page: PageRequest;
}

/** From the process to a thread. */
export type ToEncoderThread =
  | ({ readonly type: 'encode' } & EncodingTask)
  /** Encodes a block that the thread holds, and releases it. */
  | ({ readonly type: 'encode_held'; readonly held: number } & Omit<EncodingTask, 'block'>)
  | ({ readonly type: 'read' } & ReadTask)
  | { readonly type: 'cancel_read'; readonly id: number }
  | { readonly type: 'drop'; readonly held: number }
  | ({ readonly type: 'join' } & JoiningTask);

/** A block of a page, without the number of its thread. */
export type BlockOfThread = Omit<HeldPageBlock, 'thread'>;

/** From a thread to the process. */
export type FromEncoderThread =
  | EncodingReply
  | ({ readonly id: number; readonly outcome: 'read' } & CopiedBlocks<BlockOfThread>)
  | ({ readonly id: number; readonly outcome: 'joined' } & JoinedBlocks)
  | { readonly id: number; readonly outcome: 'read_failed'; readonly error: TransferredReadError };
