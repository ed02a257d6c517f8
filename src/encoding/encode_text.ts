import { isUtf8 } from 'node:buffer';
import type { UnrepresentableValue } from './unrepresentable_value.ts';
import type { EncodingResult } from './encoding_task.ts';
import { createGrowingBuffer } from './growing_buffer.ts';
import { concatenableCompression } from './concatenable_compression.ts';
import { releaseMemory } from './release_memory.ts';
import type { Rows } from './rows.ts';
import { textFormats, type TextOptions } from './text_encoder.ts';
import { appendRows } from './text_rows.ts';
import { textStateOf } from './text_state.ts';

const initialSize = 4 * 1024 * 1024;
/** A larger buffer is released after the block. */
const maxRetainedSize = 16 * 1024 * 1024;

let text = createGrowingBuffer(initialSize);

/**
 * Encodes a block as text and compresses it, except for brotli, which compresses whole files.
 * @returns null when a value is not UTF-8: checking the whole text is fast, but does not find the value
 * @throws MalformedBlock, and errors of `onUnrepresentable`
 */
export function encodeText(
  { file_format, compression, compression_level }: TextOptions,
  rows: Rows,
  onUnrepresentable: (bad: UnrepresentableValue) => void,
): Pick<EncodingResult, 'bytes' | 'rows' | 'state'> | null {
  text.length = 0;
  try {
    const appended = appendRows(text, rows, textFormats[file_format], onUnrepresentable);
    const written = text.bytes.subarray(0, text.length);
    if (!isUtf8(written)) return null;
    const bytes = compressed(compression, compression_level, written);
    const state = compression === 'brotli' ? null : textStateOf(written);
    return { bytes, rows: appended, state };
  } finally {
    if (text.bytes.length > maxRetainedSize) {
      releaseMemory(text.bytes);
      text = createGrowingBuffer(initialSize);
    }
  }
}

/** Returns a buffer that can be transferred to another thread. The text buffer is reused for the next block. */
function compressed(
  compression: TextOptions['compression'],
  level: TextOptions['compression_level'],
  written: Buffer,
): Uint8Array<ArrayBuffer> {
  if (compression === null || compression === 'brotli') return new Uint8Array(written);
  const bytes = concatenableCompression(compression, level).compress(written);
  const copy = new Uint8Array(bytes);
  // zlib returns the start of its output buffer.
  releaseMemory(new Uint8Array(bytes.buffer));
  return copy;
}
