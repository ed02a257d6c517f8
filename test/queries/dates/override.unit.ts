import { describe, expect, it } from '@jest/globals';
import { withOverriddenDates } from '../../../src/queries/dates.ts';

const own = { date_from: '-7d', date_to: '2026-11-20', explicitDate: true };

describe("a dashboard's dates", () => {
  it.each([
    [{}, own],
    [{ date_from: '', date_to: null }, own],
    [{ date_from: '-30d' }, { date_from: '-30d', date_to: null }],
    [{ date_to: '2026-11-21' }, { date_from: null, date_to: '2026-11-21' }],
    [{ date_from: 'all' }, { date_from: 'all', date_to: null }],
  ])('replace those of the query: %j', (override, range) => {
    expect(withOverriddenDates(own, override)).toEqual(range);
  });

  it.each([
    [{ date_from: 'soon' }, 'filters_override__date_from'],
    [{ date_to: 'all' }, 'filters_override__date_to'],
  ])('are rejected by name: %j', (override, attr) => {
    expect(() => withOverriddenDates(own, override)).toThrow(
      expect.objectContaining({ name: 'QueryError', attr }),
    );
  });
});
