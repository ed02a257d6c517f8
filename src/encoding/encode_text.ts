import { isUtf8 } from 'node:buffer';
import type { UnrepresentableValue } from './unrepresentable_value.ts';
import type { EncodingResult } from './encoding_task.ts';
import { createGrowingBuffer } from './growing_buffer.ts';
import { concatenableCompression } from './concatenable_compression.ts';
import { releaseMemory } from './release_memory.ts';
import type { Rows } from './rows.ts';
import { textFormats, type TextOptions } from './text_encoder.ts';
import { appendRows } from './text_rows.ts';
import { stateOfText } from './text_state.ts';

const initialSize = 4 * 1024 * 1024;
/** Beyond this the memory for a block's text is given back after the block. */
const keptSize = 16 * 1024 * 1024;

let text = createGrowingBuffer(initialSize);

/**
 * Encodes a block as text and compresses it, but for brotli, which compresses a file as a whole.
 * @returns null when a value is not UTF-8, which is quickly told of a whole text, but not of which value
 * @throws MalformedBlock, and what `onBadValue` throws
 */
export function encodeText(
  { file_format, compression }: TextOptions,
  rows: Rows,
  onBadValue: (bad: UnrepresentableValue) => void,
): Omit<EncodingResult, 'rejected'> | null {
  text.length = 0;
  try {
    const appended = appendRows(text, rows, textFormats[file_format], onBadValue);
    const written = text.bytes.subarray(0, text.length);
    if (!isUtf8(written)) return null;
    const bytes = compressed(compression, written);
    const state = compression === 'brotli' ? null : stateOfText(written);
    return { bytes, rows: appended, state };
  } finally {
    if (text.bytes.length > keptSize) {
      releaseMemory(text.bytes);
      text = createGrowingBuffer(initialSize);
    }
  }
}

/** In memory of its own, which can be handed to another thread; that of the text is kept for the next block. */
function compressed(compression: TextOptions['compression'], written: Buffer): Uint8Array<ArrayBuffer> {
  if (compression === null || compression === 'brotli') return new Uint8Array(written);
  const bytes = concatenableCompression(compression).compress(written);
  const own = new Uint8Array(bytes);
  // zlib gives out the beginning of the memory that it wrote into.
  releaseMemory(new Uint8Array(bytes.buffer));
  return own;
}
