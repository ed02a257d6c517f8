import { ByteWriter } from 'hyparquet-writer';
import { serializeTCompactProtocol } from 'hyparquet-writer/src/thrift.js';
import type { ExportedColumn } from '../../source/columns.ts';
import { xxHash64 } from './xxhash64.ts';

/** The columns that identify rows and persons. */
const filteredNames: ReadonlySet<string> = new Set(['uuid', 'distinct_id']);

/** Whether a column gets a bloom filter in files that have them. */
export const isFiltered = ({ name, type }: ExportedColumn): boolean =>
  filteredNames.has(name) && (type === 'uuid' || type === 'text');

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
