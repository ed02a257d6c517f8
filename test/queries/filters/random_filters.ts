import fc from 'fast-check';
import type { JsonValue } from '../../../src/domain/event.ts';
import type { PropertyFilter, PropertyFilters, PropertyGroup } from '../../../src/filters/schema.ts';

/** Values of properties; few, so that filters often match. */
export const storedValues: readonly JsonValue[] = [
  'a',
  'B',
  'ab',
  'A b',
  '',
  '10',
  '10.0',
  '2.5',
  'true',
  '-1',
  '9',
  10,
  2.5,
  -1,
  0,
  9,
  true,
  false,
  null,
];

/** Names of properties, one of them with characters that SQL and JSON must quote. */
export const propertyKeys = ['plan', 'amount', `it's "a".b`] as const;

const texts = fc.constantFrom('a', 'B', 'ab', 'b', '10', '2.5', 'true', 'TRUE', '', "it's");
const numbers = fc.constantFrom(10, 2.5, -1, 0, 9);
const scalar = fc.oneof(texts, numbers, fc.boolean());
const pattern = fc.constantFrom('^a', 'b$', '[0-9]+', '^$', 'true|B', '\\d');
const listed = (value: fc.Arbitrary<string | number | boolean | null>) =>
  fc.oneof(value, fc.array(value, { maxLength: 3 }));

const operatorAndValue: fc.Arbitrary<Pick<PropertyFilter, 'operator' | 'value'>> = fc.oneof(
  fc.record({
    operator: fc.constantFrom('exact' as const, 'is_not' as const, 'in' as const, 'not_in' as const, null),
    value: listed(scalar),
  }),
  fc.record({
    operator: fc.constantFrom('icontains' as const, 'not_icontains' as const),
    value: listed(scalar),
  }),
  fc.record({ operator: fc.constantFrom('regex' as const, 'not_regex' as const), value: listed(pattern) }),
  fc.record({
    operator: fc.constantFrom(...(['gt', 'gte', 'lt', 'lte', 'min', 'max'] as const)),
    value: listed(fc.oneof(texts, numbers)),
  }),
  fc.record({
    operator: fc.constantFrom('between' as const, 'not_between' as const),
    value: fc.tuple(fc.oneof(numbers, fc.constant('9')), numbers).map((pair) => [...pair]),
  }),
  fc.record({
    operator: fc.constantFrom('is_set' as const, 'is_not_set' as const),
    value: fc.constant(null),
  }),
);

/** Includes incomplete filters. */
const filter: fc.Arbitrary<PropertyFilter> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .tuple(
        fc.constantFrom(
          ...propertyKeys.map((key) => ({ type: 'event' as const, key })),
          ...propertyKeys.slice(0, 2).map((key) => ({ type: 'person' as const, key })),
          { type: 'group' as const, key: 'plan' },
          ...['amount', propertyKeys[2], '$group_key'].map((key) => ({
            type: 'group' as const,
            key,
            group_type_index: 1,
          })),
          { type: 'event_metadata' as const, key: 'distinct_id' },
          { type: 'event_metadata' as const, key: 'event' },
          { type: null, key: 'plan' },
        ),
        operatorAndValue,
      )
      .map(([subject, rest]) => ({ ...subject, ...rest })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<PropertyFilter>({}, { type: 'event', key: 'plan' }, { type: 'empty' }),
  },
);

const { group } = fc.letrec<{ group: PropertyGroup }>((tie) => ({
  group: fc.record({
    type: fc.constantFrom('AND' as const, 'OR' as const),
    values: fc.array(fc.oneof({ maxDepth: 2 }, filter, tie('group')), { maxLength: 3 }),
  }),
}));

/** Lists and groups of filters. */
export const randomFilters: fc.Arbitrary<PropertyFilters> = fc.oneof(
  fc.array(filter, { maxLength: 3 }),
  group,
);
