import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  bucketsToCompare,
  containsPublishedRows,
  emptyFingerprint,
  encodeBuckets,
  type Fingerprint,
  type FingerprintBucket,
} from '../../src/domain/fingerprint.ts';
import type { SortKey } from '../../src/domain/sort_key.ts';
import { planCuts, rangeSizeOf, splitInterval } from '../../src/export/count.ts';
import { createBucketSums, mergeKeys } from '../../src/export/exported_keys.ts';
import { compareKeys } from '../../src/readers/row.ts';
import { createPerExportLimit } from '../../src/export/per_export_limit.ts';
import { yieldSlotWhileStalled } from '../../src/export/yieldable_slots.ts';
import { allRows } from '../../src/source/row_selection.ts';
import type { RowRange } from '../../src/source/source.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { randomCases } from '../setup/effort.ts';
import { waitFor } from '../setup/wait_for.ts';

describe('splitting an interval', () => {
  const range: RowRange = {
    model: 'events',
    team_id: 1,
    interval: { start: '2026-11-01T10:00:00.000Z', end: '2026-11-01T11:04:00.000Z' },
    selection: allRows,
  };
  const bucketsWith = (...rows: number[]): FingerprintBucket[] =>
    rows.map((count, index) => ({ index, rows: count, sum: '0' })).filter((bucket) => bucket.rows > 0);
  const fingerprint = { ...fingerprintOf(0), width_ms: 60_000 };

  describe('the size of ranges', () => {
    const settings = { EXPORTD_PARALLEL_RANGES: 4, EXPORTD_RANGE_ROWS: 10_000_000 };
    it.each([
      [499_999, null],
      [500_000, { rows: 275_000, splitsBuckets: false }],
      [1_000_000, { rows: 275_000, splitsBuckets: false }],
      [10_000_000, { rows: 2_750_000, splitsBuckets: false }],
      [10_000_001, { rows: 10_000_000, splitsBuckets: true }],
      [1_000_000_000, { rows: 15_625_000, splitsBuckets: true }],
    ])('of an interval of %i rows is %j', (rows, size) => {
      expect(rangeSizeOf(rows, settings)).toEqual(size);
    });

    it('is not limited on one connection, unless the interval is very large', () => {
      const one = { ...settings, EXPORTD_PARALLEL_RANGES: 1 };
      expect(rangeSizeOf(10_000_000, one)).toBeNull();
      expect(rangeSizeOf(20_000_000, one)).toEqual({ rows: 10_000_000, splitsBuckets: true });
    });

    it('splits evenly spread rows into the ranges that are read at the same time', () => {
      const rows = Array.from({ length: 64 }, (_, index) => 15_625 + ((index * 7_919) % 400) - 200);
      const total = rows.reduce((sum, count) => sum + count, 0);
      const size = rangeSizeOf(total, settings);
      expect(size && planCuts({ encoded_buckets: encodeBuckets(bucketsWith(...rows)) }, size)).toHaveLength(
        3,
      );
    });
  });

  describe('the cuts of an interval', () => {
    it('make ranges of about the requested size, and cut inside a bucket only if it has more rows than a range', () => {
      fc.assert(
        fc.property(
          fc.array(fc.oneof(fc.nat({ max: 150 }), fc.integer({ min: 100, max: 1_000 })), { maxLength: 64 }),
          fc.integer({ min: 10, max: 300 }),
          (rows, every) => {
            const cuts = planCuts(
              { encoded_buckets: encodeBuckets(bucketsWith(...rows)) },
              { rows: every, splitsBuckets: true },
            );
            const ranges: number[] = [0];
            const inner: { rows: number; rowsInRange: number | undefined }[] = [];
            for (const [index, count] of rows.entries()) {
              if (count === 0) continue;
              if (cuts.some((cut) => 'before' in cut && cut.before === index)) ranges.push(0);
              const inside = cuts.find((cut) => 'inside' in cut && cut.inside === index);
              if (inside && 'inside' in inside) {
                inner.push({ rows: count, rowsInRange: ranges.at(-1) });
                for (let left = count; left > 0; left -= inside.every) {
                  if (left < count) ranges.push(0);
                  ranges.push((ranges.pop() ?? 0) + Math.min(left, inside.every));
                }
              } else ranges.push((ranges.pop() ?? 0) + count);
            }
            expect(
              inner.filter(({ rows: count, rowsInRange }) => count <= every || rowsInRange !== 0),
            ).toEqual([]);
            const total = rows.reduce((sum, count) => sum + count, 0);
            expect(ranges.reduce((sum, count) => sum + count, 0)).toBe(total);
            for (const count of ranges) expect(count).toBeLessThanOrEqual(1.5 * every);
            expect(ranges.length).toBeLessThanOrEqual(1 + (2 * total) / every);
          },
        ),
      );
    });

    it('are found without reading rows, except in a bucket with more rows than a range', async () => {
      const read: unknown[] = [];
      const inner = { inserted_at: '2026-11-01T10:03:00.000000Z', id: 'inside' };
      const source = {
        splitKeys: ({ interval }: RowRange, every: number) => {
          read.push([interval, every]);
          return Promise.resolve([inner]);
        },
      };
      let splitsBuckets = true;
      const split = (...rows: number[]) =>
        splitInterval(
          source,
          range,
          { ...fingerprint, encoded_buckets: encodeBuckets(bucketsWith(...rows)) },
          { rows: 100, splitsBuckets },
          new AbortController().signal,
        );
      const firstOf = (minute: number) => ({
        inserted_at: `2026-11-01T10:0${minute}:00.000000Z`,
        id: '00000000-0000-0000-0000-000000000000',
      });
      expect(await split(50, 50, 0, 60, 40)).toEqual([firstOf(3)]);
      expect(read).toEqual([]);
      expect(await split(50, 50, 0, 190, 60)).toEqual([firstOf(3), inner, firstOf(4)]);
      expect(read).toEqual([[{ start: '2026-11-01T10:03:00.000Z', end: '2026-11-01T10:04:00.000Z' }, 95]]);
      splitsBuckets = false;
      expect(await split(50, 50, 0, 190, 60)).toEqual([firstOf(3), firstOf(4)]);
      expect(read).toHaveLength(1);
    });
  });
});

describe('replacing a manifest', () => {
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
  const keysArb = fc.array(keyArb, { maxLength: 20 }).map((keys) => keys.toSorted(compareKeys));

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
      encoded_buckets: encodeBuckets([...sums.bucketsAt(indexes).values()]),
    };
  };

  describe('merging the keys of a manifest and of the source', () => {
    it('counts the keys that the source does not have, each as often as it occurs', async () => {
      await fc.assert(
        fc.asyncProperty(keysArb, keysArb, async (held, source) => {
          const seen: SortKey[] = [];
          const missing = await mergeKeys(each(held), each(source), { key: (key) => seen.push(key) });
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

  it('finds the late keys, except those that a row of the manifest has', async () => {
    await fc.assert(
      fc.asyncProperty(keysArb, keysArb, async (held, source) => {
        const late: SortKey[] = [];
        await mergeKeys(each(held), each(source), { key: () => undefined, late: (key) => late.push(key) });
        const published = occurrences(held);
        expect(late).toEqual(source.filter((key) => !published.has(JSON.stringify(key))));
      }),
      { numRuns: randomCases(200) },
    );
  });

  describe('buckets', () => {
    it('differ only where rows of the manifest may be missing', async () => {
      await fc.assert(
        fc.asyncProperty(keysArb, keysArb, async (held, source) => {
          const differing = bucketsToCompare(fingerprintOf(held), fingerprintOf(source));
          const missing = await mergeKeys(each(held), each(source), { key: () => undefined });
          expect(differing.length > 0 || missing === 0).toBe(true);
        }),
        { numRuns: randomCases(200) },
      );
    });

    it('show that exported rows contain those of the manifest, or nothing', async () => {
      await fc.assert(
        fc.asyncProperty(keysArb, keysArb, keysArb, async (held, late, exported) => {
          // The source was compared when it had all rows of the manifest, and late ones.
          const proven = [...held, ...late].toSorted(compareKeys);
          const missing = await mergeKeys(each(held), each(exported), { key: () => undefined });
          const isContained = containsPublishedRows(
            fingerprintOf(exported),
            fingerprintOf(held),
            fingerprintOf(proven),
          );
          expect(isContained && missing > 0).toBe(false);
          expect(
            containsPublishedRows(fingerprintOf(proven), fingerprintOf(held), fingerprintOf(proven)),
          ).toBe(true);
        }),
        { numRuns: randomCases(200) },
      );
    });
  });
});

describe('the limit per export', () => {
  /** A limit, and how many slots its waiters yield. */
  function limitOf(perExport: number) {
    let yielded = 0;
    const yieldSlot = () => {
      yielded += 1;
      return () => {
        yielded -= 1;
      };
    };
    const { acquire } = createPerExportLimit(perExport);
    return {
      acquire: (id: string, signal: AbortSignal) => acquire(id, signal, { yieldSlot }),
      yielded: () => yielded,
    };
  }
  const never = new AbortController().signal;

  it('applies to each export; waiters yield their slots and proceed in order', async () => {
    const { acquire, yielded } = limitOf(1);
    const first = await acquire('a', never);
    expect(await acquire('b', never)).toMatchObject({ waited: false });
    const order: string[] = [];
    const second = acquire('a', never).then((permit) => {
      order.push('second');
      return permit;
    });
    const third = acquire('a', never).then(() => order.push('third'));
    expect(yielded()).toBe(2);
    first.release();
    first.release();
    const permit = await second;
    expect(permit.waited).toBe(true);
    permit.release();
    await third;
    expect(order).toEqual(['second', 'third']);
    expect(yielded()).toBe(0);
  });

  it('reserves nothing for a cancelled waiter', async () => {
    const { acquire, yielded } = limitOf(1);
    const first = await acquire('a', never);
    const cancelled = new AbortController();
    const waiting = acquire('a', cancelled.signal);
    const reason = new Error('CANCELLED');
    cancelled.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(acquire('a', cancelled.signal)).rejects.toBe(reason);
    first.release();
    expect(await acquire('a', never)).toMatchObject({ waited: false });
    expect(yielded()).toBe(0);
  });
});

describe('a slot', () => {
  /** Slots of which some are yielded, and rows of an attempt. */
  function openSlots() {
    const state = { rows: 0, yielded: 0 };
    const yieldSlot = () => {
      state.yielded += 1;
      return () => {
        state.yielded -= 1;
      };
    };
    return { state, slots: { yieldSlot }, progress: () => state.rows };
  }

  it('is yielded at once when the work reports a stall, and reclaimed at the end', async () => {
    const { state, slots, progress } = openSlots();
    await yieldSlotWhileStalled(slots, progress, ({ stalled }) => {
      stalled();
      stalled();
      expect(state.yielded).toBe(1);
      return Promise.resolve();
    });
    expect(state.yielded).toBe(0);
  });

  it('is yielded without progress, and reclaimed after progress and at the end', async () => {
    const { state, slots, progress } = openSlots();
    await yieldSlotWhileStalled(
      slots,
      progress,
      async ({ stalled }) => {
        stalled();
        state.rows += 1;
        await waitFor(() => state.yielded === 0, 'the slot is reclaimed');
        await waitFor(() => state.yielded === 1, 'the slot is yielded when the work makes no progress');
      },
      100,
    );
    expect(state.yielded).toBe(0);
  });

  it('is yielded once, as long as there is a reason', async () => {
    const { state, slots, progress } = openSlots();
    await yieldSlotWhileStalled(slots, progress, ({ stalled, yieldSlot }) => {
      const [first, second] = [yieldSlot(), yieldSlot()];
      stalled();
      first?.();
      first?.();
      second?.();
      expect(state.yielded).toBe(1);
      return Promise.resolve();
    });
    expect(state.yielded).toBe(0);
  });
});
