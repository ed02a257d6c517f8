import { reserve, type GrowingBuffer } from '../growing_buffer.ts';

/** Shorter runs of a value are packed. */
const minRunLength = 8;

/**
 * Appends values in the encoding RLE of Parquet: runs of equal values, and other values packed in groups of eight.
 * @param bitWidth the bits of each value, from 1 to 16
 */
export function appendHybridRuns(
  target: GrowingBuffer,
  values: Uint8Array | Int32Array,
  count: number,
  bitWidth: number,
): void {
  reserve(target, hybridRunsBound(count, bitWidth));
  let packedFrom = 0;
  for (let at = 0; at < count;) {
    const value = values[at] ?? 0;
    let end = at + 1;
    while (end < count && values[end] === value) end += 1;
    if (end - at < minRunLength) at += 8;
    else {
      appendPacked(target, values, packedFrom, at, bitWidth);
      appendRun(target, value, end - at, bitWidth);
      at = packedFrom = end;
    }
  }
  appendPacked(target, values, packedFrom, count, bitWidth);
}

/** Appends one run of a value. */
export function appendRun(target: GrowingBuffer, value: number, length: number, bitWidth: number): void {
  reserve(target, maxRunBytes);
  appendVarInt(target, length * 2);
  for (let shift = 0; shift < bitWidth; shift += 8) appendByte(target, value >>> shift);
}

/** The header of up to five bytes and the value of up to two. */
const maxRunBytes = 8;

/** Maximum size of values in bytes: each run, and the packed values before it, replace at least eight packed values. */
const hybridRunsBound = (count: number, bitWidth: number): number =>
  2 * maxRunBytes * (1 + Math.ceil(count / minRunLength)) + Math.ceil(count / 8) * bitWidth;

/** The last group is filled with zeros. */
function appendPacked(
  target: GrowingBuffer,
  values: Uint8Array | Int32Array,
  from: number,
  until: number,
  bitWidth: number,
): void {
  if (from >= until) return;
  const groups = Math.ceil((until - from) / 8);
  appendVarInt(target, groups * 2 + 1);
  const { bytes } = target;
  const end = target.length + groups * bitWidth;
  let at = target.length;
  let bits = 0;
  let used = 0;
  for (let index = from; index < until; index += 1) {
    bits |= (values[index] ?? 0) << used;
    used += bitWidth;
    for (; used >= 8; used -= 8) {
      bytes[at] = bits;
      at += 1;
      bits >>>= 8;
    }
  }
  for (; at < end; at += 1) {
    bytes[at] = bits;
    bits = 0;
  }
  target.length = end;
}

function appendVarInt(target: GrowingBuffer, value: number): void {
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) appendByte(target, (rest & 0x7f) | 0x80);
  appendByte(target, rest);
}

function appendByte(target: GrowingBuffer, byte: number): void {
  target.bytes[target.length] = byte;
  target.length += 1;
}
