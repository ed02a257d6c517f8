import { ByteWriter } from 'hyparquet-writer';
import { serializeTCompactProtocol } from 'hyparquet-writer/src/thrift.js';
import type { Hash64 } from '../../source/hash_bytes.ts';
import type { FileColumn } from './file_columns.ts';

/** The primes of xxHash64 as two halves. */
const [p1High, p1Low] = [0x9e37_79b1, 0x85eb_ca87];
const [p2High, p2Low] = [0xc2b2_ae3d, 0x27d4_eb4f];
const [p3High, p3Low] = [0x1656_67b1, 0x9e37_79f9];
const [p4High, p4Low] = [0x85eb_ca77, 0xc2b2_ae63];
const [p5High, p5Low] = [0x27d4_eb2f, 0x1656_67c5];

/** The number that is computed, as two halves: bigints would take most of the time. */
let high = 0;
let low = 0;

/** The four sums of a long value, as halves in turn. */
const lanes = new Int32Array(8);

/** xxHash64 with seed 0 of the bytes `[start, end)`, as Parquet's bloom filters use it. @param hash receives the result */
export function xxHash64(view: DataView, start: number, end: number, hash: Hash64): void {
  let at = start;
  if (end - start >= 32) at = startLong(view, start, end);
  else set(p5High, p5Low);
  add(0, end - start);
  for (; at + 8 <= end; at += 8) {
    const [beforeHigh, beforeLow] = [high, low];
    set(0, 0);
    addWord(view.getInt32(at + 4, true), view.getInt32(at, true));
    set(high ^ beforeHigh, low ^ beforeLow);
    rotate(27);
    multiply(p1High, p1Low);
    add(p4High, p4Low);
  }
  if (at + 4 <= end) {
    mixSmall(view.getInt32(at, true), p1High, p1Low);
    rotate(23);
    multiply(p2High, p2Low);
    add(p3High, p3Low);
    at += 4;
  }
  for (; at < end; at += 1) {
    mixSmall(view.getUint8(at), p5High, p5Low);
    rotate(11);
    multiply(p1High, p1Low);
  }
  low ^= high >>> 1;
  multiply(p2High, p2Low);
  set(high ^ (high >>> 29), low ^ ((high << 3) | (low >>> 29)));
  multiply(p3High, p3Low);
  hash.high = high >>> 0;
  hash.low = (low ^ high) >>> 0;
}

/** Hashes the part of a value whose length is a multiple of 32. @returns its end */
function startLong(view: DataView, start: number, end: number): number {
  set(p1High, p1Low);
  add(p2High, p2Low);
  lanes.set([high, low, p2High, p2Low, 0, 0]);
  set(~p1High, ~p1Low);
  add(0, 1);
  lanes.set([high, low], 6);
  let at = start;
  for (; at + 32 <= end; at += 32)
    for (let lane = 0; lane < 4; lane += 1) {
      load(lane);
      addWord(view.getInt32(at + lane * 8 + 4, true), view.getInt32(at + lane * 8, true));
      lanes[lane * 2] = high;
      lanes[lane * 2 + 1] = low;
    }
  let [sumHigh, sumLow] = [0, 0];
  for (const [lane, bits] of [1, 7, 12, 18].entries()) {
    load(lane);
    rotate(bits);
    add(sumHigh, sumLow);
    [sumHigh, sumLow] = [high, low];
  }
  for (let lane = 0; lane < 4; lane += 1) {
    set(0, 0);
    addWord(lanes[lane * 2] ?? 0, lanes[lane * 2 + 1] ?? 0);
    set(high ^ sumHigh, low ^ sumLow);
    multiply(p1High, p1Low);
    add(p4High, p4Low);
    [sumHigh, sumLow] = [high, low];
  }
  return at;
}

const load = (lane: number): void => set(lanes[lane * 2] ?? 0, lanes[lane * 2 + 1] ?? 0);

function set(newHigh: number, newLow: number): void {
  high = newHigh | 0;
  low = newLow | 0;
}

/** Adds a word of eight bytes to a sum. */
function addWord(wordHigh: number, wordLow: number): void {
  const [sumHigh, sumLow] = [high, low];
  set(wordHigh, wordLow);
  multiply(p2High, p2Low);
  add(sumHigh, sumLow);
  rotate(31);
  multiply(p1High, p1Low);
}

/** Mixes a number of 32 bits in, multiplied by a prime. */
function mixSmall(value: number, primeHigh: number, primeLow: number): void {
  const [beforeHigh, beforeLow] = [high, low];
  set(0, value);
  multiply(primeHigh, primeLow);
  set(high ^ beforeHigh, low ^ beforeLow);
}

function add(otherHigh: number, otherLow: number): void {
  const sum = (low >>> 0) + (otherLow >>> 0);
  set(high + otherHigh + (sum > 0xffff_ffff ? 1 : 0), sum);
}

/** Rotates to the left by fewer than 32 bits. */
const rotate = (bits: number): void =>
  set((high << bits) | (low >>> (32 - bits)), (low << bits) | (high >>> (32 - bits)));

/** Multiplies in halves of 16 bits, whose products are exact. */
function multiply(otherHigh: number, otherLow: number): void {
  const [a, b] = [low & 0xffff, low >>> 16];
  const [c, d] = [otherLow & 0xffff, otherLow >>> 16];
  const [lowest, cross, otherCross] = [Math.imul(a, c) >>> 0, Math.imul(a, d) >>> 0, Math.imul(b, c) >>> 0];
  const middle = (lowest >>> 16) + (cross & 0xffff) + (otherCross & 0xffff);
  const carried = (cross >>> 16) + (otherCross >>> 16) + (middle >>> 16);
  set(
    Math.imul(b, d) + carried + Math.imul(high, otherLow) + Math.imul(low, otherHigh),
    (middle << 16) | (lowest & 0xffff),
  );
}

/** The columns that identify rows and persons. */
const filteredNames: ReadonlySet<string> = new Set(['uuid', 'distinct_id']);

/** Whether a column gets a bloom filter in files that have them. */
export const isFiltered = ({ name, type }: FileColumn): boolean => filteredNames.has(name) && type === 'text';

/** Bits per value, for one false positive in a hundred. */
const bitsPerValue = 9.68;
const [minBytes, maxBytes] = [32, 1024 * 1024];

/** Parquet's constants, one for each word of a block. */
const salts = [
  0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31,
];

/** Hashes of values, each as its low and its high half. */
export type ValueHashes = Uint32Array<ArrayBuffer>;

const hash = { high: 0, low: 0 };

/** Hashes the value `[start, end)` as number `index`. */
export function hashValue(
  hashes: ValueHashes,
  index: number,
  view: DataView,
  start: number,
  end: number,
): void {
  xxHash64(view, start, end, hash);
  hashes[index * 2] = hash.low;
  hashes[index * 2 + 1] = hash.high;
}

/** A split block bloom filter with its header. Its size is a power of two, as Arrow requires. */
export function bloomFilterOf(hashes: readonly ValueHashes[]): Buffer {
  const values = hashes.reduce((sum, { length }) => sum + length / 2, 0);
  const wanted = Math.min(maxBytes, Math.max(minBytes, (values * bitsPerValue) / 8));
  const bytes = 2 ** Math.ceil(Math.log2(wanted));
  const filter = Buffer.alloc(bytes);
  const words = new DataView(filter.buffer, filter.byteOffset, bytes);
  const blocks = bytes / 32;
  for (const some of hashes)
    for (let index = 0; index < some.length; index += 2) {
      const low = some[index] ?? 0;
      // The upper 32 bits of the product.
      const block = Math.floor(((some[index + 1] ?? 0) * blocks) / 0x1_0000_0000);
      for (let word = 0; word < 8; word += 1) {
        const at = block * 32 + word * 4;
        const bit = 1 << (Math.imul(low, salts[word] ?? 0) >>> 27);
        words.setInt32(at, words.getInt32(at, true) | bit, true);
      }
    }
  const header = new ByteWriter(64);
  // Size, then algorithm (split blocks), hash (xxHash) and compression (none), each the first variant of a union.
  serializeTCompactProtocol(header, {
    field_1: bytes,
    field_2: { field_1: {} },
    field_3: { field_1: {} },
    field_4: { field_1: {} },
  });
  return Buffer.concat([header.getBytes(), filter]);
}
