import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { coverageOf } from '../../../src/http/console/pages/coverage.ts';
import { coverageKinds } from '../../../src/http/console/pages/schema.ts';
import { casesOf } from '../../setup/effort.ts';

const at = (hour: number): string => new Date(Date.UTC(2026, 10, 22, hour)).toISOString();
const hours = (start: number, end: number) => ({ start: at(start), end: at(end) });
const none = { exported: null, holes: [], backfills: [], open: [], stored: [] };

describe('coverageOf', () => {
  const covered = (facts: Partial<Parameters<typeof coverageOf>[0]>, until = 10) =>
    coverageOf({ ...none, ...facts }, at(until)).map(
      ({ start, end, kind }) => `${new Date(start).getUTCHours()}-${new Date(end).getUTCHours()} ${kind}`,
    );

  it('is empty for an export that knows no interval', () => {
    expect(covered({})).toEqual([]);
  });

  it('takes what the ledger does not name as exported, and holes as missing', () => {
    expect(
      covered({
        exported: hours(0, 9),
        holes: [hours(2, 4)],
        stored: [
          { ...hours(5, 6), kind: 'held' },
          { ...hours(6, 7), kind: 'failed' },
        ],
      }),
    ).toEqual([
      '0-2 exported',
      '2-4 missing',
      '4-5 exported',
      '5-6 held',
      '6-7 failed',
      '7-9 exported',
      '9-10 missing',
    ]);
  });

  it('shows what the schedule owes, except what a backfill has exported ahead', () => {
    expect(
      covered({
        exported: hours(0, 8),
        open: [{ ...hours(4, 10), kind: 'owed' }],
        stored: [{ ...hours(6, 8), kind: 'exported' }],
      }),
    ).toEqual(['0-4 exported', '4-6 owed', '6-8 exported', '8-10 owed']);
  });

  it('shows what an unfinished backfill exports as owed, where nothing was', () => {
    expect(
      covered({
        exported: hours(6, 10),
        backfills: [hours(2, 8)],
        stored: [{ ...hours(6, 8), kind: 'exported' }],
      }),
    ).toEqual(['2-6 owed', '6-10 exported']);
  });

  it('leaves neither a gap nor an overlap, for any facts', () => {
    const range = fc
      .tuple(fc.nat(40), fc.integer({ min: 1, max: 10 }))
      .map(([from, length]) => hours(from, from + length));
    const known = fc.tuple(range, fc.constantFrom(...coverageKinds)).map(([one, kind]) => ({ ...one, kind }));
    const facts = fc.record({
      exported: fc.option(range),
      holes: fc.array(range, { maxLength: 4 }),
      backfills: fc.array(range, { maxLength: 3 }),
      open: fc.array(known, { maxLength: 3 }),
      stored: fc.array(known, { maxLength: 6 }),
    });
    const [runs] = casesOf([200], [2_000]);
    fc.assert(
      fc.property(facts, (some) => {
        const ranges = coverageOf(some, at(30));
        const until = Date.parse(at(30));
        expect(ranges.every(({ start, end }) => start < end)).toBe(true);
        expect(ranges.map(({ end }) => end)).toEqual(
          ranges.map((_, index) => ranges[index + 1]?.start ?? until),
        );
        expect(ranges.some(({ kind }, index) => kind === ranges[index + 1]?.kind)).toBe(false);
      }),
      { numRuns: runs ?? 200 },
    );
  });
});
