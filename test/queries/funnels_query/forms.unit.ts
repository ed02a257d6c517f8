import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { funnelsQuery, kind, now, projectOf } from './asking.ts';
import { funnelArb, queryOf } from './random_funnels.ts';
import { randomCases } from '../../setup/effort.ts';

const series = ['a', 'b'].map((event) => ({ kind: 'EventsNode', event }));
const formOf = (query: object) => kind.normalizeForCache?.(funnelsQuery({ series, ...query }));

it('a query in its full form parses to itself', () => {
  fc.assert(
    fc.property(funnelArb, (random) => {
      const parsed = funnelsQuery(queryOf(random));
      expect(funnelsQuery(JSON.parse(JSON.stringify(parsed)) as object)).toEqual(parsed);
    }),
    { numRuns: randomCases(50) },
  );
});

it('what only changes how an answer looks shares the answer, and both spellings are one', () => {
  const plain = formOf({});
  const looks = { layout: 'vertical', funnelStepReference: 'previous', hiddenLegendBreakdowns: ['a'] };
  expect(formOf({ funnelsFilter: looks, name: 'Mine', tags: { scene: 'x' }, dateRange: null })).toEqual(
    plain,
  );
  expect(formOf({ funnelsFilter: { funnelWindowInterval: 14, exclusions: [] }, interval: 'day' })).toEqual(
    plain,
  );
  expect(formOf({ funnelsFilter: { funnelWindowInterval: 13 } })).not.toEqual(plain);
  expect(formOf({ samplingFactor: 1 })).toEqual(plain);
  expect(formOf({ samplingFactor: 0.5 })).not.toEqual(plain);
  expect(formOf({ samplingFactor: 0.5 })).not.toEqual(formOf({ samplingFactor: 0.25 }));
  expect(formOf({ funnelsFilter: { funnelAggregateByDialect: 'event' } })).toEqual(
    formOf({ funnelsFilter: { funnelAggregateByHogQL: 'event' } }),
  );
  expect(formOf({ breakdownFilter: { breakdown: 'event', breakdown_type: 'dialect' } })).toEqual(
    formOf({ breakdownFilter: { breakdown: 'event', breakdown_type: 'hogql' } }),
  );
});

it('an answer is fresh as its interval and its range are', () => {
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
  // Seven days and the part of today that has passed.
  expect(freshnessOf({ dateRange: { date_from: '-7d' } }).next_refresh_ms).toBe(180_000);
  expect(freshnessOf({ dateRange: { date_from: 'soon' } })).toEqual({ interval: 'day', date_to: null });
});

it('a dashboard narrows a query, and stands in the place of its range', () => {
  const mine = { type: 'event', key: 'size', value: 's', operator: 'exact' };
  const query = funnelsQuery({ series, properties: [mine], dateRange: { date_from: '-1d' } });
  const narrowed = kind.override(query, { date_from: '-30d', properties: [{ ...mine, key: 'plan' }] });
  expect(narrowed).toMatchObject({
    dateRange: { date_from: '-30d' },
    properties: [{ key: 'size' }, { key: 'plan' }],
  });
  expect(kind.override(query, {})).toEqual(query);
});
