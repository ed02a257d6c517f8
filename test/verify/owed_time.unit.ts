import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { BatchExportDefinition, BatchExportEvent } from '../../src/domain/batch_export.ts';
import type { Recorded } from '../../src/domain/event.ts';
import type { DataInterval } from '../../src/domain/intervals.ts';
import { overlappingPairs, overlaps } from '../../src/verify/gaps.ts';
import {
  type BackfillHistory,
  intersect,
  owedTime,
  type OwedTime,
  subtract,
  union,
} from '../../src/verify/owed_time.ts';
import { definitionOf } from '../domain/definition.ts';

describe('owed time', () => {
  /** A time of 2026-01-01 as in the cases: `10`, `10:30`. */
  const at = (time: string): string => `2026-01-01T${time.includes(':') ? time : `${time}:00`}:00.000Z`;
  const range = (start: string, end: string) => ({ start: at(start), end: at(end) });

  const created = (changes: Partial<BatchExportDefinition> = {}): [string, BatchExportEvent] => [
    '10:20',
    {
      type: 'BatchExportCreated',
      data: { team_id: 1, definition: definitionOf(changes), scheduled_until: at('10'), paused: false },
    },
  ];
  const paused = { type: 'BatchExportPaused', data: { last_paused_at: null } } as const;
  const unpaused = { type: 'BatchExportUnpaused', data: {} } as const;
  const skipped = (start: string, end: string, reason: 'paused' | 'after end_at' | 'before start_at') =>
    ({ type: 'IntervalsSkipped', data: { ...range(start, end), reason } }) as const;
  const updated = (changes: Partial<BatchExportDefinition>, effectiveFrom: string | null = null) =>
    ({
      type: 'BatchExportUpdated',
      data: { changes, schedule_effective_from: effectiveFrom === null ? null : at(effectiveFrom) },
    }) as const;
  const deleted = { type: 'BatchExportDeleted', data: {} } as const;

  const backfill = (changes: Partial<BackfillHistory> = {}): BackfillHistory => ({
    whole: range('04', '08'),
    status: 'Running',
    remaining: range('06', '08'),
    active: [range('05', '06')],
    lastEventAt: at('10:30'),
    ...changes,
  });

  /** What is owed at a time, with a grace period of half an hour. */
  function owedAt(
    now: string,
    events: readonly (readonly [string, BatchExportEvent])[],
    more: { until?: string; backfills?: readonly BackfillHistory[] } = {},
  ): Pick<OwedTime, 'owed' | 'notOwed'> {
    const recorded = events.map(([time, event]): Recorded<BatchExportEvent> => ({
      ...event,
      recorded_at: at(time),
    }));
    const { owed, notOwed } = owedTime(
      {
        events: recorded,
        scheduledUntil: more.until === undefined ? null : at(more.until),
        backfills: more.backfills ?? [],
      },
      { now: new Date(at(now)), graceMs: () => 30 * 60_000 },
    );
    return { owed, notOwed };
  }

  describe('the schedule of an export', () => {
    it('owes the intervals since its creation whose grace period has passed', () => {
      expect(owedAt('13:29', [created()])).toEqual({
        owed: [range('10', '12')],
        notOwed: [{ ...range('12', '13'), reason: 'pending' }],
      });
      expect(owedAt('13:30', [created()])).toEqual({ owed: [range('10', '13')], notOwed: [] });
      expect(owedAt('10:40', [created()])).toEqual({ owed: [], notOwed: [] });
    });

    it('has the boundaries that were in force', () => {
      const events = [created(), ['12:10', updated({ interval: 'every 30 minutes' }, '12')]] as const;
      expect(owedAt('14:15', events)).toEqual({
        owed: [range('10', '13:30')],
        notOwed: [{ ...range('13:30', '14'), reason: 'pending' }],
      });
    });

    it('owes nothing that ended during a pause, and all that ended before it', () => {
      const pause = [created(), ['12:10', paused]] as const;
      expect(owedAt('16:40', pause)).toEqual({
        owed: [range('10', '12')],
        notOwed: [{ ...range('12', '16'), reason: 'paused' }],
      });
      expect(
        owedAt('16:40', [...pause, ['14:10', unpaused], ['14:10', skipped('12', '14', 'paused')]]),
      ).toEqual({
        owed: [range('10', '12'), range('14', '16')],
        notOwed: [{ ...range('12', '14'), reason: 'paused' }],
      });
    });

    it('owes what it skipped without a reason that held', () => {
      const pause = [created(), ['12:10', paused], ['14:10', unpaused]] as const;
      const skip = ['14:10', skipped('10', '16', 'paused')] as const;
      expect(owedAt('17:30', [...pause, skip]).owed).toEqual([range('10', '12'), range('14', '17')]);
      for (const reason of ['paused', 'after end_at', 'before start_at'] as const)
        expect(owedAt('17:30', [created(), ['14:10', skipped('12', '14', reason)]]).owed).toEqual([
          range('10', '17'),
        ]);
    });

    it('owes nothing before start_at or after end_at, as they were when it decided', () => {
      const bounds = { start_at: at('12:30'), end_at: at('15') };
      expect(owedAt('17:30', [created(bounds)])).toEqual({
        owed: [range('12', '15')],
        notOwed: [
          { ...range('10', '12'), reason: 'before start_at' },
          { ...range('15', '17'), reason: 'after end_at' },
        ],
      });
      const moved = [created(), ['13:10', updated({ end_at: at('12') })]] as const;
      expect(owedAt('17:30', moved, { until: '13' }).owed).toEqual([range('10', '13')]);
      const lifted = [
        created({ end_at: at('11') }),
        ['13:10', skipped('11', '13', 'after end_at')],
        ['13:20', updated({ end_at: null })],
      ] as const;
      expect(owedAt('17:30', lifted)).toEqual({
        owed: [range('10', '11'), range('13', '17')],
        notOwed: [{ ...range('11', '13'), reason: 'after end_at' }],
      });
    });

    it('owes what its deletion did not cancel', () => {
      expect(owedAt('17:30', [created(), ['13:10', deleted]])).toEqual({
        owed: [range('10', '12')],
        notOwed: [{ ...range('12', '17'), reason: 'deleted' }],
      });
    });
  });

  describe('a backfill', () => {
    const owedWith = (changes: Partial<BackfillHistory>) =>
      owedAt('10:40', [created()], { backfills: [backfill(changes)] });

    it.each([
      ['Running', 'pending'],
      ['Paused', 'backfill paused'],
      ['Cancelled', 'backfill cancelled'],
    ] as const)('that is %s owes what it reached', (status, reason) => {
      expect(owedWith({ status })).toEqual({
        owed: [range('04', '05')],
        notOwed: [{ ...range('05', '08'), reason }],
      });
    });

    it('that is completed, or makes no progress, owes everything', () => {
      const everything = { owed: [range('04', '08')], notOwed: [] };
      expect(owedWith({ status: 'Completed', remaining: null, active: [] })).toEqual(everything);
      expect(owedWith({ lastEventAt: at('10:10') })).toEqual(everything);
    });

    it('of time that the schedule skipped owes it', () => {
      const backfills = [backfill({ whole: range('13', '15'), status: 'Completed' })];
      expect(owedAt('16:40', [created(), ['12:10', paused]], { backfills })).toEqual({
        owed: [range('10', '12'), range('13', '15')],
        notOwed: [
          { ...range('12', '13'), reason: 'paused' },
          { ...range('15', '16'), reason: 'paused' },
        ],
      });
    });
  });
});

describe('intervals', () => {
  const timeOf = (hour: number): string => new Date(Date.UTC(2026, 0, 1, hour)).toISOString();
  const hoursOf = ({ start, end }: { start: string; end: string }): number[] => {
    const [from, to] = [start, end].map((time) => (Date.parse(time) - Date.UTC(2026, 0, 1)) / 3_600_000);
    return Array.from({ length: (to ?? 0) - (from ?? 0) }, (_, index) => (from ?? 0) + index);
  };

  const interval = fc
    .tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 1, max: 5 }))
    .map(([hour, length]) => ({ start: timeOf(hour), end: timeOf(hour + length) }));

  it('that overlap are returned in pairs, with the time that they share', () => {
    fc.assert(
      fc.property(fc.array(interval, { minLength: 1, maxLength: 8 }), (intervals) => {
        const pairs = intervals.flatMap((one, index) =>
          intervals.slice(index + 1).map((other) => [one, other] as const),
        );
        const shared = pairs
          .map(([one, other]) => hoursOf(one).filter((hour) => hoursOf(other).includes(hour)))
          .filter((hours) => hours.length > 0);
        const sorted = (lists: number[][]) => lists.map((hours) => hours.join()).sort();
        expect(sorted(overlappingPairs(intervals).map((pair) => hoursOf(pair.shared)))).toEqual(
          sorted(shared),
        );
      }),
    );
  });

  it('overlap a range that they share time with, not an adjacent one', () => {
    const hour = { start: timeOf(1), end: timeOf(2) };
    expect(overlaps(hour, { from: timeOf(2), to: null })).toBe(false);
    expect(overlaps(hour, { from: null, to: timeOf(1) })).toBe(false);
    expect(overlaps(hour, { from: timeOf(0), to: timeOf(9) })).toBe(true);
    expect(overlaps(hour, { from: null, to: null })).toBe(true);
  });
});

describe('sets of time', () => {
  const timeOf = (hour: number): string => new Date(Date.UTC(2026, 0, 1, hour)).toISOString();
  const hoursOf = (ranges: readonly DataInterval[]): number[] =>
    ranges.flatMap(({ start, end }) => {
      const [from = 0, to = 0] = [start, end].map(
        (time) => (Date.parse(time) - Date.UTC(2026, 0, 1)) / 3_600_000,
      );
      return Array.from({ length: to - from }, (_, index) => from + index);
    });

  const ranges = fc.array(
    fc
      .tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 6 }))
      .map(([hour, length]) => ({ start: timeOf(hour), end: timeOf(hour + length) })),
    { maxLength: 8 },
  );

  it('have the hours that sets of hours have, sorted, and are joined', () => {
    fc.assert(
      fc.property(ranges, ranges, ranges, (one, other, third) => {
        const [left, right] = [new Set(hoursOf(one)), new Set(hoursOf([...other, ...third]))];
        const ascending = (hours: Iterable<number>) => [...hours].sort((first, second) => first - second);
        const expected: [DataInterval[], Set<number>][] = [
          [union(one), left],
          [subtract(one, other, third), new Set([...left].filter((hour) => !right.has(hour)))],
          [intersect(one, [...other, ...third]), new Set([...left].filter((hour) => right.has(hour)))],
        ];
        for (const [set, hours] of expected) {
          expect(hoursOf(set)).toEqual(ascending(hours));
          expect(set.slice(1).every(({ start }, index) => start > (set[index]?.end ?? ''))).toBe(true);
        }
      }),
    );
  });
});
