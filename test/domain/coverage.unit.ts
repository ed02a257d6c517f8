import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type CoverageFacts, coverageOf, holesOf, sentenceOf } from '../../src/domain/coverage.ts';
import { randomCases } from '../setup/effort.ts';
import { disagreements } from './coverage_sentence.ts';

const at = (hour: number): string => new Date(Date.UTC(2026, 10, 22, hour)).toISOString();
const hours = (start: number, end: number) => ({ start: at(start), end: at(end) });
/** An hourly export that was created at 6 o'clock, and has exported everything by 10. */
const fine: CoverageFacts = {
  timezone: 'UTC',
  until: at(10),
  covered: [hours(6, 10)],
  entries: [],
  expired: [],
  undecided: [],
  backfills: [],
  known_from: null,
  next_end: at(11),
};
const backfill = {
  remaining: null,
  total: 720,
  finished: 67,
  is_paused: false,
  created_at: at(10),
  last_updated_at: '2026-11-22T10:06:42.000Z',
};

describe('the coverage of an export', () => {
  const covered = (facts: Partial<CoverageFacts>) =>
    coverageOf({ ...fine, ...facts }).ranges.map(({ start, end, state, reason }) =>
      [
        `${start === null ? '' : new Date(start).getUTCHours()}-${new Date(end).getUTCHours()}`,
        state,
        reason,
      ].join(' '),
    );

  it.each<[what: string, facts: Partial<CoverageFacts>, ranges: string[]]>([
    ['a new export', { covered: [] }, ['-10 not_owed before creation']],
    ['one that has exported all', {}, ['-6 not_owed before creation', '6-10 exported ']],
    [
      'what the ledger has of failed, held and running intervals',
      {
        entries: [
          { ...hours(6, 7), state: 'exported', reason: 'held' },
          { ...hours(7, 8), state: 'owed', reason: 'failed' },
          { ...hours(9, 10), state: 'owed', reason: 'due' },
        ],
      },
      [
        '-6 not_owed before creation',
        '6-7 exported held',
        '7-8 owed failed',
        '8-9 exported ',
        '9-10 owed due',
      ],
    ],
    [
      'what the schedule has not decided about, except what a backfill has exported ahead',
      {
        covered: [hours(6, 8), hours(9, 10)],
        undecided: [
          { ...hours(8, 10), reason: null },
          { ...hours(10, 12), reason: 'paused' },
        ],
        until: at(12),
      },
      [
        '-6 not_owed before creation',
        '6-8 exported ',
        '8-9 owed due',
        '9-10 exported ',
        '10-12 not_owed paused',
      ],
    ],
    [
      'what a backfill will export, also of a pause, but not what is exported',
      {
        covered: [hours(4, 10)],
        entries: [{ ...hours(5, 8), state: 'not_owed', reason: 'paused' }],
        backfills: [{ ...backfill, remaining: hours(2, 7) }],
      },
      [
        '-2 not_owed before creation',
        '2-4 owed backfill',
        '4-5 exported ',
        '5-7 owed backfill',
        '7-8 not_owed paused',
        '8-10 exported ',
      ],
    ],
    [
      'what the bucket has deleted by now as not owed, whatever became of a newer run',
      { expired: [hours(6, 8)], entries: [{ ...hours(7, 8), state: 'exported', reason: 'failed' }] },
      ['-6 not_owed before creation', '6-8 not_owed expired', '8-10 exported '],
    ],
    ['only what is known', { known_from: at(8) }, ['8-10 exported ']],
  ])('has %s', (_what, facts, ranges) => {
    expect(covered(facts)).toEqual(ranges);
  });

  it('has as holes what was neither exported nor owed between two exported ranges, unless a person excluded it', () => {
    const facts: CoverageFacts = {
      ...fine,
      covered: [hours(1, 2), hours(3, 9)],
      entries: [
        { ...hours(4, 5), state: 'not_owed', reason: 'before start_at' },
        { ...hours(6, 7), state: 'not_owed', reason: 'paused' },
        { ...hours(8, 9), state: 'owed', reason: 'failed' },
      ],
    };
    expect(holesOf(coverageOf(facts))).toEqual([hours(2, 3)]);
    expect(holesOf(coverageOf({ ...fine, covered: [] }))).toEqual([]);
  });
});

describe('the sentence', () => {
  const sentence = (facts: Partial<CoverageFacts>) => coverageOf({ ...fine, ...facts }).sentence;
  const created = 'before the export was created';

  it.each<[what: string, facts: Partial<CoverageFacts>, sentence: string]>([
    [
      'of a new export',
      { covered: [] },
      `Nothing is exported yet; the first interval ends 22 Nov 11:00 UTC. Not exported: anything before 22 Nov 10:00, ${created}.`,
    ],
    [
      'of one that has exported all it owes',
      {},
      `Exported 22 Nov 06:00 – 22 Nov 10:00 UTC. Not exported: anything before 22 Nov 06:00, ${created}.`,
    ],
    [
      'of a backfill of five days while today is four weeks later',
      {
        timezone: 'America/New_York',
        covered: [{ start: '2026-10-30T04:00:00.000Z', end: '2026-11-04T05:00:00.000Z' }],
        until: '2026-11-28T05:00:00.000Z',
        next_end: '2026-11-29T05:00:00.000Z',
      },
      `Exported 30 Oct 00:00 – 4 Nov 00:00 America/New_York. Not exported: anything before 30 Oct 00:00, ${created}; 4 Nov 00:00 – 28 Nov 00:00, ${created}.`,
    ],
    [
      'of a backfill that runs',
      { covered: [], backfills: [{ ...backfill, remaining: hours(6, 8) }] },
      `Nothing is exported yet. Backfill: 67 of 720, done about 22 Nov 11:12. Not exported: anything before 22 Nov 06:00, ${created}; 22 Nov 08:00 – 22 Nov 10:00, ${created}.`,
    ],
    [
      'of a backfill that is paused',
      { backfills: [{ ...backfill, is_paused: true }] },
      `Exported 22 Nov 06:00 – 22 Nov 10:00 UTC. Backfill: 67 of 720, paused. Not exported: anything before 22 Nov 06:00, ${created}.`,
    ],
    [
      'of what is owed and of a pause that goes on',
      {
        undecided: [
          { ...hours(10, 11), reason: null },
          { ...hours(11, 12), reason: 'paused' },
        ],
        until: at(12),
      },
      `Exported 22 Nov 06:00 – 22 Nov 10:00 UTC. Owed: 22 Nov 10:00 – 22 Nov 11:00. Not exported: anything before 22 Nov 06:00, ${created}; since 22 Nov 11:00, while it was paused.`,
    ],
    [
      'of what has expired',
      { expired: [hours(6, 8)] },
      `Exported 22 Nov 08:00 – 22 Nov 10:00 UTC. Expired in the bucket: 22 Nov 06:00 – 22 Nov 08:00. Not exported: anything before 22 Nov 06:00, ${created}.`,
    ],
    [
      'of an export of which all has expired',
      { expired: [hours(6, 10)] },
      `Expired in the bucket: 22 Nov 06:00 – 22 Nov 10:00 UTC. Not exported: anything before 22 Nov 06:00, ${created}.`,
    ],
    [
      'of an export that has ended',
      { undecided: [{ ...hours(10, 11), reason: 'after end_at' }], until: at(11), next_end: null },
      `Exported 22 Nov 06:00 – 22 Nov 10:00 UTC. Not exported: anything before 22 Nov 06:00, ${created}; since 22 Nov 10:00, after end_at.`,
    ],
    [
      'of many ranges, of which it names the newest',
      { covered: [hours(0, 1), hours(2, 3), hours(4, 5), hours(6, 7), hours(8, 10)] },
      `Exported 2 older ranges, 22 Nov 04:00 – 22 Nov 05:00, 22 Nov 06:00 – 22 Nov 07:00, 22 Nov 08:00 – 22 Nov 10:00 UTC. ` +
        `Not exported: 2 older ranges; 22 Nov 03:00 – 22 Nov 04:00, ${created}; 22 Nov 05:00 – 22 Nov 06:00, ${created}; 22 Nov 07:00 – 22 Nov 08:00, ${created}.`,
    ],
    [
      'with the year of another year, and the offset of an hour that clocks show twice',
      {
        timezone: 'Europe/Berlin',
        covered: [{ start: '2025-10-26T00:00:00.000Z', end: '2025-10-26T01:00:00.000Z' }],
        until: '2026-11-22T10:00:00.000Z',
      },
      `Exported 26 Oct 2025 02:00 +02:00 – 26 Oct 2025 02:00 +01:00 Europe/Berlin. Not exported: anything before 26 Oct 2025 02:00 +02:00, ${created}; 26 Oct 2025 02:00 +01:00 – 22 Nov 11:00, ${created}.`,
    ],
  ])('%s', (_what, facts, expected) => {
    expect(sentence(facts)).toBe(expected);
  });

  it('has the first row and the rows of the source, if they were read', () => {
    const coverage = coverageOf(fine);
    const exported = 'Exported 22 Nov 06:00 – 22 Nov 10:00 UTC.';
    const before = { first_row_at: '2026-10-29T07:13:09.000Z', rows: 204_000 };
    expect(sentenceOf(coverage, 'UTC', before)).toBe(
      `${exported} Not exported: 29 Oct 07:13 – 22 Nov 06:00, 204,000 rows, ${created}.`,
    );
    expect(sentenceOf(coverage, 'UTC', { ...before, rows: null })).toBe(
      `${exported} Not exported: 29 Oct 07:13 – 22 Nov 06:00, ${created}.`,
    );
    // Without rows before, all is exported.
    for (const first_row_at of [null, at(7)])
      expect(sentenceOf(coverage, 'UTC', { first_row_at, rows: null })).toBe(exported);
  });
});

const range = fc
  .tuple(fc.nat(40), fc.integer({ min: 1, max: 10 }))
  .map(([from, length]) => hours(from, from + length));
/** Ranges that do not overlap, as those of a layer do not. */
const apart = fc
  .uniqueArray(fc.nat(50), { maxLength: 12 })
  .map((bounds) => bounds.toSorted((one, other) => one - other))
  .map((bounds) =>
    bounds.flatMap((start, index) => {
      const end = bounds[index + 1];
      return index % 2 === 0 && end !== undefined ? [hours(start, end)] : [];
    }),
  );
const reasons = fc.constantFrom(null, 'paused', 'before start_at', 'after end_at');

describe('for any facts', () => {
  const facts: fc.Arbitrary<CoverageFacts> = fc.record({
    timezone: fc.constant('UTC'),
    until: fc.constant(at(60)),
    covered: apart,
    entries: apart.chain((ranges) =>
      fc.tuple(
        ...ranges.map((one) =>
          fc.constantFrom<CoverageFacts['entries'][number]>(
            { ...one, state: 'not_owed', reason: 'paused' },
            { ...one, state: 'owed', reason: 'failed' },
            { ...one, state: 'exported', reason: 'held' },
          ),
        ),
      ),
    ),
    expired: apart,
    undecided: apart.chain((ranges) =>
      fc.tuple(...ranges.map((one) => reasons.map((reason) => ({ ...one, reason })))),
    ),
    backfills: fc.array(
      range.map((remaining) => ({ ...backfill, remaining })),
      { maxLength: 3 },
    ),
    known_from: fc.constant(null),
    next_end: fc.constant(null),
  });

  it('ranges leave neither a gap nor an overlap, and each hour has what the strongest fact says of it, also in words', () => {
    const covers =
      (hour: number) =>
      ({ start, end }: { start: string; end: string }): boolean =>
        Date.parse(start) <= Date.parse(at(hour)) && Date.parse(at(hour)) < Date.parse(end);
    fc.assert(
      fc.property(facts, (some) => {
        const coverage = coverageOf(some);
        const { ranges } = coverage;
        expect(
          disagreements(
            coverage,
            Array.from({ length: 60 }, (_, hour) => Date.parse(at(hour))),
          ),
        ).toEqual([]);
        expect(ranges[0]?.start).toBeNull();
        expect(ranges.map(({ end }) => end)).toEqual(
          ranges.map((_, index) => ranges[index + 1]?.start ?? at(60)),
        );
        for (let hour = 0; hour < 60; hour += 1) {
          const entry = some.entries.find(covers(hour));
          const undecided = some.undecided.find(covers(hour));
          const expected = (): string => {
            if (some.expired.some(covers(hour))) return 'not_owed';
            if (entry && entry.state !== 'not_owed') return entry.state;
            if (!entry && some.covered.some(covers(hour))) return 'exported';
            if (some.backfills.some(({ remaining }) => remaining !== null && covers(hour)(remaining)))
              return 'owed';
            if (entry) return 'not_owed';
            return undecided?.reason === null ? 'owed' : 'not_owed';
          };
          expect(ranges.find(({ start, end }) => covers(hour)({ start: start ?? at(-1), end }))?.state).toBe(
            expected(),
          );
        }
      }),
      { numRuns: randomCases(200) },
    );
  });
});
