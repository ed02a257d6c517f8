import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { bucketsToCompare, containsHeldRows, type SortKey } from '../../src/domain/exported_files.ts';
import { emptyFingerprint, type Fingerprint } from '../../src/domain/fingerprint.ts';
import { compareSortKeys, createBucketSums, mergeKeys } from '../../src/export/exported_keys.ts';
import { randomCases } from '../setup/effort.ts';

const start = '2026-01-01T10:00:00.000Z';
const interval = { start, end: '2026-01-01T11:00:00.000Z' };
const { width_ms } = emptyFingerprint(interval, 'uuid_hash_extended/0');

/** Few times and uuids, so that keys occur on both sides and several times. */
const keyArb: fc.Arbitrary<SortKey> = fc
  .record({ minute: fc.integer({ min: 0, max: 5 }), id: fc.integer({ min: 0, max: 3 }) })
  .map(({ minute, id }) => ({
    inserted_at: `2026-01-01T10:${String(minute * 10).padStart(2, '0')}:00.000001Z`,
    id: `0000000${id}-0000-4000-8000-000000000000`,
  }));
const keysArb = fc.array(keyArb, { maxLength: 20 }).map((keys) => keys.toSorted(compareSortKeys));

async function* each(keys: readonly SortKey[]): AsyncGenerator<SortKey> {
  for (const key of keys) yield await Promise.resolve(key);
}

const occurrences = (keys: readonly SortKey[]): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(JSON.stringify(key), (counts.get(JSON.stringify(key)) ?? 0) + 1);
  return counts;
};

const fingerprintOf = (keys: readonly SortKey[]): Fingerprint => {
  const sums = createBucketSums(start, width_ms);
  for (const key of keys) sums.add(key);
  const indexes = Array.from({ length: 64 }, (_, index) => index);
  return {
    ...emptyFingerprint(interval, 'uuid_hash_extended/0'),
    buckets: [...sums.bucketsAt(indexes).values()].filter(({ rows }) => rows > 0),
  };
};

describe('merging the keys of a manifest and of the source', () => {
  it('counts the keys that the source does not have, each as often as it occurs', async () => {
    await fc.assert(
      fc.asyncProperty(keysArb, keysArb, async (held, source) => {
        const seen: SortKey[] = [];
        const missing = await mergeKeys(each(held), each(source), (key) => seen.push(key));
        const inSource = occurrences(source);
        const expected = [...occurrences(held)].reduce(
          (sum, [key, count]) => sum + Math.max(0, count - (inSource.get(key) ?? 0)),
          0,
        );
        expect(missing).toBe(expected);
        expect(seen).toEqual(source);
      }),
      { numRuns: randomCases(200) },
    );
  });
});

describe('buckets', () => {
  it('differ only where rows of the manifest may be missing', async () => {
    await fc.assert(
      fc.asyncProperty(keysArb, keysArb, async (held, source) => {
        const differing = bucketsToCompare(fingerprintOf(held), fingerprintOf(source));
        const missing = await mergeKeys(each(held), each(source), () => undefined);
        expect(differing.length > 0 || missing === 0).toBe(true);
      }),
      { numRuns: randomCases(200) },
    );
  });

  it('show that exported rows contain those of the manifest, or nothing', async () => {
    await fc.assert(
      fc.asyncProperty(keysArb, keysArb, keysArb, async (held, late, exported) => {
        // The source was compared when it had all rows of the manifest, and late ones.
        const proven = [...held, ...late].toSorted(compareSortKeys);
        const missing = await mergeKeys(each(held), each(exported), () => undefined);
        const isContained = containsHeldRows(
          fingerprintOf(exported),
          fingerprintOf(held),
          fingerprintOf(proven),
        );
        expect(isContained && missing > 0).toBe(false);
        expect(containsHeldRows(fingerprintOf(proven), fingerprintOf(held), fingerprintOf(proven))).toBe(
          true,
        );
      }),
      { numRuns: randomCases(200) },
    );
  });
});
