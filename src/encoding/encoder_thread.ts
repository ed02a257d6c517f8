import { parentPort } from 'node:worker_threads';
import { constants, crc32, deflateRawSync } from 'node:zlib';
import { createGrowingBuffer } from './growing_buffer.ts';
import { appendJsonLines } from './json_lines.ts';
import { MalformedBlock, RowNotEncodable } from './row_not_encodable.ts';
import type { EncodingAnswer, EncodingTask } from './encoding_task.ts';

/**
 * The program of an encoder thread: takes tasks one after another and answers each. Node runs it from this source also
 * where the rest of the process was translated (Jest).
 */

const initialSize = 4 * 1024 * 1024;
/** Beyond this the memory for a page's text is given back after the page. */
const keptSize = 128 * 1024 * 1024;
const compressedChunk = 1024 * 1024;
let text = createGrowingBuffer(initialSize);

function encode(task: EncodingTask): EncodingAnswer & { ok: true } {
  const block = Buffer.from(task.block.buffer, task.block.byteOffset, task.block.byteLength);
  text.length = 0;
  const rows = appendJsonLines(text, block, task.columns);
  if (rows !== task.rows)
    throw new MalformedBlock(`A block holds ${rows} rows where its page says ${task.rows}.`);
  const written = text.bytes.subarray(0, text.length);
  const bytes =
    task.options.compression === 'gzip'
      ? deflateRawSync(written, {
          level: 6,
          memLevel: 9,
          chunkSize: compressedChunk,
          // Ends on a whole byte and forgets what came before, so that the next block may come from any thread.
          finishFlush: constants.Z_FULL_FLUSH,
        })
      : Buffer.from(written);
  const state = { crc32: crc32(written), length: written.length };
  if (text.bytes.length > keptSize) text = createGrowingBuffer(initialSize);
  return { id: task.id, ok: true, bytes: ownMemory(bytes), text: state };
}

/** Only memory that belongs to the bytes alone can be handed over; Node keeps small buffers together. */
const ownMemory = (bytes: Buffer): Uint8Array<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength === bytes.byteLength
    ? new Uint8Array(bytes.buffer)
    : new Uint8Array(bytes);

parentPort?.on('message', (task: EncodingTask) => {
  try {
    const answer = encode(task);
    parentPort?.postMessage(answer, [answer.bytes.buffer]);
  } catch (error) {
    const refused: EncodingAnswer =
      error instanceof RowNotEncodable
        ? { id: task.id, ok: false, row: error.row, column: error.column, reason: error.reason }
        : { id: task.id, ok: false, message: error instanceof Error ? error.message : String(error) };
    parentPort?.postMessage(refused);
  }
});
