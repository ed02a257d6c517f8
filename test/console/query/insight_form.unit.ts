import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type FilterForm,
  type InsightForm,
  displays,
  intervals,
  maths,
  newForm,
  operators,
  ranges,
  toForm,
  toQuery,
  windowUnits,
} from '../../../src/console/pages/query/insight_form.ts';
import { trendsQuerySchema } from '../../../src/queries/trends_query/schema.ts';
import { funnelsQuerySchema } from '../../../src/queries/funnels_query/schema.ts';

const name = fc.string({ minLength: 1, maxLength: 8 });
const oneOf = (choices: Readonly<Record<string, unknown>>) => fc.constantFrom(...Object.keys(choices));
const filterArb: fc.Arbitrary<FilterForm> = fc
  .record({
    owner: fc.constantFrom('event' as const, 'person' as const),
    key: name,
    operator: oneOf(operators),
    value: fc.string(),
  })
  // What the form makes of a value: numbers, and lists without blanks.
  .map((filter) => ({
    ...filter,
    value: operators[filter.operator]?.hasValue ? filter.value.replaceAll(/[\s,\d.e-]+/gi, 'x') : '',
  }));
const formArb: fc.Arbitrary<InsightForm> = fc
  .record({
    kind: fc.constantFrom('TrendsQuery' as const, 'FunnelsQuery' as const),
    series: fc.array(
      fc.record({
        event: fc.string(),
        math: oneOf(maths),
        mathProperty: name,
        filters: fc.array(filterArb, { maxLength: 2 }),
      }),
      { minLength: 2, maxLength: 3 },
    ),
    filters: fc.array(filterArb, { maxLength: 2 }),
    breakdown: fc.record({
      owner: fc.constantFrom('event' as const, 'person' as const),
      property: fc.string(),
    }),
    dateFrom: oneOf(ranges),
    dateTo: fc.constantFrom('', '2026-11-01'),
    interval: fc.constantFrom(...intervals),
    display: oneOf(displays),
    windowLength: fc.nat({ max: 100 }).map((length) => String(length + 1)),
    windowUnit: fc.constantFrom(...windowUnits),
  })
  .map((form) => {
    const isFunnel = form.kind === 'FunnelsQuery';
    const base = newForm(form.kind);
    const dateFrom = form.dateTo === '' ? form.dateFrom : '2026-10-01';
    // What the kind does not have.
    const series = form.series.map((one) => ({
      ...one,
      math: isFunnel ? 'total' : one.math,
      mathProperty: !isFunnel && maths[one.math]?.isOfProperty ? one.mathProperty : '',
    }));
    const breakdown = form.breakdown.property === '' ? base.breakdown : form.breakdown;
    return isFunnel
      ? { ...form, dateFrom, series, breakdown, interval: base.interval, display: base.display }
      : {
          ...form,
          dateFrom,
          series,
          breakdown,
          windowLength: base.windowLength,
          windowUnit: base.windowUnit,
        };
  });

describe('a form', () => {
  it('makes a query that the endpoint accepts, and comes back from it unchanged', () => {
    fc.assert(
      fc.property(formArb, (form) => {
        const query = toQuery(form);
        const schema = form.kind === 'TrendsQuery' ? trendsQuerySchema : funnelsQuerySchema;
        expect(schema.safeParse(query).success).toBe(true);
        expect(toForm(query)).toEqual({ form });
      }),
    );
  });

  it('shows JSON of other programs: without kinds, with nulls, groups of filters and lists of breakdowns', () => {
    const shown = toForm({
      kind: 'TrendsQuery',
      series: [{ event: '$pageview', name: '$pageview', math: null, properties: [] }],
      properties: {
        type: 'AND',
        values: [{ type: 'AND', values: [{ key: '$browser', value: ['Chrome'], operator: 'exact' }] }],
      },
      breakdownFilter: { breakdowns: [{ property: 'plan', type: 'person' }] },
      dateRange: { date_from: '-30d', date_to: null },
      interval: null,
      compareFilter: null,
      version: 2,
    });
    expect(shown).toEqual({
      form: {
        ...newForm('TrendsQuery', '$pageview'),
        filters: [{ owner: 'event', key: '$browser', operator: 'exact', value: 'Chrome' }],
        breakdown: { owner: 'person', property: 'plan' },
        dateFrom: '-30d',
      },
    });
  });

  it('separates values by commas, and sends numbers where it compares them', () => {
    const filter = (operator: string, value: string) => ({
      owner: 'event' as const,
      key: 'x',
      operator,
      value,
    });
    const filters = [filter('exact', 'a, b'), filter('gt', '10'), filter('lt', 'ten')];
    expect(toQuery({ ...newForm('TrendsQuery'), filters }).properties).toEqual([
      { type: 'event', key: 'x', operator: 'exact', value: ['a', 'b'] },
      { type: 'event', key: 'x', operator: 'gt', value: 10 },
      { type: 'event', key: 'x', operator: 'lt', value: 'ten' },
    ]);
  });
});

describe('a query that the form cannot show names the field', () => {
  const series = [
    { kind: 'EventsNode', event: 'a' },
    { kind: 'EventsNode', event: 'b' },
  ];
  const trends = { kind: 'TrendsQuery', series };
  it.each([
    ['kind', { kind: 'EventsQuery', select: ['event'] }],
    ['trendsFilter.formula', { ...trends, trendsFilter: { formula: 'A / B' } }],
    ['trendsFilter.display', { ...trends, trendsFilter: { display: 'WorldMap' } }],
    ['series[1].math', { ...trends, series: [series[0], { kind: 'EventsNode', event: 'b', math: 'hogql' }] }],
    ['series[0].kind', { ...trends, series: [{ kind: 'ActionsNode', id: 3 }] }],
    ['series[0].custom_name', { ...trends, series: [{ ...series[0], custom_name: 'Signed up' }] }],
    ['compareFilter.compare', { ...trends, compareFilter: { compare: true } }],
    ['filterTestAccounts', { ...trends, filterTestAccounts: true }],
    ['properties[0].type', { ...trends, properties: [{ type: 'cohort', key: 'id', value: 3 }] }],
    ['properties[0].value', { ...trends, properties: [{ key: 'n', value: 3, operator: 'exact' }] }],
    ['properties.type', { ...trends, properties: { type: 'OR', values: [{ key: 'n', value: 'x' }] } }],
    ['dateRange.date_to', { ...trends, dateRange: { date_from: '-7d', date_to: '-1d' } }],
    ['dateRange.date_from', { ...trends, dateRange: { date_from: '-7d', date_to: '2026-11-01' } }],
    [
      'breakdownFilter.breakdowns[1].property',
      { ...trends, breakdownFilter: { breakdowns: [{ property: 'a' }, { property: 'b' }] } },
    ],
    [
      'breakdownFilter.breakdown_limit',
      { ...trends, breakdownFilter: { breakdown: 'a', breakdown_limit: 3 } },
    ],
    [
      'funnelsFilter.funnelOrderType',
      { kind: 'FunnelsQuery', series, funnelsFilter: { funnelOrderType: 'strict' } },
    ],
  ])('%s', (unshown, query) => {
    expect(toForm(query)).toEqual({ unshown });
  });
});
