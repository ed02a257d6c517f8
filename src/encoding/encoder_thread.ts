import { parentPort } from 'node:worker_threads';
import { encodeBlock } from './encode_block.ts';
import type { EncodingReply, EncodingTask } from './encoding_task.ts';
import { releaseMemory } from './release_memory.ts';
import { MalformedBlock, UnencodableRow } from './unencodable_row.ts';

/**
 * The program of an encoder thread: processes tasks one by one and replies to each. Node runs this file from source,
 * even where the rest of the process was transpiled (Jest). Problems with a block are replies. Any other error, such
 * as a failed allocation, ends the thread and frees its memory.
 */
function replyTo(task: EncodingTask): EncodingReply {
  try {
    return { id: task.id, outcome: 'encoded', ...encodeBlock(task) };
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

parentPort?.on('message', (task: EncodingTask) => {
  const reply = replyTo(task);
  releaseMemory(new Uint8Array(task.block.buffer));
  parentPort?.postMessage(reply, reply.outcome === 'encoded' ? [reply.bytes.buffer] : []);
});
