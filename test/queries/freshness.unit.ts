import { describe, expect, it } from '@jest/globals';
import { cacheKeyOf } from '../../src/queries/cache_key.ts';
import { isFresh } from '../../src/queries/freshness.ts';
import type { QueryInterval } from '../../src/queries/query_kind.ts';

const now = new Date('2026-11-21T12:00:00Z');
const minutesAgo = (minutes: number) => new Date(now.getTime() - minutes * 60_000);

describe('the age that an answer may have', () => {
  it.each([
    ['minute', 5, 15],
    ['hour', 60, 120],
    ['day', 360, 720],
    ['week', 1_440, 1_440],
    ['month', 1_440, 1_440],
    [null, 360, 720],
  ] as [QueryInterval, number, number][])(
    'of the interval %s is %i and %i minutes',
    (interval, very, somewhat) => {
      const freshFor = (wanted: 'very_fresh' | 'somewhat_fresh', minutes: number) =>
        isFresh(minutesAgo(minutes), { interval, date_to: null }, now, wanted);
      expect([freshFor('very_fresh', very - 0.01), freshFor('very_fresh', very)]).toEqual([true, false]);
      expect([freshFor('somewhat_fresh', somewhat - 0.01), freshFor('somewhat_fresh', somewhat)]).toEqual([
        true,
        false,
      ]);
    },
  );

  it('does not matter once the range had been over for ten seconds', () => {
    const computed = minutesAgo(100_000);
    const endedBefore = (seconds: number) => new Date(computed.getTime() - seconds * 1_000);
    const fresh = (date_to: Date) => isFresh(computed, { interval: 'minute', date_to }, now, 'very_fresh');
    expect([fresh(endedBefore(11)), fresh(endedBefore(10)), fresh(endedBefore(-60))]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe('the cache key', () => {
  const asked = {
    kind: 'K',
    normalizedForCache: { kind: 'K', query: 'select 1', limit: 5 },
    variables: { country: 'DE' },
    project: {
      team_id: 1,
      timezone: 'UTC',
      week_start_day: 'monday',
      test_account_filters: [],
      warehouse_tables: [],
      property_definitions: [],
    },
    row_limit: 10_000,
  } as const;

  it('does not depend on the order of members, on nulls or on tags', () => {
    const other = {
      ...asked,
      normalizedForCache: {
        limit: 5,
        offset: null,
        tags: { name: 'x' },
        query: 'select 1',
        kind: 'K',
        x: undefined,
      },
    };
    expect(cacheKeyOf(other)).toBe(cacheKeyOf(asked));
  });

  it.each([
    { kind: 'L' },
    { normalizedForCache: { ...asked.normalizedForCache, limit: 6 } },
    { normalizedForCache: { ...asked.normalizedForCache, query: 'select 2' } },
    { variables: { country: 'FR' } },
    { project: { ...asked.project, team_id: 2 } },
    { project: { ...asked.project, timezone: 'Europe/Berlin' } },
    { project: { ...asked.project, week_start_day: 'sunday' as const } },
    { project: { ...asked.project, test_account_filters: ['x'] } },
    { row_limit: 9_999 },
  ])('is another for %j', (change) => {
    expect(cacheKeyOf({ ...asked, ...change })).not.toBe(cacheKeyOf(asked));
  });
});
