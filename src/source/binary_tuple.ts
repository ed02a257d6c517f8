/** Rows as binary COPY sends them. */

/** The byte range of a field in a block. */
interface Field {
  readonly start: number;
  readonly end: number;
}

/** The bytes of field `field` (from 0) of the binary COPY tuple at `tupleAt`. For null, `end` is less than `start`. */
export function fieldOf(block: Buffer, tupleAt: number, field: number): Field {
  let at = tupleAt + 2;
  for (let passed = 0; passed < field; passed += 1) at += 4 + Math.max(0, block.readInt32BE(at));
  const start = at + 4;
  return { start, end: start + block.readInt32BE(at) };
}

/** The end of the binary COPY tuple at an offset. */
export function endOfTuple(block: Buffer, start: number): number {
  let at = start + 2;
  for (let left = block.readInt16BE(start); left > 0; left -= 1) at += 4 + Math.max(0, block.readInt32BE(at));
  return at;
}

/** Formats the binary uuid at `at`. */
export function formatUuid(source: Buffer, at: number): string {
  const text = source.toString('hex', at, at + 16);
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`;
}
