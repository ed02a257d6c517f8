import { describe, expect, it } from '@jest/globals';
import type * as z from 'zod';
import { actorsQuerySchema } from '../../src/queries/actors_query/schema.ts';
import { builtInQueryKinds } from '../../src/queries/built_in_kinds.ts';
import { dialectQuerySchema } from '../../src/queries/dialect_query/schema.ts';
import { eventsQuerySchema } from '../../src/queries/events_query/schema.ts';
import { funnelsQuerySchema } from '../../src/queries/funnels_query/schema.ts';
import { trendsQuerySchema } from '../../src/queries/trends_query/schema.ts';

// A null member of a query is an absent member, whatever its kind.

/** What a schema parses, without what may be missing around it. */
const inside = (schema: z.ZodType): z.core.$ZodTypeDef & Readonly<Record<string, unknown>> => {
  const { def } = schema as unknown as { def: z.core.$ZodTypeDef & Readonly<Record<string, unknown>> };
  const inner = def.innerType ?? def.in;
  return inner === undefined || def.type === 'transform' ? def : inside(inner as z.ZodType);
};

/** The names of the members of an object. */
const membersOf = (schema: z.ZodType): readonly string[] => {
  const { shape } = inside(schema);
  return Object.keys(shape as object);
};

const node = { kind: 'EventsNode', event: 'a' };
const queries: readonly (readonly [Readonly<Record<string, unknown>>, z.ZodType])[] = [
  [{ kind: 'TrendsQuery', series: [node] }, trendsQuerySchema],
  [{ kind: 'FunnelsQuery', series: [node, node] }, funnelsQuerySchema],
  [{ kind: 'EventsQuery', select: ['uuid'] }, eventsQuerySchema],
  [{ kind: 'ActorsQuery' }, actorsQuerySchema],
  [{ kind: 'DialectQuery', query: 'select 1' }, dialectQuerySchema],
];

const parsed = (query: object): unknown =>
  JSON.parse(JSON.stringify(builtInQueryKinds.parse({ ...query }).query));

describe.each(queries)('a query %j', (query, schema) => {
  const optional = membersOf(schema).filter((name) => !Object.hasOwn(query, name));

  it('may have null for each member that it may lack', () => {
    expect(optional.length).toBeGreaterThan(5);
    for (const name of optional) expect(parsed({ ...query, [name]: null })).toEqual(parsed(query));
    const nulls = Object.fromEntries(optional.map((name) => [name, null]));
    expect(parsed({ ...query, ...nulls })).toEqual(parsed(query));
  });

  it('may have null for members that it does not know', () => {
    expect(parsed({ ...query, showLegendOfNext: null })).toEqual(parsed(query));
    expect(() => parsed({ ...query, showLegendOfNext: false })).toThrow();
  });
});

describe('null members at any depth are absent', () => {
  const nulls = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, null]));
  const filter = { key: 'plan', type: 'event', value: 'x' };
  const nodeNulls = nulls(
    'kind',
    'name',
    'custom_name',
    'limit',
    'orderBy',
    'math',
    'math_property',
    'math_property_type',
    'math_hogql',
    'math_group_type_index',
    'math_multiplier',
    'properties',
    'fixedProperties',
    'response',
    'version',
    'math_property_revenue_currency',
    'optionalInFunnel',
  );

  it.each([
    [
      'nodes',
      { kind: 'TrendsQuery', series: [{ event: 'a', ...nodeNulls }] },
      { kind: 'TrendsQuery', series: [node] },
    ],
    [
      'steps and exclusions of funnels',
      {
        kind: 'FunnelsQuery',
        series: [
          { event: 'a', ...nodeNulls },
          { event: 'b', ...nodeNulls },
        ],
        funnelsFilter: {
          exclusions: [{ event: 'c', funnelFromStep: 0, funnelToStep: 1, ...nodeNulls }],
          ...nulls('funnelVizType', 'layout', 'binCount', 'funnelAggregateByHogQL', 'useUdf'),
        },
      },
      {
        kind: 'FunnelsQuery',
        series: [node, { kind: 'EventsNode', event: 'b' }],
        funnelsFilter: {
          exclusions: [{ kind: 'EventsNode', event: 'c', funnelFromStep: 0, funnelToStep: 1 }],
        },
      },
    ],
    [
      'filters, breakdowns and sources',
      {
        kind: 'ActorsQuery',
        source: {
          kind: 'InsightActorsQuery',
          day: '2026-11-20',
          ...nulls('series', 'status', 'interval', 'includeRecordings', 'modifiers'),
          source: {
            kind: 'TrendsQuery',
            series: [{ ...node, ...nulls('limit') }],
            properties: {
              type: 'AND',
              values: [{ type: 'OR', values: [{ ...filter, ...nulls('operator', 'label', 'key_type') }] }],
            },
            breakdownFilter: nulls('breakdown', 'breakdown_type', 'breakdowns', 'breakdown_limit'),
            trendsFilter: nulls('display', 'formula', 'goalLines', 'hiddenLegendIndexes'),
            compareFilter: nulls('compare', 'compare_to'),
            dateRange: nulls('date_from', 'date_to', 'explicitDate', 'daysOfWeek'),
          },
        },
      },
      {
        kind: 'ActorsQuery',
        source: {
          kind: 'InsightActorsQuery',
          day: '2026-11-20',
          source: {
            kind: 'TrendsQuery',
            series: [node],
            properties: { type: 'AND', values: [{ type: 'OR', values: [filter] }] },
            breakdownFilter: {},
            trendsFilter: {},
            compareFilter: {},
            dateRange: {},
          },
        },
      },
    ],
  ])('in %s', (_, given, plain) => {
    expect(parsed(given)).toEqual(parsed(plain));
  });

  it('but not the values of a text', () => {
    const query = {
      kind: 'HogQLQuery',
      query: 'select {a}, {b.c}, {variables.d}',
      values: { a: null, b: { c: null } },
      variables: { 1: { code_name: 'd', value: null } },
    };
    expect(parsed(query)).toMatchObject({ values: query.values, variables: query.variables });
  });
});

describe('nodes', () => {
  const series = (...nodes: readonly object[]) => ({ kind: 'TrendsQuery', series: nodes });

  it('are events without a kind, also all events', () => {
    expect(parsed(series({ event: 'a' }, {}, { math: 'dau' }))).toEqual(
      parsed(series(node, { kind: 'EventsNode' }, { kind: 'EventsNode', math: 'dau' })),
    );
  });

  it.each([
    [{ kind: 'DataWarehouseNode', id: 'x', table_name: 'orders' }, /warehouse tables are not supported/],
    [{ kind: 'GroupNode', operator: 'OR', nodes: [node] }, /Define an action with a step for each/],
    [{ kind: 'GroupsNode' }, /Must be one of: EventsNode, ActionsNode/],
    [{ kind: 5 }, /Must be one of: EventsNode, ActionsNode/],
    [{ id: 5 }, /id/],
    [{ kind: 'ActionsNode' }, /number/],
    [{ kind: 'ActionsNode', id: 0 }, /small/],
  ])('%j are rejected', (given, message) => {
    const issue = trendsQuerySchema.safeParse(series(given)).error?.issues[0];
    expect([issue?.path[0], JSON.stringify(issue)]).toEqual(['series', expect.stringMatching(message)]);
  });
});
