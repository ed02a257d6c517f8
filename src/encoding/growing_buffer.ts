/** A buffer that grows as needed and is reused from block to block. */
export interface GrowingBuffer {
  bytes: Buffer;
  /** The same memory as `bytes`. */
  view: DataView;
  length: number;
}

/** Creates a buffer with an initial capacity in bytes. */
export function createGrowingBuffer(size: number): GrowingBuffer {
  const bytes = Buffer.allocUnsafeSlow(size);
  return { bytes, view: new DataView(bytes.buffer), length: 0 };
}

/** The capacity is doubled up to this size in bytes. Larger buffers grow to what is needed plus an eighth. */
const maxDoubledSize = 8 * 1024 * 1024;

/** Ensures capacity for `size` more bytes. */
export function reserve(buffer: GrowingBuffer, size: number): void {
  const needed = buffer.length + size;
  if (needed <= buffer.bytes.length) return;
  // A single large value must not take twice its size.
  const larger = Buffer.allocUnsafeSlow(
    Math.ceil(Math.max(needed * 1.125, Math.min(needed, maxDoubledSize) * 2)),
  );
  buffer.bytes.copy(larger, 0, 0, buffer.length);
  buffer.bytes = larger;
  buffer.view = new DataView(larger.buffer);
}

/** Below this size in bytes, a loop is faster than a call into Node. */
const shortCopy = 48;

/** Appends the bytes `[start, end)` of `source`. */
export function appendBytes(target: GrowingBuffer, source: Buffer, start: number, end: number): void {
  reserve(target, end - start);
  const { bytes } = target;
  if (end - start < shortCopy)
    for (let from = start, to = target.length; from < end; from += 1, to += 1) bytes[to] = source[from] ?? 0;
  else source.copy(bytes, target.length, start, end);
  target.length += end - start;
}

/** Bytes that are appended often, as 32-bit words. The last word is padded with zeros. */
export interface FixedBytes {
  readonly words: Int32Array;
  readonly length: number;
}

/** Prepares bytes that are appended often. */
export function prepareFixedBytes(bytes: Buffer): FixedBytes {
  const padded = Buffer.alloc(Math.ceil(bytes.length / 4) * 4);
  bytes.copy(padded);
  const words = Int32Array.from({ length: padded.length / 4 }, (_, index) => padded.readInt32LE(index * 4));
  return { words, length: bytes.length };
}

/** Appends prepared bytes word by word. */
export function appendFixed(target: GrowingBuffer, { words, length }: FixedBytes): void {
  reserve(target, words.length * 4);
  const { view } = target;
  for (let word = 0, to = target.length; word < words.length; word += 1, to += 4)
    view.setInt32(to, words[word] ?? 0, true);
  target.length += length;
}
