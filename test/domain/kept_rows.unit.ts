import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  emptyFingerprint,
  encodeBuckets,
  type Fingerprint,
  haveSameRows,
} from '../../src/domain/fingerprint.ts';
import { encodeHashes, keptRows, maxKnownRows, type RowHash } from '../../src/domain/kept_rows.ts';
import { randomCases } from '../setup/effort.ts';

const hour = { start: '2026-11-01T10:00:00.000Z', end: '2026-11-01T11:00:00.000Z' };
const none = emptyFingerprint(hour, 'uuid_hash_extended/0');
const fingerprintOf = (rows: readonly RowHash[]): Fingerprint => ({
  ...none,
  encoded_buckets: encodeBuckets(
    [...Map.groupBy(rows, ({ index }) => index)].map(([index, inBucket]) => ({
      index,
      rows: inBucket.length,
      sum: inBucket.reduce((sum, { hash }) => sum + hash, 0n).toString(),
    })),
  ),
});
const inOrder = (rows: readonly RowHash[]): readonly RowHash[] =>
  rows.toSorted((one, other) => one.index - other.index);

/** What files and source have of an interval whose kept rows are known one by one, or by bucket alone. */
interface Interval {
  readonly kept: readonly RowHash[];
  readonly files: readonly RowHash[];
  readonly source: readonly RowHash[];
  readonly areKnown?: boolean;
}

/** The kept rows that the source lacks, and the buckets whose rows were read. */
async function find({ kept, files, source, areKnown = true }: Interval) {
  const read: number[] = [];
  const found = await keptRows(
    fingerprintOf(kept),
    { files: fingerprintOf(files), source: fingerprintOf(source) },
    {
      hashes: () => Promise.resolve(areKnown ? encodeHashes(inOrder(kept).map(({ hash }) => hash)) : null),
      sourceRows: async function* sourceRows(indexes) {
        read.push(...indexes);
        for (const row of source) if (indexes.includes(row.index)) yield await Promise.resolve(row);
      },
    },
  );
  return { found, read };
}

const without = (rows: readonly RowHash[], some: readonly RowHash[]): RowHash[] =>
  rows.filter((row) => !some.includes(row));
/** Four rows in each of two buckets. */
const files: readonly RowHash[] = Array.from({ length: 8 }, (_, number) => ({
  index: Math.floor(number / 4),
  hash: 2n ** 60n + 7n ** BigInt(number),
}));
const kept = files.slice(0, 3);
const late: RowHash = { index: 0, hash: 5n };

describe('kept rows', () => {
  it.each<[string, readonly RowHash[], readonly RowHash[], readonly number[]]>([
    ['all are lacking', without(files, kept), kept, []],
    ['all are back', files, [], []],
    ['some are back', without(files, kept.slice(1)), kept.slice(1), [0]],
    ['others are lacking too', without(files, files.slice(0, 4)), kept, [0]],
    ['one is back, and another one is lacking', without(files, files.slice(1, 4)), kept.slice(1), [0]],
    ['rows of another bucket are lacking', without(files, [...kept, ...files.slice(4)]), kept, []],
    ['late rows are there', [...without(files, kept), late], kept, [0]],
    ['late rows are there in place of some that are back', [...files.slice(2), late], kept.slice(0, 2), [0]],
  ])('are told from others: %s', async (_, source, expected, read) => {
    expect(await find({ kept, files, source })).toEqual({ found: fingerprintOf(expected), read });
  });

  it.each<[string, readonly RowHash[], readonly RowHash[]]>([
    ['all are lacking', without(files, kept), kept],
    ['all are back', files, []],
    ['some are back', without(files, kept.slice(1)), kept],
  ])('that are not known one by one come back by bucket: %s', async (_, source, expected) => {
    const found = await find({ kept, files, source, areKnown: false });
    expect(found).toEqual({ found: fingerprintOf(expected), read: [] });
  });

  it('are those that the source lacks, and no other loss is decided', async () => {
    const rowsArb = fc.uniqueArray(
      fc.record({
        index: fc.nat({ max: 2 }),
        // Powers of two, so that different sets have different sums.
        hash: fc.nat({ max: 20 }).map((id) => 2n ** BigInt(3 * id)),
        isKept: fc.boolean(),
        isInFiles: fc.boolean(),
        isInSource: fc.boolean(),
      }),
      { selector: ({ hash }) => hash, maxLength: 20 },
    );
    await fc.assert(
      fc.asyncProperty(rowsArb, async (rows) => {
        const inFiles = rows.filter(({ isInFiles, isKept }) => isInFiles || isKept);
        const source = rows.filter(({ isInSource }) => isInSource);
        const kept = rows.filter(({ isKept }) => isKept);
        const expected = kept.filter(({ isInSource }) => !isInSource);
        // As fingerprints compare them, and as keys do.
        const { found } = await find({ kept, files: inFiles, source });
        expect(found).toEqual(fingerprintOf(expected));
        const lost = inFiles.filter(({ isInSource }) => !isInSource);
        const byKey = await keptRows(
          fingerprintOf(kept),
          { files: fingerprintOf(lost), source: none },
          {
            hashes: () => Promise.resolve(encodeHashes(inOrder(kept).map(({ hash }) => hash))),
            sourceRows: async function* sourceRows() {
              for (const row of source) yield await Promise.resolve(row);
            },
          },
        );
        expect(byKey).toEqual(found);
        expect(haveSameRows(fingerprintOf(lost), byKey)).toBe(lost.every(({ isKept }) => isKept));
      }),
      { numRuns: randomCases(300) },
    );
  });

  it('of another kind of fingerprint are none of these', async () => {
    const states = { ...fingerprintOf(kept), of_states: true as const };
    const rows = { files: fingerprintOf(files), source: none };
    const nothing = (): never => {
      throw new Error('Nothing is read.');
    };
    expect(await keptRows(states, rows, { hashes: nothing, sourceRows: nothing })).toBe(states);
  });

  it('take 8 bytes each, and are at most 10,000', () => {
    const hashes = Array.from({ length: maxKnownRows }, (_, number) => BigInt(number));
    expect(maxKnownRows).toBe(10_000);
    expect(Buffer.from(encodeHashes(hashes) ?? '', 'base64')).toHaveLength(80_000);
    expect(encodeHashes([...hashes, 1n])).toBeNull();
  });
});
