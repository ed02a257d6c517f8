import { parentPort, workerData } from 'node:worker_threads';
import { transferReadError } from '../source/transferred_error.ts';
import { encodeBlock } from './encode_block.ts';
import type { EncodingReply, EncodingTask } from './encoding_task.ts';
import { holdBlocks } from './held_blocks.ts';
import type { JoiningTask } from './join_blocks.ts';
import { releaseMemory } from './release_memory.ts';
import type { FromEncoderThread, ReadTask, ThreadOptions, ToEncoderThread } from './thread_messages.ts';
import { MalformedBlock, UnencodableRow } from './unencodable_row.ts';

const { unusedBlockBytes } = workerData as ThreadOptions;
const held = holdBlocks(unusedBlockBytes);
const reads = new Map<number, AbortController>();
const waiting: (() => Promise<void>)[] = [];

const reply = (message: FromEncoderThread, transfer: ArrayBuffer[] = []): void =>
  parentPort?.postMessage(message, transfer);

/**
 * The program of an encoder thread: reads pages, encodes blocks one by one, and replies to each task. Node runs this file
 * from source, even where the rest of the process was transpiled (Jest). Problems with a block are replies. Any other
 * error, such as a failed allocation, ends the thread and frees its memory.
 */
async function replyTo(task: EncodingTask): Promise<EncodingReply> {
  try {
    return { id: task.id, outcome: 'encoded', ...(await encodeBlock(task)) };
  } catch (error) {
    if (error instanceof UnencodableRow)
      return {
        id: task.id,
        outcome: 'unencodable',
        row: error.row,
        column: error.column,
        reason: error.reason,
      };
    if (error instanceof MalformedBlock) return { id: task.id, outcome: 'malformed', message: error.message };
    throw error;
  }
}

async function encode(task: EncodingTask): Promise<void> {
  const encoded = await replyTo(task);
  reply(encoded, encoded.outcome === 'encoded' ? [encoded.bytes.buffer] : []);
}

async function join(task: JoiningTask): Promise<void> {
  // Only Parquet joins blocks.
  const { joinBlocks } = await import('./join_blocks.ts');
  const joined = joinBlocks(task);
  for (const { bytes } of task.blocks) releaseMemory(bytes);
  reply({ id: task.id, outcome: 'joined', ...joined }, [joined.bytes.buffer]);
}

async function read(task: ReadTask): Promise<void> {
  const cancellation = new AbortController();
  reads.set(task.id, cancellation);
  try {
    const page = await held.read(task, cancellation.signal);
    reply({ id: task.id, outcome: 'read', ...page });
  } catch (error) {
    reply({ id: task.id, outcome: 'read_failed', error: transferReadError(error) });
  } finally {
    reads.delete(task.id);
  }
}

/** Encodes one block per turn of the event loop, so that the connections of the thread are read between two blocks. */
async function encodeNext(): Promise<void> {
  await waiting[0]?.();
  waiting.shift();
  if (waiting.length > 0) continueEncoding();
}

const continueEncoding = (): void => {
  setImmediate(() => void encodeNext());
};

function encodeLater(work: () => Promise<void>): void {
  waiting.push(work);
  if (waiting.length === 1) continueEncoding();
}

parentPort?.on('message', (message: ToEncoderThread) => {
  switch (message.type) {
    case 'encode':
      encodeLater(async () => {
        await encode(message);
        releaseMemory(new Uint8Array(message.block.buffer));
      });
      break;
    case 'encode_held':
      encodeLater(async () => {
        await encode({ ...message, block: held.get(message.held) });
        held.drop(message.held);
      });
      break;
    case 'read':
      void read(message);
      break;
    case 'cancel_read':
      reads.get(message.id)?.abort(new Error('The read was cancelled.'));
      break;
    case 'join':
      encodeLater(() => join(message));
      break;
    case 'drop':
      held.drop(message.held);
      break;
  }
});
