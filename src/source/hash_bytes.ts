/** A 64-bit hash as two unsigned halves. Numbers instead of a bigint, which would take most of the time. */
export interface Hash64 {
  high: number;
  low: number;
}

/**
 * PostgreSQL's `hash_bytes_extended` with seed 0 over `bytes[start..end)`: the hash of `uuid_hash_extended(uuid, 0)` and,
 * over UTF-8, of `hashtextextended(text collate "C", 0)`. It is Jenkins' lookup3 as a little-endian server computes it.
 * @param hash receives the result, so that nothing is allocated
 */
export function hashBytes(bytes: Uint8Array, start: number, end: number, hash: Hash64): void {
  let a = (0x9e37_79b9 + 3_923_095 + end - start) | 0;
  let b = a;
  let c = a;
  let at = start;
  for (; end - at >= 12; at += 12) {
    a = (a + wordAt(bytes, at, end)) | 0;
    b = (b + wordAt(bytes, at + 4, end)) | 0;
    c = (c + wordAt(bytes, at + 8, end)) | 0;
    a = (a - c) ^ ((c << 4) | (c >>> 28));
    c = (c + b) | 0;
    b = (b - a) ^ ((a << 6) | (a >>> 26));
    a = (a + c) | 0;
    c = (c - b) ^ ((b << 8) | (b >>> 24));
    b = (b + a) | 0;
    a = (a - c) ^ ((c << 16) | (c >>> 16));
    c = (c + b) | 0;
    b = (b - a) ^ ((a << 19) | (a >>> 13));
    a = (a + c) | 0;
    c = (c - b) ^ ((b << 4) | (b >>> 28));
    b = (b + a) | 0;
  }
  a = (a + wordAt(bytes, at, end)) | 0;
  b = (b + wordAt(bytes, at + 4, end)) | 0;
  // The lowest byte of the last word is that of the length.
  c = (c + (wordAt(bytes, at + 8, end) << 8)) | 0;
  c = ((c ^ b) - ((b << 14) | (b >>> 18))) | 0;
  a = ((a ^ c) - ((c << 11) | (c >>> 21))) | 0;
  b = ((b ^ a) - ((a << 25) | (a >>> 7))) | 0;
  c = ((c ^ b) - ((b << 16) | (b >>> 16))) | 0;
  a = ((a ^ c) - ((c << 4) | (c >>> 28))) | 0;
  b = ((b ^ a) - ((a << 14) | (a >>> 18))) | 0;
  c = ((c ^ b) - ((b << 24) | (b >>> 8))) | 0;
  hash.high = b >>> 0;
  hash.low = c >>> 0;
}

/** The four bytes at `at` as a little-endian word; bytes from `end` on are 0. */
const wordAt = (bytes: Uint8Array, at: number, end: number): number =>
  at + 4 <= end
    ? (bytes[at] ?? 0) |
      ((bytes[at + 1] ?? 0) << 8) |
      ((bytes[at + 2] ?? 0) << 16) |
      ((bytes[at + 3] ?? 0) << 24)
    : (at < end ? (bytes[at] ?? 0) : 0) |
      (at + 1 < end ? (bytes[at + 1] ?? 0) << 8 : 0) |
      (at + 2 < end ? (bytes[at + 2] ?? 0) << 16 : 0);
