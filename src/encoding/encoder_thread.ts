import { parentPort } from 'node:worker_threads';
import { encodeBlock } from './encode_block.ts';
import type { EncodingAnswer, EncodingTask } from './encoding_task.ts';
import { releaseMemory } from './release_memory.ts';
import { MalformedBlock, UnencodableRow } from './unencodable_row.ts';

/**
 * The program of an encoder thread: takes tasks one after another and answers each. Node runs it from this source also
 * where the rest of the process was translated (Jest). What is wrong with a block is an answer; any other error, such as
 * memory that cannot be had, ends the thread, and its memory with it.
 */
function answerTo(task: EncodingTask): EncodingAnswer {
  try {
    return { id: task.id, outcome: 'encoded', ...encodeBlock(task) };
  } catch (error) {
    if (error instanceof UnencodableRow)
      return {
        id: task.id,
        outcome: 'refused',
        row: error.row,
        column: error.column,
        reason: error.reason,
      };
    if (error instanceof MalformedBlock) return { id: task.id, outcome: 'malformed', message: error.message };
    throw error;
  }
}

parentPort?.on('message', (task: EncodingTask) => {
  const answer = answerTo(task);
  releaseMemory(new Uint8Array(task.block.buffer));
  parentPort?.postMessage(answer, answer.outcome === 'encoded' ? [answer.bytes.buffer] : []);
});
