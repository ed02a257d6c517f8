import { expect, it } from '@jest/globals';
import { compileRowQuery } from '../../src/source/row_query/compile_row_query.ts';

const relation = (columns: Readonly<Record<string, string>>) => ({
  relation: '"public"."rows"',
  columns: new Map(Object.entries(columns)),
});

const fieldOf = (expression: string) => {
  const access = { sql: (column: string) => `row_."${column}"`, jsonType: () => 'jsonb' };
  const { fields } = compileRowQuery(
    'events',
    { dialect_query: `SELECT ${expression} AS f FROM events`, timezone: 'UTC', week_start_day: 'sunday' },
    1,
    {
      selected: access,
      filtered: access,
      events: relation({}),
      persons: relation({ properties: 'jsonb' }),
    },
  );
  return fields[0];
};

it.each([
  ['person.properties.plan', true],
  ['upper(person.properties.plan)', true],
  ['person_properties', true],
  ['toString(person.created_at)', true],
  ['person.id', false],
  ['properties.plan', false],
  // Literals that read like the SQL of these columns.
  [`'row_."person_properties"'`, false],
  [`'"person_of_row$1".'`, false],
])('whether %s reads the current person: %s', (expression, readsPerson) => {
  expect(fieldOf(expression)?.readsPerson).toBe(readsPerson);
});

it.each([
  ['properties', 'properties'],
  ['event', 'event'],
  ['properties.plan', null],
  ['upper(event)', null],
  ["toTimeZone(timestamp, 'Asia/Tokyo')", null],
])('the column that %s is unchanged: %s', (expression, column) => {
  expect(fieldOf(expression)?.column).toBe(column);
});
