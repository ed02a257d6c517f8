import { describe, expect, it } from '@jest/globals';
import { printExpression } from '@exportd/dialect/print';
import { type DateRange, filterBounds, resolveRange } from '../../../src/queries/dates.ts';
import { contextOf } from './context.ts';

// A Saturday at 16:30 in Berlin; daylight saving time ended on 25 October.
const berlin = contextOf('Europe/Berlin', '2026-11-21T15:30:20.500Z');

const shown = (range: DateRange | null): readonly (string | null)[] => {
  const { from, to } = filterBounds(range, berlin, 'dateRange');
  return [
    from && printExpression(from),
    to && `${to.isInclusive ? '<=' : '<'} ${printExpression(to.moment)}`,
  ].map((text) => text?.replaceAll(/TIMESTAMP |'/g, '') ?? null);
};
const today = '<= 2026-11-21T22:59:59.999999Z';

// PostHog's documentation of SQL variables, "How date ranges are resolved".
describe('the bounds of {filters}', () => {
  it.each<[DateRange | null, string | null, string | null]>([
    [null, null, null],
    [{}, null, null],
    [{ date_from: 'all' }, null, null],
    [{ date_from: '-7d' }, '2026-11-13T23:00:00.000Z', today],
    [{ date_from: 'mStart' }, '2026-10-31T23:00:00.000Z', today],
    [{ date_from: 'wStart' }, '2026-11-14T23:00:00.000Z', today],
    [
      { date_from: '-1dStart', date_to: '-1dEnd' },
      '2026-11-19T23:00:00.000Z',
      '<= 2026-11-20T22:59:59.999999Z',
    ],
    [{ date_from: '-3d', date_to: '-1d' }, '2026-11-17T23:00:00.000Z', '<= 2026-11-20T22:59:59.999999Z'],
    [
      { date_from: '2026-10-25', date_to: '2026-10-25' },
      '2026-10-24T22:00:00.000Z',
      '<= 2026-10-25T22:59:59.999999Z',
    ],
    [{ date_from: '2026-11-01' }, '2026-10-31T23:00:00.000Z', today],
    [{ date_to: '2026-11-14' }, null, '<= 2026-11-14T22:59:59.999999Z'],
    [{ date_from: 'all', date_to: '2026-11-14' }, null, '<= 2026-11-14T22:59:59.999999Z'],
    // Times are exact.
    [
      { date_from: '2026-11-14T09:30:00', date_to: '2026-11-15T10:00:00.000001' },
      '2026-11-14T08:30:00.000Z',
      '< 2026-11-15T09:00:00.000001Z',
    ],
    [{ date_from: '2026-11-14T09:30:00Z' }, '2026-11-14T09:30:00.000Z', null],
    [{ date_from: '-1h' }, '2026-11-21T14:30:20.500Z', null],
    [{ date_from: '-30M', date_to: '-10M' }, '2026-11-21T15:00:20.500Z', '< 2026-11-21T15:20:20.500Z'],
    [
      { date_from: '2026-11-14', date_to: '2026-11-15', explicitDate: true },
      '2026-11-13T23:00:00.000Z',
      '< 2026-11-14T23:00:00.000Z',
    ],
  ])('%j', (range, from, to) => {
    expect(shown(range)).toEqual([from, to]);
  });

  it.each([
    [{ date_from: '-7d' }],
    [{ date_from: '-2m', date_to: '-1m' }],
    [{ date_from: '2026-10-24', date_to: '2026-10-26' }],
    [{ date_from: 'yStart', date_to: '2026-11-14' }],
    [{ date_from: '-1q', date_to: '-1wEnd' }],
  ])('of days are those of a trend: %j', (range) => {
    const trend = resolveRange(range, 'day', berlin);
    expect(shown(range)).toEqual([
      trend.from.toUTC().toISO(),
      `<= ${trend.to.toUTC().toISO()?.replace('999Z', '999999Z')}`,
    ]);
  });

  it.each([
    [{ date_from: 'soon' }, 'dateRange__date_from'],
    [{ date_to: 'all' }, 'dateRange__date_to'],
    [{ date_from: '-9999999y' }, 'dateRange__date_from'],
  ])('are rejected by name: %j', (range, attr) => {
    expect(() => filterBounds(range, berlin, 'dateRange')).toThrow(
      expect.objectContaining({ name: 'QueryError', attr }),
    );
  });
});
