/** Memory that text is written into; it grows as needed and is kept from block to block. */
export interface GrowingBuffer {
  bytes: Buffer;
  length: number;
}

export const createGrowingBuffer = (size: number): GrowingBuffer => ({
  bytes: Buffer.allocUnsafeSlow(size),
  length: 0,
});

/** Makes room for so many bytes after `length`. */
export function reserve(buffer: GrowingBuffer, size: number): void {
  const needed = buffer.length + size;
  if (needed <= buffer.bytes.length) return;
  const larger = Buffer.allocUnsafeSlow(Math.max(needed, buffer.bytes.length * 2));
  buffer.bytes.copy(larger, 0, 0, buffer.length);
  buffer.bytes = larger;
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
