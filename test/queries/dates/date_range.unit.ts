import { describe, expect, it } from '@jest/globals';
import type { DateTime } from 'luxon';
import { closedEnd, type DateRange, previousRange, resolveRange } from '../../../src/queries/dates.ts';
import { dayOf, type Interval, labelOf } from '../../../src/queries/buckets.ts';
import { contextOf } from './context.ts';

// A Saturday at 16:00 in Berlin; daylight saving time ended on 25 October.
const now = '2026-11-21T15:30:20.500Z';
const berlin = contextOf('Europe/Berlin', now);

const shown = (moment: DateTime): string => moment.toFormat("yyyy-MM-dd'T'HH:mm:ss.SSS");
const boundsOf = (range: DateRange | null, interval: Interval, context = berlin): readonly string[] => {
  const { from, to } = resolveRange(range, interval, context);
  return [shown(from), shown(to)];
};
const endOf = (day: string): string => `${day}T23:59:59.999`;

describe('the bounds of a range', () => {
  it.each([
    [null, 'day', '2026-11-14T00:00:00.000', endOf('2026-11-21')],
    [{ date_from: '-7d' }, 'day', '2026-11-14T00:00:00.000', endOf('2026-11-21')],
    [{ date_from: '7d' }, 'day', '2026-11-14T00:00:00.000', endOf('2026-11-21')],
    [{ date_from: 'dStart' }, 'hour', '2026-11-21T00:00:00.000', '2026-11-21T16:59:59.999'],
    [{ date_from: '-1dStart', date_to: '-1dEnd' }, 'day', '2026-11-20T00:00:00.000', endOf('2026-11-20')],
    [{ date_from: '-1dStart', date_to: '-1dEnd' }, 'hour', '2026-11-20T00:00:00.000', endOf('2026-11-20')],
    [{ date_from: 'mStart' }, 'day', '2026-11-01T00:00:00.000', endOf('2026-11-21')],
    [{ date_from: '-1mStart', date_to: '-1mEnd' }, 'day', '2026-10-01T00:00:00.000', endOf('2026-10-31')],
    [{ date_from: '-9mStart', date_to: '-9mEnd' }, 'month', '2026-02-01T00:00:00.000', endOf('2026-02-28')],
    [{ date_from: 'yStart' }, 'month', '2026-01-01T00:00:00.000', endOf('2026-11-21')],
    [{ date_from: 'wStart' }, 'day', '2026-11-15T00:00:00.000', endOf('2026-11-21')],
    [{ date_from: '-2w' }, 'week', '2026-11-07T00:00:00.000', endOf('2026-11-21')],
    [{ date_from: '-1q' }, 'week', '2026-08-22T00:00:00.000', endOf('2026-11-21')],
    [{ date_from: '-3m' }, 'month', '2026-08-01T00:00:00.000', endOf('2026-11-21')],
    [{ date_from: '-1y' }, 'month', '2025-11-01T00:00:00.000', endOf('2026-11-21')],
    [{ date_from: '-24h' }, 'hour', '2026-11-20T16:00:00.000', '2026-11-21T16:59:59.999'],
    [{ date_from: '-24h' }, 'day', '2026-11-20T16:00:00.000', endOf('2026-11-21')],
    [{ date_from: 'hStart' }, 'hour', '2026-11-21T16:00:00.000', '2026-11-21T16:59:59.999'],
    [{ date_from: '-1h' }, 'minute', '2026-11-21T15:30:20.500', '2026-11-21T16:30:59.999'],
    [{ date_from: '-90M' }, 'minute', '2026-11-21T15:00:20.500', '2026-11-21T16:30:59.999'],
    [{ date_from: '-7d' }, 'minute', '2026-11-14T16:30:20.500', '2026-11-21T16:30:59.999'],
    [
      { date_from: '2026-10-25', date_to: '2026-10-26' },
      'day',
      '2026-10-25T00:00:00.000',
      endOf('2026-10-26'),
    ],
    [{ date_from: '2026-3-1', date_to: '2026-3-9' }, 'day', '2026-03-01T00:00:00.000', endOf('2026-03-09')],
    [
      { date_from: '2026-10-25T09:40:00', date_to: '2026-10-26 11:20' },
      'hour',
      '2026-10-25T09:00:00.000',
      '2026-10-26T11:20:00.000',
    ],
    [{ date_from: '2026-10-25T09:40:00' }, 'day', '2026-10-25T00:00:00.000', endOf('2026-11-21')],
    [{ date_from: '2026-10-07' }, 'week', '2026-10-07T00:00:00.000', endOf('2026-11-21')],
    [{ date_from: '2026-10-07' }, 'month', '2026-10-01T00:00:00.000', endOf('2026-11-21')],
    [
      { date_from: '2026-10-25T23:30:00Z', date_to: '2026-10-26T10:00:00+05:00', explicitDate: true },
      'day',
      '2026-10-26T00:30:00.000',
      '2026-10-26T06:00:00.000',
    ],
    [{ date_from: '-7d', explicitDate: true }, 'day', '2026-11-14T16:30:20.500', '2026-11-21T16:30:20.500'],
    [{ date_from: 'all' }, 'day', '2015-01-01T00:00:00.000', endOf('2026-11-21')],
  ] as const)('%j by %s', (range, interval, from, to) => {
    expect(boundsOf(range, interval)).toEqual([from, to]);
  });

  it('start with the interval of the first event for all', () => {
    const context = { ...berlin, earliest: new Date('2026-10-07T13:00:00Z') };
    expect(boundsOf({ date_from: 'all' }, 'day', context)[0]).toBe('2026-10-07T00:00:00.000');
    expect(boundsOf({ date_from: 'all' }, 'month', context)[0]).toBe('2026-10-01T00:00:00.000');
  });

  it('include the repeated hour, and the day without midnight', () => {
    const havana = contextOf('America/Havana', '2026-11-01T12:00:00Z');
    expect(resolveRange({ date_from: 'dStart' }, 'day', havana).from.toUTC().toISO()).toBe(
      '2026-11-01T04:00:00.000Z',
    );
    const beirut = contextOf('Asia/Beirut', '2026-03-29T12:00:00Z');
    expect(boundsOf({ date_from: 'dStart' }, 'day', beirut)[0]).toBe('2026-03-29T01:00:00.000');
  });

  it.each([
    [{ date_from: 'yesterday' }, 'query__dateRange__date_from'],
    [{ date_from: '-d' }, 'query__dateRange__date_from'],
    [{ date_from: '2026-02-30' }, 'query__dateRange__date_from'],
    [{ date_from: '2026-11-20T10:00:00+99:00' }, 'query__dateRange__date_from'],
    [{ date_from: '2026-11-20 10:00-05:75' }, 'query__dateRange__date_from'],
    [{ date_from: '-9999999y' }, 'query__dateRange__date_from'],
    [{ date_to: '-7d; drop table events' }, 'query__dateRange__date_to'],
    [{ date_from: 'all' }, 'query__dateRange'],
  ])('are rejected by name: %j', (range, attr) => {
    expect(() => resolveRange(range, 'minute', berlin)).toThrow(
      expect.objectContaining({ name: 'QueryError', attr }),
    );
  });
});

describe('intervals', () => {
  it('are complete, including one that starts before the range', () => {
    const { buckets } = resolveRange({ date_from: '-2w' }, 'week', berlin);
    expect(buckets.map((bucket) => dayOf(bucket, 'week'))).toEqual([
      '2026-11-01',
      '2026-11-08',
      '2026-11-15',
    ]);
    const monday = contextOf('Europe/Berlin', now, 'monday');
    const weeks = resolveRange({ date_from: '-2w' }, 'week', monday).buckets;
    expect(weeks.map((bucket) => dayOf(bucket, 'week'))).toEqual(['2026-11-02', '2026-11-09', '2026-11-16']);
  });

  it('are 25 hours on the day when clocks are set back, two of them with the same label', () => {
    const { buckets } = resolveRange(
      { date_from: '2026-10-25', date_to: '2026-10-25T23:00:00' },
      'hour',
      berlin,
    );
    expect([buckets.length, buckets.slice(1, 5).map((bucket) => dayOf(bucket, 'hour'))]).toEqual([
      25,
      ['2026-10-25 01:00:00', '2026-10-25 02:00:00', '2026-10-25 02:00:00', '2026-10-25 03:00:00'],
    ]);
  });

  it.each([
    ['day', '-7d', ['14-Nov-2026', '15-Nov-2026']],
    ['hour', '-1d', ['20-Nov 00:00', '20-Nov 01:00']],
    ['minute', '-1h', ['21-Nov 15:30', '21-Nov 15:31']],
    ['month', '-1m', ['Oct 2026', 'Nov 2026']],
    ['week', '-3w', ['31 Oct', '1–7 Nov']],
    ['week', '2026-09-28', ['28 Sep–3 Oct', '4–10 Oct']],
  ] as const)('are named for people: %s %s', (interval, date_from, labels) => {
    const range = resolveRange({ date_from }, interval, berlin);
    const found = range.buckets.slice(0, 2).map((bucket) => labelOf(bucket, interval, range));
    expect(found).toEqual(labels);
  });
});

describe('the previous range', () => {
  const previous = (range: DateRange | null, interval: Interval, distance: string | null = null) => {
    const { from, to } = previousRange(range, distance, resolveRange(range, interval, berlin), berlin);
    return [shown(from), shown(to)];
  };

  it.each([
    [null, 'day', null, '2026-11-07T00:00:00.000', endOf('2026-11-14')],
    [{ date_from: '-14d' }, 'day', null, '2026-10-24T00:00:00.000', endOf('2026-11-07')],
    [{ date_from: '-3d' }, 'day', null, '2026-11-14T00:00:00.000', endOf('2026-11-17')],
    [{ date_from: '-7d', date_to: '-1d' }, 'day', null, '2026-11-07T00:00:00.000', endOf('2026-11-13')],
    [
      { date_from: '2026-10-24', date_to: '2026-10-26' },
      'day',
      null,
      '2026-10-21T00:00:00.000',
      endOf('2026-10-23'),
    ],
    [{ date_from: '-1d' }, 'hour', null, '2026-11-18T00:00:00.000', '2026-11-19T16:59:59.999'],
    [{ date_from: '-24h' }, 'hour', null, '2026-11-19T16:00:00.000', '2026-11-20T16:59:59.999'],
    [{ date_from: '-1h' }, 'minute', null, '2026-11-21T14:29:41.000', '2026-11-21T15:30:20.499'],
    [{ date_from: '-7d' }, 'day', '-1w', '2026-11-07T00:00:00.000', endOf('2026-11-14')],
    [{ date_from: '-7d' }, 'day', '-1m', '2026-10-14T00:00:00.000', endOf('2026-10-21')],
    [{ date_from: '-7d' }, 'day', '-1y', '2025-11-14T00:00:00.000', endOf('2025-11-21')],
  ] as const)('of %j by %s, moved by %s', (range, interval, distance, from, to) => {
    expect(previous(range, interval, distance)).toEqual([from, to]);
  });

  it('is rejected by name', () => {
    expect(() => previous(null, 'day', 'dStart')).toThrow(
      expect.objectContaining({ attr: 'query__compareFilter__compare_to' }),
    );
  });
});

describe('the end of a closed range', () => {
  it.each([
    [{ date_to: '2026-11-20' }, '2026-11-20T22:59:59.999Z'],
    [{ date_to: '2026-11-21' }, undefined],
    [{ date_to: '-7d' }, undefined],
    [null, undefined],
  ])('%j', (range, end) => {
    expect(closedEnd(range, 'day', berlin.project, berlin.now)?.toISOString()).toBe(end);
  });
});
