import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { funnelsQuery, kind, now, projectOf } from './run_funnels_query.ts';
import { funnelArb, queryOf } from './random_funnels.ts';
import { randomCases } from '../../setup/effort.ts';

const series = ['a', 'b'].map((event) => ({ kind: 'EventsNode', event }));
const fullFormOf = (query: object) => kind.normalizeForCache?.(funnelsQuery({ series, ...query }));

it('a parsed query parses to itself', () => {
  fc.assert(
    fc.property(funnelArb, (random) => {
      const parsed = funnelsQuery(queryOf(random));
      expect(funnelsQuery(JSON.parse(JSON.stringify(parsed)) as object)).toEqual(parsed);
    }),
    { numRuns: randomCases(50) },
  );
});

it('queries that differ only in presentation share a result, and both spellings are equal', () => {
  const reference = fullFormOf({});
  const looks = { layout: 'vertical', funnelStepReference: 'previous', hiddenLegendBreakdowns: ['a'] };
  expect(fullFormOf({ funnelsFilter: looks, name: 'Mine', tags: { scene: 'x' }, dateRange: null })).toEqual(
    reference,
  );
  expect(
    fullFormOf({ funnelsFilter: { funnelWindowInterval: 14, exclusions: [] }, interval: 'day' }),
  ).toEqual(reference);
  expect(fullFormOf({ funnelsFilter: { funnelWindowInterval: 13 } })).not.toEqual(reference);
  expect(fullFormOf({ samplingFactor: 1 })).toEqual(reference);
  expect(fullFormOf({ samplingFactor: 0.5 })).not.toEqual(reference);
  expect(fullFormOf({ samplingFactor: 0.5 })).not.toEqual(fullFormOf({ samplingFactor: 0.25 }));
  expect(fullFormOf({ funnelsFilter: { funnelAggregateByDialect: 'event' } })).toEqual(
    fullFormOf({ funnelsFilter: { funnelAggregateByHogQL: 'event' } }),
  );
  expect(fullFormOf({ breakdownFilter: { breakdown: 'event', breakdown_type: 'dialect' } })).toEqual(
    fullFormOf({ breakdownFilter: { breakdown: 'event', breakdown_type: 'hogql' } }),
  );
});

it('the freshness of a result depends on interval and range', () => {
  const freshnessOf = (query: object) =>
    kind.freshness(funnelsQuery({ series, ...query }), projectOf(1), now);
  const closed = { date_from: '2026-09-01', date_to: '2026-09-30' };
  expect(freshnessOf({ dateRange: closed })).toEqual({
    interval: 'day',
    date_to: new Date('2026-09-30T21:59:59.999Z'),
    next_refresh_ms: 900_000,
  });
  expect(freshnessOf({ interval: 'hour' })).toEqual({
    interval: 'hour',
    date_to: null,
    next_refresh_ms: 180_000,
  });
  expect(freshnessOf({ dateRange: { date_from: '-3d' } }).next_refresh_ms).toBe(180_000);
  // Seven days and the elapsed part of today.
  expect(freshnessOf({ dateRange: { date_from: '-7d' } }).next_refresh_ms).toBe(180_000);
  expect(freshnessOf({ dateRange: { date_from: 'soon' } })).toEqual({ interval: 'day', date_to: null });
});

it('a dashboard narrows a query and replaces its range', () => {
  const mine = { type: 'event', key: 'size', value: 's', operator: 'exact' };
  const query = funnelsQuery({ series, properties: [mine], dateRange: { date_from: '-1d' } });
  const narrowed = kind.override(query, { date_from: '-30d', properties: [{ ...mine, key: 'plan' }] });
  expect(narrowed).toMatchObject({
    dateRange: { date_from: '-30d' },
    properties: [{ key: 'size' }, { key: 'plan' }],
  });
  expect(kind.override(query, {})).toEqual(query);
});
