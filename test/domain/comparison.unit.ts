import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  compareFingerprints,
  maxEarlyMs,
  nextComparisonMs,
  rowsToCompare,
} from '../../src/domain/comparison.ts';
import { encodeBuckets, type Fingerprint } from '../../src/domain/fingerprint.ts';
import { runSpecOf } from './run_spec.ts';

const hour = 3_600_000;
const day = 24 * hour;
const schedule = { firstMs: hour, maxIntervalMs: 365 * day };

/** A row of a bucket. Equal ids are rows that a client has sent twice. */
interface Row {
  readonly bucket: number;
  readonly id: number;
}

const fingerprintOf = (rows: readonly Row[]): Fingerprint => ({
  hash: 'uuid_hash_extended/0',
  width_ms: 1_000,
  encoded_buckets: encodeBuckets(
    [...Map.groupBy(rows, ({ bucket }) => bucket)].map(([index, inBucket]) => ({
      index,
      rows: inBucket.length,
      // Powers of two, so that different sets have different sums.
      sum: inBucket.reduce((sum, { id }) => sum + 2n ** BigInt(3 * id), 0n).toString(),
    })),
  ),
});

const outcomeOf = (bucket: readonly Row[], source: readonly Row[]) => {
  const { outcome, added_rows, missing_rows } = compareFingerprints(
    fingerprintOf(bucket),
    fingerprintOf(source),
  );
  return [outcome, added_rows, missing_rows];
};

const spec = runSpecOf();

const rowsArb = fc.array(fc.record({ bucket: fc.nat({ max: 3 }), id: fc.nat({ max: 6 }) }), {
  maxLength: 7,
});

describe('a comparison', () => {
  it('finds late and deleted rows', () => {
    const two = [0, 1].map((id) => ({ bucket: 0, id }));
    expect(outcomeOf(two, two)).toEqual(['equal', 0, 0]);
    expect(outcomeOf(two, [...two, { bucket: 2, id: 3 }])).toEqual(['rows_added', 1, 0]);
    expect(outcomeOf(two, two.slice(1))).toEqual(['rows_missing', 0, 1]);
  });

  it('does not let them cancel out, in one bucket or in two', () => {
    const rows = [0, 1].map((id) => ({ bucket: 0, id }));
    expect(outcomeOf(rows, [rows[0] ?? { bucket: 0, id: 0 }, { bucket: 0, id: 5 }])).toEqual(['both', 1, 1]);
    expect(
      outcomeOf(rows, [
        { bucket: 1, id: 0 },
        { bucket: 1, id: 1 },
      ]),
    ).toEqual(['both', 2, 2]);
  });

  it('finds events that arrived while an export was read, where persons decide which are selected', () => {
    const allEvents = (rows: readonly Row[]) => ({ ...fingerprintOf(rows), all_events: true as const });
    const before = allEvents([{ bucket: 0, id: 0 }]);
    const after = allEvents([0, 1].map((id) => ({ bucket: 0, id })));
    const run = { spec, ranges: [], rejected_file: null, read_since: before, source_fingerprint: null };
    expect(rowsToCompare(run, after)).toEqual(before);
  });

  it('knows a source that has dropped the interval', () => {
    expect(outcomeOf([{ bucket: 0, id: 0 }], [])).toEqual(['source_expired', 0, 1]);
    expect(outcomeOf([], [])).toEqual(['equal', 0, 0]);
  });

  it('is equal only for the same rows, and never reports more changes than there are', () => {
    const removeOne = (rows: readonly Row[], row: Row): readonly Row[] => {
      const at = rows.findIndex(({ bucket, id }) => bucket === row.bucket && id === row.id);
      return at < 0 ? rows : rows.toSpliced(at, 1);
    };
    fc.assert(
      fc.property(rowsArb, rowsArb, (bucket, source) => {
        const added = bucket.reduce(removeOne, source);
        const missing = source.reduce(removeOne, bucket);
        const found = compareFingerprints(fingerprintOf(bucket), fingerprintOf(source));
        expect(found.outcome === 'equal').toBe(added.length === 0 && missing.length === 0);
        expect(found.added_rows).toBeLessThanOrEqual(added.length);
        expect(found.missing_rows).toBeLessThanOrEqual(missing.length);
        expect(found.bucket_rows - found.missing_rows).toBe(found.source_rows - found.added_rows);
      }),
    );
  });
});

/** The times of the first comparisons. */
function times(of: typeof schedule, number: number): number[] {
  const found: number[] = [];
  for (let at = 0; found.length < number; found.push(at)) at = nextComparisonMs(of, at);
  return found;
}

describe('the schedule of comparisons', () => {
  it('has an hour, a day and seven days, then doubles up to once a year', () => {
    expect(times(schedule, 12).map((at) => at / day)).toEqual([
      1 / 24,
      1,
      7,
      14,
      28,
      56,
      112,
      224,
      448,
      448 + 365,
      448 + 2 * 365,
      448 + 3 * 365,
    ]);
  });

  it('is the same from wherever it is read, and never further apart than the maximum', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: 1, max: 100_000 }),
        fc.nat({ max: 1_000_000 }),
        (firstMs, maxIntervalMs, since) => {
          const of = { firstMs, maxIntervalMs };
          // The model: a list of all times, each derived from the one before.
          const all = [0];
          for (let number = 0; (all.at(-1) ?? 0) <= since; number += 1) {
            const last = all.at(-1) ?? 0;
            const nominal = number < 3 ? firstMs * ([1, 24, 168][number] ?? 1) : last * 2;
            all.push(Math.min(nominal, last + maxIntervalMs));
          }
          expect(nextComparisonMs(of, since)).toBe(all.at(-1));
        },
      ),
    );
  });

  it('allows a comparison with a neighbour an eighth of the time early', () => {
    expect(maxEarlyMs(day, 7 * day)).toBe(18 * hour);
  });
});
