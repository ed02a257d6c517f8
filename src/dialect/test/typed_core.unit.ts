import { describe, expect, it } from '@jest/globals';
import { compileQuery } from '../compile/compile_query.ts';
import { project } from './project.ts';

const compile = (query: string) => compileQuery(query, project);

describe('GROUP BY compares expressions by meaning', () => {
  // Each pair has the same SQL text.
  it.each([
    ['toHour(timestamp)', "toTimeZone(timestamp, 'Asia/Tokyo')"],
    ["toHour(toTimeZone(timestamp, 'Asia/Tokyo'))", "CAST(timestamp AS DateTime('Europe/Berlin'))"],
    ['toString([event, distinct_id])', 'tuple(event, distinct_id)'],
    ['(event, distinct_id).1', '[event, distinct_id]'],
  ])('%s is not computed from %s', (selected, key) => {
    expect(() => compile(`SELECT ${selected} FROM events GROUP BY ${key}`)).toThrow(
      'is neither under an aggregate function nor in GROUP BY.',
    );
  });

  it.each([
    ['properties.plan', "properties['plan']"],
    ['e.event', 'event'],
    ['person.properties.plan', 'e.person.properties.plan'],
    ['upper(event)', 'upper(e.event)'],
    ['event = distinct_id', 'event == e.distinct_id'],
    ["e.event IN ('a', 'b') AND length(event) > 1", "event IN ('a', 'b') AND length(event) > 1"],
    ['concat(event, lower(event))', 'event, lower(event)'],
    ['concat(upper(lower(event)), lower(event))', 'lower(event), upper(lower(event))'],
    ['if(event IS NULL, 1, 2)', 'event IS NULL'],
    ['arrayMap(x -> concat(x, event), [event])', 'event'],
    ['arrayMap(x -> concat(x, event), [event])', 'arrayMap(y -> concat(y, event), [event])'],
    [
      '(SELECT max(number) FROM numbers(3)) + length(event)',
      '(SELECT max(number) FROM numbers(3)) + length(event)',
    ],
    ['event IN (SELECT event FROM events)', 'event IN (SELECT event FROM events)'],
    ['timestamp + INTERVAL 1 DAY', 'timestamp + toIntervalDay(1)'],
    ['multiIf(event IS NULL, 1, event > distinct_id, 2, 3)', 'event IS NULL, event > distinct_id'],
  ])('%s is computed from %s', (selected, key) => {
    expect(
      compile(`SELECT ${selected} AS s FROM events AS e GROUP BY ${key} HAVING s IS NOT NULL`).columns,
    ).toHaveLength(1);
  });
});

it('a key that contains another one is read as a whole', () => {
  // In the second grouping set the first key is null.
  const { sql } = compile(
    'SELECT lower(event) AS l FROM events GROUP BY GROUPING SETS ((event), (lower(event)))',
  );
  expect(sql).toMatch(/^select "grouped\$\d+"\."k2" as "c1"/);
});

describe('each node is compiled once', () => {
  /** Wraps a text in itself. */
  const nested = (wrap: (inner: string) => string): string =>
    Array.from({ length: 60 }).reduce<string>(wrap, 'number');

  it.each([
    ['BETWEEN', (inner: string) => `(${inner} BETWEEN 0 AND 1)::Int64`],
    ['CASE', (inner: string) => `CASE ${inner} WHEN 1 THEN 2 WHEN 2 THEN 3 ELSE 4 END`],
    ['toString', (inner: string) => `length(toString(${inner}))`],
    ['a window function', (inner: string) => `abs(row_number() OVER () + ${inner})`],
  ])('in nested %s', (_, wrap) => {
    // Compiling each level twice would take years.
    expect(compile(`SELECT ${nested(wrap)} AS s FROM numbers(3)`).columns).toHaveLength(1);
  });
});

describe('constants are folded', () => {
  it.each([
    ['1 + 2 * 3', 'Int64', '7'],
    ['-(2 - 5)', 'Int64', '3'],
    ['1 / 4', 'Float64', '0.25'],
    ['-0.5 * 3', 'Float64', '-1.5'],
    ['plus(1, minus(5, 2))', 'Int64', '4'],
  ])('%s', (expression, type, value) => {
    const { sql, parameters, columns } = compile(`SELECT ${expression} AS c LIMIT 1`);
    expect({ sql, value: parameters[0], type: columns[0]?.typeName }).toEqual({
      sql: `select $1::${type === 'Int64' ? 'int8' : 'float8'} as "c1" limit $2::int8`,
      value,
      type,
    });
  });

  it.each([
    ['9223372036854775807 + 1', 'integer overflow'],
    ['1e300 * 1e300', 'float overflow'],
    ['1e-300 * 1e-300', 'float underflow'],
    ['1 / 0', 'division by zero'],
    ['number + 1', 'a column'],
    ['now() + INTERVAL 1 DAY', 'a time'],
  ])('%s is left to PostgreSQL: %s', (expression) => {
    expect(compile(`SELECT ${expression} AS c FROM numbers(1) LIMIT 1`).sql).not.toMatch(
      /^select \$1::\w+ as/,
    );
  });

  it('where a clause requires a constant', () => {
    expect(compile('SELECT number FROM numbers(10 + 10) LIMIT 2 * 3').limit).toBe(6);
    expect(() => compile('SELECT topK(1 - 1)(number) FROM numbers(3)')).toThrow("Parameter 1 of 'topK'");
  });
});

describe('aliases that refer to each other', () => {
  const chain = (length: number): readonly string[] =>
    Array.from({ length }, (_, index) => `-a${index} AS a${index + 1}`);

  it('compile in linear time', () => {
    // Following every path from each alias would take minutes; together they are too long only when all are compiled.
    expect(() => compile(`SELECT number AS a0, ${chain(9_000).join(', ')} FROM numbers(1)`)).toThrow(
      'This query expands to too much SQL.',
    );
  });

  it.each([
    [
      'WITH',
      (names: readonly string[]) => `WITH number AS a0, ${names.join(', ')} SELECT a9000 FROM numbers(1)`,
    ],
    [
      'SELECT',
      (names: readonly string[]) => `SELECT ${names.toReversed().join(', ')}, number AS a0 FROM numbers(1)`,
    ],
  ])('and nest too deeply in %s are rejected', (_, query) => {
    expect(() => compile(query(chain(9_000)))).toThrow('The aliases of this query nest too deeply.');
  });
});
