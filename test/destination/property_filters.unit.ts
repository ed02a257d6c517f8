import { describe, expect, it } from '@jest/globals';
import { propertyFilters } from '../../src/destination/property_filters.ts';
import { rejectSelectionForModel } from '../../src/destination/config.ts';
import { filterOperators, type FilterOperator } from '../../src/filters/schema.ts';

const filter = { type: 'event', key: '$browser', operator: 'exact', value: 'Chrome' };
const message = (filters: unknown): string | undefined =>
  propertyFilters.safeParse(filters).error?.issues[0]?.message;

describe('property filters', () => {
  it('compare for equality without an operator', () => {
    const { operator, ...without } = filter;
    expect(propertyFilters.parse([without, { ...without, operator: null }])).toEqual([
      { ...filter, operator },
      { ...filter, operator },
    ]);
  });

  it.each([
    ['exact', ['Chrome', 1, true, null]],
    ['is_not', null],
    ['in', ['a', 'b']],
    ['not_in', []],
    ['icontains', 'a'],
    ['not_icontains', 17],
    ['regex', '^a'],
    ['not_regex', ['^a', 'b$']],
    ['is_cleaned_path_exact', '/a/:id'],
    ['gt', 1],
    ['gte', '1.5'],
    ['lt', -1],
    ['lte', 0],
    ['min', 3],
    ['max', 4],
    ['between', [1, 2]],
    ['not_between', ['1', '2']],
    ['is_date_exact', '2026-11-01'],
    ['is_date_before', '2026-11-01T10:00:00Z'],
    ['is_date_after', '2026-11-01T10:00:00.123+02:00'],
  ])('accept with %s the value %j', (operator, value) => {
    expect(propertyFilters.parse([{ ...filter, operator, value }])).toEqual([{ ...filter, operator, value }]);
  });

  it.each(['is_set', 'is_not_set'])('need no value with %s', (operator) => {
    expect(propertyFilters.parse([{ type: 'person', key: 'email', operator }])).toEqual([
      { type: 'person', key: 'email', operator, value: null },
    ]);
  });

  it('of type hogql or dialect need no value either', () => {
    const parsed = { type: 'hogql', key: '1 = 1', operator: 'exact', value: null };
    for (const type of ['hogql', 'dialect'])
      expect(propertyFilters.parse([{ type, key: '1 = 1' }])).toEqual([parsed]);
  });

  it.each(filterOperators.filter((operator) => !operator.endsWith('_set')))(
    'reject an object as value with %s',
    (operator) => {
      const expected = `The 'value' of a filter with the operator '${operator}' must be `;
      for (const value of [undefined, {}, [{}], [['a']]])
        expect(message([{ ...filter, operator, value }])).toContain(expected);
    },
  );

  it.each([
    ['text', "'filters' should be an array of filters"],
    [{}, "'filters' should be an array of filters"],
    [[7], 'Each filter must be an object'],
    [[null], 'Each filter must be an object'],
    [[[]], 'Each filter must be an object'],
    [[filter, {}], "Each filter must have a 'type' of one of: event, person, event_metadata, hogql, dialect"],
    [[{ ...filter, type: 'cohort' }], expect.stringContaining("'type' of one of: event, person,")],
    [[{ ...filter, key: '' }], "Each filter must have a 'key'"],
    [[{ ...filter, key: 7 }], "Each filter must have a 'key'"],
    [
      [{ ...filter, operator: 'like' }],
      expect.stringContaining("The 'operator' of a filter must be one of: exact,"),
    ],
    [[{ ...filter, data_interval_end: '2026' }], expect.stringContaining("run attributes and not 'filters'")],
    [
      [{ ...filter, label: 'Browser' }],
      expect.stringContaining("only have the fields 'type', 'key', 'operator' and 'value'"),
    ],
  ])('reject %j', (filters, expected) => {
    expect(message(filters)).toEqual(expected);
  });
});

describe('a filter that is saved', () => {
  const check = (operator: FilterOperator, value: unknown) => () => {
    rejectSelectionForModel({ filters: propertyFilters.parse([{ ...filter, operator, value }]) }, 'events');
  };

  it.each<[FilterOperator, unknown]>([
    ['gt', null],
    ['exact', null],
    ['is_not', [null]],
    ['icontains', null],
    ['between', 1],
    ['between', [1]],
    ['between', [1, 2, 3]],
    ['between', [1, null]],
    ['between', ['a', 'b']],
    ['is_date_before', 'yesterday'],
    ['is_date_before', '-7d'],
    ['is_date_exact', '2026-02-30'],
    ['is_date_after', 20261101],
    ['regex', '['],
    ['exact', 'x'.repeat(10_001)],
  ])('is rejected with %s of %j', (operator, value) => {
    expect(check(operator, value)).toThrow(
      expect.objectContaining({ attr: expect.stringMatching(/^destination__config__filters__0__value/) }),
    );
  });

  it.each<[FilterOperator, unknown]>([
    ['gt', true],
    ['regex', 1],
    ['in', []],
    ['exact', ['a', null]],
    ['is_date_after', '2026-11-01 10:00'],
  ])('is accepted with %s of %j, as in queries', (operator, value) => {
    expect(check(operator, value)).not.toThrow();
  });
});

describe('a selection for the model persons', () => {
  it('can only filter by properties of persons', () => {
    const person = { type: 'person', key: 'email', operator: 'is_set', value: null } as const;
    expect(() => rejectSelectionForModel({ include_events: [], filters: [person] }, 'persons')).not.toThrow();
  });

  it.each([
    ['include_events', { include_events: ['a'] }],
    ['exclude_events', { exclude_events: ['a'] }],
    ['filters__0__type', { filters: [{ type: 'event', key: 'a', operator: 'is_set', value: null }] }],
  ] as const)('is rejected with %s, which exports of events support', (field, selection) => {
    expect(() => rejectSelectionForModel(selection, 'persons')).toThrow(
      expect.objectContaining({ attr: `destination__config__${field}`, code: 'invalid_input' }),
    );
    expect(() => rejectSelectionForModel(selection, 'events')).not.toThrow();
  });
});
