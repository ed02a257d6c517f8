/** Memory that text is written into; it grows as needed and is kept from block to block. */
export interface GrowingBuffer {
  bytes: Buffer;
  /** The same memory as `bytes`. */
  view: DataView;
  length: number;
}

/** Makes one that holds so many bytes before it has to grow. */
export function createGrowingBuffer(size: number): GrowingBuffer {
  const bytes = Buffer.allocUnsafeSlow(size);
  return { bytes, view: new DataView(bytes.buffer), length: 0 };
}

/** Memory is doubled up to this many bytes; beyond, it grows by what is needed and a little more. */
const mostDoubled = 8 * 1024 * 1024;

/** Makes room for so many bytes after `length`. */
export function reserve(buffer: GrowingBuffer, size: number): void {
  const needed = buffer.length + size;
  if (needed <= buffer.bytes.length) return;
  // A single large value is not to take twice its size.
  const larger = Buffer.allocUnsafeSlow(
    Math.ceil(Math.max(needed * 1.125, Math.min(needed, mostDoubled) * 2)),
  );
  buffer.bytes.copy(larger, 0, 0, buffer.length);
  buffer.bytes = larger;
  buffer.view = new DataView(larger.buffer);
}

/** Below this many bytes a loop is faster than a call into Node. */
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

/** Bytes that are appended again and again, four at a time, the last ones with zeros behind them. */
export interface FixedBytes {
  readonly words: Int32Array;
  readonly length: number;
}

/** Makes ready what is appended again and again. */
export function fixedBytes(bytes: Buffer): FixedBytes {
  const padded = Buffer.alloc(Math.ceil(bytes.length / 4) * 4);
  bytes.copy(padded);
  const words = Int32Array.from({ length: padded.length / 4 }, (_, index) => padded.readInt32LE(index * 4));
  return { words, length: bytes.length };
}

/** Appends such bytes, word by word. */
export function appendFixed(target: GrowingBuffer, { words, length }: FixedBytes): void {
  reserve(target, words.length * 4);
  const { view } = target;
  for (let word = 0, to = target.length; word < words.length; word += 1, to += 4)
    view.setInt32(to, words[word] ?? 0, true);
  target.length += length;
}
