import { describe, expect, it } from '@jest/globals';
import { trendsQueryKind } from '../../../src/queries/trends_query/index.ts';
import { queryProject } from '../query_project.ts';

const kind = trendsQueryKind;
const parse = (query: object) =>
  kind.schema.parse({ kind: 'TrendsQuery', series: [{ kind: 'EventsNode', event: 'a' }], ...query });
const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const project = queryProject({ timezone: 'Europe/Berlin' });
const now = new Date('2026-11-21T12:00:00Z');
const minute = 60_000;

describe('a TrendsQuery', () => {
  it('is stored as JSON that parses to itself', () => {
    const query = parse({
      series: [{ kind: 'EventsNode', math: 'dialect', math_dialect: 'count()' }],
      breakdownFilter: { breakdown: 'x', breakdown_type: 'dialect', breakdown_limit: 3 },
      samplingFactor: 0.25,
      trendsFilter: { formula: 'A', display: 'WorldMap', goalLines: [{ label: 'x', value: 1 }] },
      properties: [{ key: 'a', value: 'b', type: 'event' }],
    });
    expect(asJson(parse(asJson(query) as object))).toEqual(asJson(query));
  });

  it('is the same with both spellings of the dialect', () => {
    const one = parse({ series: [{ kind: 'EventsNode', math: 'hogql', math_hogql: 'count()' }] });
    expect(parse({ series: [{ kind: 'EventsNode', math: 'dialect', math_dialect: 'count()' }] })).toEqual(
      one,
    );
  });

  it.each([
    ['a bar for a line', { trendsFilter: { display: 'ActionsBar' } }, {}, true],
    [
      'a pie for a table',
      { trendsFilter: { display: 'ActionsPie' } },
      { trendsFilter: { display: 'ActionsTable' } },
      true,
    ],
    [
      'a map, which has more lines',
      { trendsFilter: { display: 'ActionsPie' } },
      { trendsFilter: { display: 'WorldMap' } },
      false,
    ],
    ['empty filters', { breakdownFilter: {}, compareFilter: { compare: null } }, {}, true],
    ['sums up to each day', { trendsFilter: { display: 'ActionsLineGraphCumulative' } }, {}, false],
    ['another interval', { interval: 'hour' }, {}, false],
    [
      'a name of a series',
      { series: [{ kind: 'EventsNode', event: 'a' }] },
      { series: [{ kind: 'EventsNode', event: 'a', custom_name: 'x' }] },
      false,
    ],
    ['a sample', { samplingFactor: 0.1 }, {}, false],
    ['another sample', { samplingFactor: 0.1 }, { samplingFactor: 0.2 }, false],
    ['a sample of everything', { samplingFactor: 1 }, {}, true],
    [
      'a name of a formula',
      { trendsFilter: { formulaNodes: [{ formula: 'A' }] } },
      { trendsFilter: { formulaNodes: [{ formula: 'A', custom_name: 'x' }] } },
      false,
    ],
  ])('with %s has another cache key only if its result differs', (_, one, other, same) => {
    const form = (query: object): unknown => asJson(kind.normalizeForCache?.(parse(query)));
    expect(JSON.stringify(form(one)) === JSON.stringify(form(other))).toBe(same);
  });

  it.each([
    [{ interval: 'minute' }, minute, null],
    [{ interval: 'hour', dateRange: { date_from: '-90d' } }, 3 * minute, null],
    [{}, 3 * minute, null],
    [{ dateRange: { date_from: '-30d' } }, 15 * minute, null],
    [{ dateRange: { date_from: 'all' } }, 15 * minute, null],
    [
      { dateRange: { date_from: '2026-10-01', date_to: '2026-10-31' } },
      15 * minute,
      '2026-10-31T22:59:59.999Z',
    ],
    [{ dateRange: { date_from: 'rubbish' } }, undefined, null],
  ])('%j can be refreshed after %d ms', (query, next, end) => {
    const { date_to, next_refresh_ms } = kind.freshness(parse(query), project, now);
    expect([next_refresh_ms, date_to?.toISOString() ?? null]).toEqual([next, end]);
  });
});
