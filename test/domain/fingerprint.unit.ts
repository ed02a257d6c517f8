import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  addFingerprints,
  areComparable,
  bucketInterval,
  bucketsOf,
  bucketWidthMs,
  differingBuckets,
  emptyFingerprint,
  encodeBuckets,
  type Fingerprint,
  haveSameRows,
  maxFingerprintBuckets,
  rowsOfFingerprint,
  subtractFingerprint,
} from '../../src/domain/fingerprint.ts';

const hour = { start: '2026-11-01T10:00:00.000Z', end: '2026-11-01T11:00:00.000Z' };
const none = emptyFingerprint(hour, 'uuid_hash_extended/0');
const max = 2n ** 64n;

/** A row: its bucket and the hash of its id. */
type Row = readonly [index: number, hash: bigint];
const rowArb: fc.Arbitrary<Row> = fc.tuple(fc.nat({ max: 3 }), fc.bigInt({ min: 0n, max: max - 1n }));
const rowsArb = fc.array(rowArb, { maxLength: 20 });
const of = (rows: readonly Row[]): Fingerprint =>
  rows.reduce(
    (sum, [index, hash]) =>
      addFingerprints(sum, {
        ...none,
        encoded_buckets: encodeBuckets([{ index, rows: 1, sum: hash.toString() }]),
      }),
    none,
  );

describe('fingerprints', () => {
  it('count and add up the hashes of rows by bucket, modulo 2^64, in any order', () => {
    fc.assert(
      fc.property(rowsArb, rowsArb, (one, other) => {
        const all = [...one, ...other];
        const expected = [0, 1, 2, 3].flatMap((index) => {
          const hashes = all.filter(([bucket]) => bucket === index).map(([, hash]) => hash);
          const sum = hashes.reduce((total, hash) => (total + hash) % max, 0n);
          return hashes.length === 0 ? [] : [{ index, rows: hashes.length, sum: sum.toString() }];
        });
        expect(bucketsOf(of(all))).toEqual(expected);
        expect(addFingerprints(of(other), of(one))).toEqual(of(all));
        expect(rowsOfFingerprint(of(all))).toBe(all.length);
        expect(subtractFingerprint(of(all), of(other))).toEqual(of(one));
      }),
    );
  });

  it('take about ten bytes per bucket', () => {
    const buckets = Array.from({ length: 64 }, (_, index) => ({ index, rows: 3, sum: String(max - 1n) }));
    const few = [
      { index: 0, rows: 1, sum: '0' },
      { index: 63, rows: 2 ** 53 - 1, sum: String(max - 1n) },
    ];
    expect(Buffer.from(encodeBuckets(buckets), 'base64')).toHaveLength(640);
    for (const some of [buckets, few, []])
      expect(bucketsOf({ encoded_buckets: encodeBuckets(some) })).toEqual(some);
    expect(() => bucketsOf({ encoded_buckets: encodeBuckets(buckets).slice(0, -4) })).toThrow(RangeError);
  });

  it('differ in exactly the buckets whose rows differ', () => {
    fc.assert(
      fc.property(rowsArb, rowsArb, (one, other) => {
        const keys = (rows: readonly Row[], index: number) =>
          rows
            .filter(([bucket]) => bucket === index)
            .map(([, hash]) => hash)
            .toSorted((left, right) => (left < right ? -1 : 1))
            .join();
        const expected = [0, 1, 2, 3].filter((index) => keys(one, index) !== keys(other, index));
        expect(differingBuckets(of(one), of(other)).map(({ index }) => index)).toEqual(expected);
        expect(haveSameRows(of(one), of(other))).toBe(expected.length === 0);
      }),
    );
  });

  it('see a deleted row and a late one in the same bucket, and a uuid that was doubled', () => {
    expect(haveSameRows(of([[0, 5n]]), of([[0, 6n]]))).toBe(false);
    // An exclusive or of the hashes would not see it.
    const [row, twins]: [Row, Row[]] = [
      [0, 7n],
      [
        [0, 9n],
        [0, 9n],
      ],
    ];
    expect(haveSameRows(of([row, ...twins]), of([row]))).toBe(false);
  });

  it('of another hash, bucket length or set of events cannot be compared', () => {
    const others: Fingerprint[] = [
      { ...none, hash: 'hashtextextended/0' },
      { ...none, width_ms: 1 },
      { ...none, all_events: true },
    ];
    for (const other of others) {
      expect(areComparable(none, other)).toBe(false);
      expect(haveSameRows(none, other)).toBe(false);
      expect(() => differingBuckets(none, other)).toThrow(RangeError);
      expect(() => addFingerprints(none, other)).toThrow(RangeError);
    }
  });
});

describe('the buckets of a fingerprint', () => {
  it('divide any interval without gaps into at most 64', () => {
    const lengthArb = fc.oneof(
      fc.integer({ min: 1, max: 200 }),
      fc.constantFrom(60_000, 3_600_000, 23 * 3_600_000, 31 * 24 * 3_600_000),
    );
    fc.assert(
      fc.property(lengthArb, (length) => {
        const start = new Date(hour.start).getTime();
        const interval = { start: hour.start, end: new Date(start + length).toISOString() };
        const width_ms = bucketWidthMs(interval);
        const count = Math.ceil(length / width_ms);
        expect(count).toBeLessThanOrEqual(maxFingerprintBuckets);
        const buckets = Array.from({ length: count }, (_, index) =>
          bucketInterval(interval, { width_ms }, index),
        );
        expect(buckets[0]?.start).toBe(interval.start);
        expect(buckets.at(-1)?.end).toBe(interval.end);
        for (const [index, bucket] of buckets.entries()) {
          expect(bucket.start < bucket.end).toBe(true);
          expect(buckets[index + 1]?.start ?? interval.end).toBe(bucket.end);
        }
      }),
    );
  });
});
