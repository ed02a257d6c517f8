import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { buildField } from '@exportd/dialect/ast_builders';
import { printExpression } from '@exportd/dialect/print';
import { eventNames, seriesCondition, seriesName } from '../../../src/queries/nodes.ts';
import {
  filtersCondition,
  testAccountsCondition,
  withOverride,
} from '../../../src/queries/property_filters.ts';
import { propertyFiltersSchema, type PropertyFilters } from '../../../src/filters/schema.ts';
import { contextOf } from '../dates/context.ts';
import { randomFilters } from './random_filters.ts';

const target = { scope: 'events', attr: 'query__properties' } as const;
const textOf = (filters: unknown, scope: 'events' | 'persons' = 'events'): string | null => {
  const condition = filtersCondition(propertyFiltersSchema.parse(filters), { ...target, scope });
  return condition && printExpression(condition);
};
const ofGroups = (filters: PropertyFilters): string | null => {
  const groups = { index: 1, key: buildField('id') };
  const condition = filtersCondition(filters, { ...target, scope: 'groups', relation: 'groups', groups });
  return condition && printExpression(condition);
};
const queryError = (code: string, attr: string): Error =>
  expect.objectContaining({ name: 'QueryError', code, attr }) as unknown as Error;

describe('conditions of filters', () => {
  it.each([
    [[{ type: 'person', key: 'email', operator: 'is_set' }], 'events', 'person.properties.email IS NOT NULL'],
    [[{ type: 'person', key: 'email', operator: 'is_set' }], 'persons', 'properties.email IS NOT NULL'],
    [
      [{ type: 'session', key: '$session_duration', operator: 'gt', value: 30 }],
      'events',
      'CAST(session.$session_duration AS Float64) > 30',
    ],
    [
      [{ type: 'group', key: '$group_key', group_type_index: 2, value: 'acme' }],
      'events',
      "$group_2 = 'acme'",
    ],
    [[{ type: 'group', key: '$group_0', value: ['a', 'b'] }], 'events', "$group_0 IN ['a', 'b']"],
    [[{ type: 'group', key: 'plan', operator: 'is_set' }], 'events', 'group_0.properties.plan IS NOT NULL'],
    [
      [{ type: 'group', key: 'seats', group_type_index: 4, operator: 'gt', value: 30 }],
      'events',
      'CAST(group_4.properties.seats AS Float64) > 30',
    ],
    [[{ type: 'dialect', key: "event = 'a' or 1 = 2" }], 'events', "event = 'a' OR 1 = 2"],
    [[{ type: 'hogql', key: 'properties.seats > 3' }], 'persons', 'properties.seats > 3'],
    [[{ type: 'cohort', key: 'id', value: 5 }], 'events', 'person_id IN COHORT 5'],
    [[{ type: 'cohort', operator: 'exact', value: '5' }], 'persons', 'id IN COHORT 5'],
    [[{ type: 'static-cohort', operator: 'in', value: 'Paying' }], 'events', "person_id IN COHORT 'Paying'"],
    [
      [{ type: 'cohort', operator: 'not_in', value: [5, 6] }],
      'events',
      'person_id NOT IN COHORT 5 AND person_id NOT IN COHORT 6',
    ],
    [[{ type: 'cohort', key: 'id', value: null }], 'events', null],
    [
      [
        { type: 'hogql', key: 'a or b' },
        { type: 'hogql', key: 'c' },
      ],
      'events',
      '(a OR b) AND c',
    ],
    [
      {
        type: 'OR',
        values: [
          { type: 'AND', values: [] },
          { type: 'event', key: 'a', value: 1 },
        ],
      },
      'events',
      null,
    ],
    [[], 'events', null],
  ] as const)('%j of %s', (filters, scope, text) => {
    expect(textOf(filters, scope)).toBe(text);
  });

  it.each([
    [{ type: 'group', key: 'plan', value: 'pro' }, "toString(groups.properties.plan) = 'pro'"],
    [
      { type: 'group', key: 'plan', group_type_index: 1, operator: 'is_set' },
      'groups.properties.plan IS NOT NULL',
    ],
    [{ type: 'group', key: '$group_key', value: 'acme' }, "id = 'acme'"],
    [{ type: 'group', key: '$group_1', value: 'acme' }, "id = 'acme'"],
    [{ type: 'hogql', key: 'properties.seats > 3' }, 'properties.seats > 3'],
  ] as const)('%j of groups', (filter, text) => {
    expect(ofGroups([filter])).toBe(text);
  });

  it('keep values out of the text', () => {
    expect(textOf([{ key: "a' or 1", value: "x' or '1'='1" }])).toBe(
      "toString(properties.`a' or 1`) = 'x\\' or \\'1\\'=\\'1'",
    );
  });
});

describe('rejected filters are named', () => {
  it.each([
    [[{ type: 'cohort', key: 'name', value: 5 }], 'invalid_input', 'query__properties__0__key'],
    [[{ type: 'cohort', operator: 'gt', value: 5 }], 'invalid_input', 'query__properties__0__operator'],
    [[{ type: 'cohort', value: [5, -1] }], 'invalid_input', 'query__properties__0__value__1'],
    [[{ type: 'cohort', value: 1.5 }], 'invalid_input', 'query__properties__0__value'],
    [[{ type: 'cohort', value: true }], 'invalid_input', 'query__properties__0__value'],
    [
      [{ type: 'cohort', value: Array.from({ length: 101 }, (_, id) => id + 1) }],
      'invalid_input',
      'query__properties__0__value',
    ],
    [
      [{}, { type: 'feature', key: '$feature/x', value: 'on' }],
      'not_supported',
      'query__properties__1__type',
    ],
    [[{ type: 'element', key: 'text', value: 'Buy' }], 'not_supported', 'query__properties__0__type'],
    [[{ type: 'data_warehouse', key: 'x', value: 'y' }], 'not_supported', 'query__properties__0__type'],
    [[{ type: 'event_metadata', key: 'team_id', value: 1 }], 'invalid_input', 'query__properties__0__key'],
    [
      [{ type: 'event_metadata', key: 'timestamp', operator: 'gt', value: 'soon' }],
      'invalid_input',
      'query__properties__0__value',
    ],
    [[{ type: 'hogql', key: 'event = ' }], 'dialect_error', 'query__properties__0__key'],
    [[{ key: 'a', operator: 'regex', value: '(' }], 'invalid_input', 'query__properties__0__value'],
    [[{ key: 'a', operator: 'between', value: [1] }], 'invalid_input', 'query__properties__0__value'],
    [[{ key: 'a', operator: 'between', value: [1, 'b'] }], 'invalid_input', 'query__properties__0__value'],
    [
      [{ key: 'a', operator: 'is_date_before', value: 'soon' }],
      'invalid_input',
      'query__properties__0__value',
    ],
    [
      [{ key: 'a', operator: 'is_cleaned_path_exact', value: '/a' }],
      'not_supported',
      'query__properties__0__operator',
    ],
    [
      { type: 'AND', values: [{ type: 'OR', values: [{ type: 'element', key: 'text', value: 1 }] }] },
      'not_supported',
      'query__properties__values__0__values__0__type',
    ],
  ])('%j', (filters, code, attr) => {
    expect(() => textOf(filters)).toThrow(queryError(code, attr));
  });

  it('includes filters on events for queries of persons', () => {
    expect(() => textOf([{ type: 'event', key: 'plan', value: 'pro' }], 'persons')).toThrow(
      queryError('not_supported', 'query__properties__0__type'),
    );
  });

  it.each([
    [{ type: 'event', key: 'plan', value: 'pro' }, 'not_supported', 'type'],
    [{ type: 'person', key: 'plan', value: 'pro' }, 'not_supported', 'type'],
    [{ type: 'group', key: 'plan', group_type_index: 2, value: 'pro' }, 'invalid_input', 'group_type_index'],
    [{ type: 'group', key: '$group_2', value: 'acme' }, 'invalid_input', 'key'],
  ] as const)(
    'includes filters on groups of another type for queries of groups: %j',
    (filter, code, field) => {
      expect(() => ofGroups([filter])).toThrow(queryError(code, `query__properties__0__${field}`));
    },
  );

  it.each([
    [[{ type: 'magic', key: 'a' }], [0, 'type']],
    [[{ type: 'group', key: 'a', group_type_index: 5 }], [0, 'group_type_index']],
    [[{ key: 'a', operator: 'likes' }], [0, 'operator']],
    [[{ key: 'a', value: { not: 'a scalar' } }], [0, 'value']],
    [[{ key: 'a', negated: true }], [0]],
    [{ type: 'AND', values: [{ type: 'OR', values: [{ key: true }] }] }, ['values', 0, 'values', 0, 'key']],
    ['plan', []],
  ])('includes malformed filters: %j', (filters, path) => {
    expect(propertyFiltersSchema.safeParse(filters).error?.issues[0]?.path).toEqual(path);
  });

  it('includes groups that are nested too deeply', () => {
    const nest = (levels: number): unknown =>
      Array.from({ length: levels }).reduce<unknown[]>((values) => [{ type: 'AND', values }], [])[0];
    expect([8, 9, 20_000].map((levels) => propertyFiltersSchema.safeParse(nest(levels)).success)).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe('stored filters', () => {
  it('parse to themselves', () => {
    fc.assert(
      fc.property(randomFilters, (filters) => {
        const parsed = propertyFiltersSchema.parse(filters);
        expect(propertyFiltersSchema.parse(JSON.parse(JSON.stringify(parsed)))).toEqual(parsed);
      }),
    );
  });
});

describe("a dashboard's filters", () => {
  const plan = { type: 'event', key: 'plan', value: 'pro' } as const;
  const email = { type: 'person', key: 'email', operator: 'is_set' } as const;

  it.each([
    [null, [plan], [plan]],
    [[email], [plan], [email, plan]],
    [[email], [], [email]],
    [{ type: 'AND', values: [email] }, [plan], { type: 'AND', values: [email, plan] }],
    [
      { type: 'OR', values: [email, plan] },
      [plan],
      { type: 'AND', values: [{ type: 'OR', values: [email, plan] }, plan] },
    ],
  ])('narrow %j', (own, more, expected) => {
    expect(withOverride(own as PropertyFilters | null, more)).toEqual(expected);
  });

  it('are rejected by name', () => {
    expect(() => withOverride(null, [plan, { key: 'a', operator: 'likes' }])).toThrow(
      queryError('invalid_input', 'filters_override__properties__1__operator'),
    );
  });
});

describe("the project's test accounts", () => {
  const project = {
    ...contextOf('UTC', '2026-11-21').project,
    test_account_filters: [
      { type: 'person', key: 'email', operator: 'not_icontains', value: '@ex.com' },
      { type: 'event', key: '$host', operator: 'not_regex', value: '^localhost' },
    ],
  };

  it("are excluded by the project's filters on events, for persons by those on persons", () => {
    const texts = (['events', 'persons'] as const).map((scope) => {
      const condition = testAccountsCondition(project, scope);
      return condition && printExpression(condition);
    });
    expect(texts).toEqual([
      "toString(person.properties.email) NOT ILIKE '%@ex.com%' AND toString(properties.$host) !~ '^localhost'",
      "toString(properties.email) NOT ILIKE '%@ex.com%'",
    ]);
  });

  it('cannot be excluded by invalid filters', () => {
    const broken = { ...project, test_account_filters: [{ nonsense: 1 }] };
    expect(() => testAccountsCondition(broken, 'events')).toThrow(
      queryError('invalid_input', 'query__filterTestAccounts'),
    );
  });
});

describe('series', () => {
  const actions = [{ id: 5, name: 'Bought', steps: [{ event: 'bought' }, { event: 'paid' }] }];

  it('are events with a name that match filters', () => {
    const properties = [{ type: 'event', key: 'plan', value: 'pro' }] as const;
    const condition = seriesCondition(
      { kind: 'EventsNode', event: 'bought', properties },
      'query__series__0',
      { actions },
    );
    expect(condition && printExpression(condition)).toBe(
      "event = 'bought' AND toString(properties.plan) = 'pro'",
    );
    const everything = seriesCondition({ kind: 'EventsNode', event: null }, 'query__series__0', { actions });
    expect(everything).toBeNull();
    expect([
      seriesName({ kind: 'EventsNode' }, { actions }),
      seriesName({ kind: 'EventsNode', event: 'a', name: 'b' }, { actions }),
      seriesName({ kind: 'ActionsNode', id: 5, name: 'as it was' }, { actions }),
    ]).toEqual(['All events', 'b', 'Bought']);
  });

  it('are events that match an action of the project', () => {
    const node = { kind: 'ActionsNode', id: 5 } as const;
    const condition = seriesCondition(node, 'query__series__0', { actions });
    expect(condition && printExpression(condition)).toBe('matchesAction(5)');
    expect(eventNames(node, 'query__series__0', { actions })).toEqual(['bought', 'paid']);
    expect(() => seriesCondition({ ...node, id: 6 }, 'query__series__0', { actions })).toThrow(
      queryError('invalid_input', 'query__series__0__id'),
    );
  });
});

describe('the number of conditions is limited', () => {
  const manyValues = (count: number) => Array.from({ length: count }, (_, index) => `v${index}`);
  const filter = { type: 'event', key: 'a' };

  it.each([
    [
      'patterns',
      [{ ...filter, operator: 'not_icontains', value: manyValues(70_000) }],
      'at most 10,000 values',
    ],
    [
      'patterns',
      [{ ...filter, operator: 'not_icontains', value: manyValues(1_001) }],
      'more than 1000 conditions',
    ],
    [
      'patterns of several filters in groups',
      {
        type: 'AND',
        values: [1, 2].map(() => ({
          type: 'OR',
          values: [{ ...filter, operator: 'regex', value: manyValues(501) }],
        })),
      },
      'more than 1000 conditions',
    ],
    ['filters', Array.from({ length: 1_001 }, () => ({ ...filter, value: 1 })), 'more than 1000 conditions'],
  ])('of %s', (_, filters, message) => {
    const parsed = propertyFiltersSchema.safeParse(filters);
    expect(JSON.stringify(parsed.error?.issues)).toContain(message);
  });

  it('to one for a list of values', () => {
    expect(textOf([{ ...filter, operator: 'exact', value: manyValues(10_000) }])).toContain("'v9999'");
  });

  it('to 100 dates', () => {
    const value = Array.from({ length: 101 }, () => '2026-01-01');
    expect(() => textOf([{ type: 'event_metadata', key: 'timestamp', value }])).toThrow(
      queryError('invalid_input', 'query__properties__0__value__100'),
    );
  });
});
