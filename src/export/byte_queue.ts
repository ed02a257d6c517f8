import { releaseMemory } from '../encoding/release_memory.ts';

/** Bytes that wait for the next part. */
export interface ByteQueue {
  readonly length: number;
  push(bytes: Buffer): void;
  /** Takes bytes from the front as one buffer, and releases the buffers that are used up. */
  take(length: number): Buffer;
}

/** Creates an empty queue. It owns the buffers that are pushed. */
export function createByteQueue(): ByteQueue {
  let chunks: Buffer[] = [];
  /** How many bytes of the first chunk were taken. */
  let taken = 0;
  let length = 0;
  return {
    get length() {
      return length;
    },
    push: (bytes) => {
      if (bytes.length > 0) chunks.push(bytes);
      length += bytes.length;
    },
    take: (wanted) => {
      const body = Buffer.allocUnsafeSlow(wanted);
      let filled = 0;
      let used = 0;
      for (const chunk of chunks) {
        if (filled === wanted) break;
        const copied = chunk.copy(body, filled, taken, taken + wanted - filled);
        filled += copied;
        taken += copied;
        if (taken < chunk.length) break;
        used += 1;
        taken = 0;
      }
      for (const chunk of chunks.slice(0, used)) releaseMemory(chunk);
      chunks = chunks.slice(used);
      length -= filled;
      return body;
    },
  };
}
