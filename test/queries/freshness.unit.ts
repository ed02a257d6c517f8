import { describe, expect, it } from '@jest/globals';
import { cacheKeyOf, digestOf } from '../../src/queries/cache_key.ts';
import { isAccepted } from '../../src/queries/freshness.ts';
import type { QueryInterval } from '../../src/queries/query_kind.ts';
import { queryProject } from './query_project.ts';

const now = new Date('2026-11-21T12:00:00Z');
const minutesAgo = (minutes: number) => new Date(now.getTime() - minutes * 60_000);

describe('the maximum age of a result', () => {
  it.each([
    ['minute', 5, 15],
    ['hour', 60, 120],
    ['day', 360, 720],
    ['week', 1_440, 1_440],
    ['month', 1_440, 1_440],
    [null, 360, 720],
  ] as [QueryInterval, number, number][])(
    'is for interval %s %i and %i minutes',
    (interval, very, somewhat) => {
      const freshFor = (limit: 'very_fresh' | 'somewhat_fresh', minutes: number) =>
        isAccepted(minutesAgo(minutes), { interval, date_to: null }, now, limit);
      expect([freshFor('very_fresh', very - 0.01), freshFor('very_fresh', very)]).toEqual([true, false]);
      expect([freshFor('somewhat_fresh', somewhat - 0.01), freshFor('somewhat_fresh', somewhat)]).toEqual([
        true,
        false,
      ]);
    },
  );

  it('is unlimited if the range had ended ten seconds before', () => {
    const computed = minutesAgo(100_000);
    const endedBefore = (seconds: number) => new Date(computed.getTime() - seconds * 1_000);
    const fresh = (date_to: Date) => isAccepted(computed, { interval: 'minute', date_to }, now, 'very_fresh');
    expect([fresh(endedBefore(11)), fresh(endedBefore(10)), fresh(endedBefore(-60))]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe('the cache key', () => {
  const query = { kind: 'K', query: 'select 1', limit: 5 };
  const input = {
    kind: 'K',
    digest: digestOf(query),
    variables: { country: 'DE' },
    project: queryProject(),
    row_limit: 10_000,
  } as const;

  it('does not depend on the order of fields, on nulls or on tags', () => {
    const other = {
      ...input,
      digest: digestOf({
        limit: 5,
        offset: null,
        tags: { name: 'x' },
        query: 'select 1',
        kind: 'K',
        x: undefined,
      }),
    };
    expect(cacheKeyOf(other)).toBe(cacheKeyOf(input));
  });

  it.each([
    { kind: 'L' },
    { digest: digestOf({ ...query, limit: 6 }) },
    { digest: digestOf({ ...query, query: 'select 2' }) },
    { variables: { country: 'FR' } },
    { project: { ...input.project, team_id: 2 } },
    { project: { ...input.project, timezone: 'Europe/Berlin' } },
    { project: { ...input.project, week_start_day: 'sunday' as const } },
    { project: { ...input.project, test_account_filters: ['x'] } },
    { row_limit: 9_999 },
  ])('differs for %j', (change) => {
    expect(cacheKeyOf({ ...input, ...change })).not.toBe(cacheKeyOf(input));
  });
});
