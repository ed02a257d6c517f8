/**
 * Releases the buffer of these bytes immediately if nothing else uses it; they are empty afterwards. Blocks are large
 * and produce little other garbage, so the garbage collector would let many of them accumulate.
 */
export function releaseMemory({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
