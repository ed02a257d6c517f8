/**
 * Gives the memory of these bytes back at once, if it belongs to nothing else; they are empty afterwards. Blocks are so
 * large, and the garbage beside them so little, that a collector would let many of them pile up before it comes.
 */
export function releaseMemory({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
