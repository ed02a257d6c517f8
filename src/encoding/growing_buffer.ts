/** Memory that text is written into; it grows as needed and is kept from page to page. */
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
