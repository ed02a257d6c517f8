import { describe, expect, it } from '@jest/globals';
import { compileQuery } from '../compile/compile_query.ts';
import { DialectError } from '../query_text.ts';
import { parseExpression, parseQuery } from '../parser/queries.ts';
import type { Expression } from '../ast.ts';
import type { Bindings, Placeholders, PlaceholderValue } from '../resolve/placeholders.ts';
import { project } from './project.ts';
import { validParameters, invalidParameters } from './invalid_parameters.ts';
import { invalidQueries } from './invalid_queries.ts';

const compile = (query: string, placeholders: Placeholders = new Map()) =>
  compileQuery(query, project, { placeholders });

const errorOf = (query: string): DialectError => {
  try {
    compile(query);
  } catch (error) {
    if (error instanceof DialectError) return error;
    throw error;
  }
  throw new Error(`Not rejected: ${query}`);
};

/** Wraps a text in itself. */
const nested = (depth: number, wrap: (inner: string) => string): string =>
  Array.from({ length: depth }).reduce<string>(wrap, '1');

describe('deep nesting compiles in linear time', () => {
  it.each([
    [
      'windows in lambdas',
      (inner: string) =>
        `arrayMap(x -> (SELECT x + row_number() OVER () + ${inner} FROM numbers(2) LIMIT 1), [1])[1]`,
    ],
    [
      'groups in lambdas',
      (inner: string) =>
        `arrayMap(x -> (SELECT max(number) + x + ${inner} AS c FROM numbers(3) GROUP BY number QUALIFY row_number() OVER (ORDER BY number) = 1 LIMIT 1), [1])[1]`,
    ],
  ])('of %s', (_, wrap) => {
    // Compiling each level twice would take days.
    expect(compile(`SELECT ${nested(30, wrap)}`).columns).toHaveLength(1);
  });

  it('and rejects arrayFold in many lambdas', () => {
    const fold = (inner: string) => `arrayFold((acc, x) -> acc + ${inner}, [1], toInt64(0))`;
    expect(compile(`SELECT ${nested(7, fold)}`).columns).toHaveLength(1);
    expect(errorOf(`SELECT ${nested(30, fold)}`).message).toContain(
      "Function 'arrayFold' can be nested in at most 6 lambdas.",
    );
  });
});

describe('resolution errors', () => {
  it.each(invalidQueries)('%s', (query, column, message) => {
    const error = errorOf(query);
    expect(error.message.split('\n')[0]).toBe(`${message} (line 1, column ${column})`);
    expect(error.excerpt).toContain('^');
  });

  it.each(invalidParameters)('%s', (call, column, message) => {
    const error = errorOf(`SELECT ${call} FROM numbers(3)`);
    expect(error.message.split('\n')[0]).toBe(`${message} (line 1, column ${column})`);
  });

  it.each(validParameters)('accepts %s', (call) => {
    expect(compile(`SELECT ${call} FROM numbers(3)`).columns).toHaveLength(1);
  });

  it('shows the line in a longer query', () => {
    const error = errorOf('SELECT event,\n  propertys.plan\nFROM events');
    expect(error).toMatchObject({ line: 2, column: 3, suggestion: 'Perhaps you meant `properties`?' });
    expect(error.excerpt).toBe('  propertys.plan\n  ^^^^^^^^^');
  });

  it.each([
    ['group_0.properties.x FROM events', 'Use the key of the group: $group_0.'],
    ['key FROM groups', 'The source has no relation public.groups; '],
    ['session_id FROM session_replay_events', 'The source has no relation public.session_replay_events.'],
  ])('for %s suggest what to do when the source lacks the relation', (query, suggestion) => {
    const without = { ...project.schema, groups: null, cohortPeople: null, sessionReplayEvents: null };
    expect(() => compileQuery(`SELECT ${query}`, { ...project, schema: without })).toThrow(suggestion);
  });

  it('reject a FROM with too many tables, including those of subqueries unless they are planned separately', () => {
    const joined = (name: string) =>
      Array.from({ length: 11 }, (_, index) => `persons AS ${name}${index}`).join(', ');
    const both = (ending: string) =>
      `SELECT 1 FROM (SELECT a0.id FROM ${joined('a')}${ending}) AS a, (SELECT b0.id FROM ${joined('b')}) AS b`;
    expect(errorOf(both('')).summary).toBe('A FROM clause can join at most 20 tables.');
    expect(compile(both(' LIMIT 10')).columns).toHaveLength(1);
    expect(compile(both(' GROUP BY a0.id')).columns).toHaveLength(1);
  });

  it('reject aliases whose expansion becomes too large', () => {
    const names = Array.from({ length: 40 }, (_, index) => `a${index} + a${index} AS a${index + 1}`);
    expect(errorOf(`SELECT number AS a0, ${names.join(', ')} FROM numbers(1)`).summary).toBe(
      'This query expands to too much SQL.',
    );
  });
});

describe('limits', () => {
  it.each([
    ['SELECT 1', { limit: 100, offset: 0, hasExtraRow: true }, 'SELECT 1 LIMIT 100', '101'],
    ['SELECT 1 LIMIT 7', { limit: 7, offset: 0, hasExtraRow: false }, 'SELECT 1 LIMIT 7', '7'],
    ['SELECT 1 OFFSET 3', { limit: 100, offset: 3, hasExtraRow: true }, 'SELECT 1 LIMIT 100 OFFSET 3', '101'],
    [
      'SELECT 1 LIMIT 10000',
      { limit: 10_000, offset: 0, hasExtraRow: false },
      'SELECT 1 LIMIT 10000',
      '10000',
    ],
    [
      'SELECT 1 LIMIT 10001',
      { limit: 10_000, offset: 0, hasExtraRow: true },
      'SELECT 1 LIMIT 10000',
      '10001',
    ],
    [
      'SELECT 1 LIMIT 50 PERCENT OFFSET 3',
      { limit: 10_000, offset: 3, hasExtraRow: true },
      'SELECT 1 LIMIT 50 PERCENT OFFSET 3',
      '10001',
    ],
    [
      'SELECT 1 ORDER BY 1 LIMIT 7 WITH TIES',
      { limit: 10_000, offset: 0, hasExtraRow: true },
      'SELECT 1 ORDER BY 1 LIMIT 7 WITH TIES',
      '10001',
    ],
    [
      'SELECT 1 OFFSET 0.5',
      { limit: 100, offset: null, hasExtraRow: true },
      'SELECT 1 LIMIT 100 OFFSET 0.5',
      '101',
    ],
  ])('%s', (query, bounds, printed, boundLimit) => {
    const compiled = compile(query);
    expect(compiled).toMatchObject({ ...bounds, printed });
    expect(compiled.parameters).toContain(boundLimit);
  });

  it('apply to each query of a UNION and to the whole', () => {
    const { printed, limit } = compile('SELECT 1 UNION ALL SELECT 2 LIMIT 5');
    expect({ printed, limit }).toEqual({
      printed: 'SELECT 1 LIMIT 100 UNION ALL (SELECT 2 LIMIT 5) LIMIT 10000',
      limit: 10_000,
    });
  });

  it('do not count the totals row', () => {
    const grouped = 'SELECT event FROM events GROUP BY event';
    expect([compile(`${grouped} WITH TOTALS LIMIT 7`), compile(grouped)]).toMatchObject([
      { limit: 7, hasTotals: true },
      { limit: 100, hasTotals: false },
    ]);
  });

  it('are omitted when all rows are requested', () => {
    expect(compileQuery('SELECT 1', project, { rows: null })).toMatchObject({
      printed: 'SELECT 1',
      limit: null,
    });
  });
});

describe('placeholders', () => {
  const ofRows: PlaceholderValue = {
    kind: 'condition',
    conditionOf: ({ table, name }) => parseExpression(`${name}.event = '${table}'`),
  };

  /** The columns of all keys, and the names of those to skip. */
  const joined = (bindings: Bindings): Expression => ({
    kind: 'tuple',
    items: [...bindings].map(([key, column]) => column ?? { kind: 'string', value: key, start: 0, end: 0 }),
    start: 0,
    end: 0,
  });

  it.each([
    [
      'SELECT {filters.breakdown} FROM events',
      'Unresolved placeholder: {filters.breakdown} Write {filters.breakdown(',
    ],
    [
      'SELECT 1 FROM events WHERE {filters()}',
      'Each argument of {filters(…)} must bind a column to a key of its own.',
    ],
    [
      'SELECT 1 FROM events WHERE {filters(event)}',
      "Write {filters(created_at AS timestamp, plan AS 'plan')}",
    ],
    [
      "SELECT 1 FROM events WHERE {filters(event AS 'a', uuid AS a)}",
      'must bind a column to a key of its own',
    ],
    ['SELECT {filters.breakdown(event)} FROM events', "Write {filters.breakdown(properties.plan AS 'plan')}"],
    ["SELECT {filters.interval('fortnight')}", "Write {filters.interval('week')}."],
    ["SELECT {filters.interval('day', 'week')}", "Write {filters.interval('week')}."],
    ['SELECT {filters.interval(event)} FROM events', "Write {filters.interval('week')}."],
    ["SELECT {filters.granularity('day')}", 'Unresolved placeholder: {filters.granularity()}'],
    ["SELECT {filters.interval(DISTINCT 'day')}", 'A placeholder must be a name'],
    ["SELECT filters.interval('day')", "Unsupported function call 'filters.interval(...)'"],
    ['SELECT {other.call(1)}', 'A function name cannot contain a dot. Write call(…).'],
  ])('of filters are rejected with what to write: %s', (query, message) => {
    expect(() => compile(query)).toThrow(message);
  });

  it('with table conditions are rejected in a SELECT without such a table', () => {
    expect(() => compile('SELECT 1 FROM plans WHERE {filters}', new Map([['filters', ofRows]]))).toThrow(
      'Cannot use {filters} in a SELECT that does not read events, sessions, groups or persons.',
    );
  });

  it.each<readonly [string, Placeholders, string]>([
    ['SELECT 1 WHERE {filters}', new Map(), 'SELECT 1 WHERE true LIMIT 100'],
    [
      'SELECT 1 FROM events WHERE {filters}',
      new Map([['filters', { kind: 'expression', expression: parseExpression("event = 'a'") }]]),
      "SELECT 1 FROM events WHERE event = 'a' LIMIT 100",
    ],
    [
      'SELECT 1 FROM events WHERE timestamp >= {filters.dateRange.from} AND true',
      new Map([['filters.dateRange.from', { kind: 'unset' }]]),
      'SELECT 1 FROM events WHERE true AND true LIMIT 100',
    ],
    [
      'SELECT 1 FROM persons AS p JOIN events AS e ON e.person_id = p.id WHERE {filters}',
      new Map([['filters', ofRows]]),
      "SELECT 1 FROM persons AS p INNER JOIN events AS e ON e.person_id = p.id WHERE e.event = 'events' LIMIT 100",
    ],
    [
      'SELECT event FROM (SELECT event FROM events WHERE {filters})',
      new Map([['filters', ofRows]]),
      "SELECT event FROM (SELECT event FROM events WHERE events.event = 'events') LIMIT 100",
    ],
    ['SELECT {variables.n}', new Map([['variables.n', { kind: 'value', value: -3 }]]), 'SELECT -3 LIMIT 100'],
    ['SELECT 1 LIMIT {n}', new Map([['n', { kind: 'value', value: 5 }]]), 'SELECT 1 LIMIT 5'],
    ['SELECT 1 LIMIT {n}', new Map([['n', { kind: 'value', value: 0.5 }]]), 'SELECT 1 LIMIT 0.5'],
    [
      'SELECT 1 LIMIT {n} PERCENT',
      new Map([['n', { kind: 'value', value: 0.5 }]]),
      'SELECT 1 LIMIT 0.5 PERCENT',
    ],
    ['SELECT {a}', new Map([['a', { kind: 'value', value: ['x', null] }]]), "SELECT ['x', NULL] LIMIT 100"],
    ['SELECT {filters.interval}', new Map(), "SELECT 'day' LIMIT 100"],
    ["SELECT {filters.interval('week')}", new Map(), "SELECT 'week' LIMIT 100"],
    [
      "SELECT {filters.interval('week')}",
      new Map([['filters.interval()', { kind: 'unit', unit: 'month' }]]),
      "SELECT 'month' LIMIT 100",
    ],
    ["SELECT {filters.breakdown(event AS 'e')} FROM events", new Map(), 'SELECT NULL FROM events LIMIT 100'],
    [
      'SELECT 1 FROM plans WHERE {filters(name AS timestamp)}',
      new Map(),
      'SELECT 1 FROM plans WHERE true LIMIT 100',
    ],
    [
      "SELECT {filters(lower(name) AS 'plan', null AS other)} FROM plans",
      new Map([['filters()', { kind: 'bindings', expressionOf: joined }]]),
      "SELECT (lower(name), 'other') FROM plans LIMIT 100",
    ],
  ])('%s', (query, placeholders, printed) => {
    expect(compile(query, placeholders).printed).toBe(printed);
  });
});

describe('columns', () => {
  it('are named by alias, last part of the path, or canonical text', () => {
    const { columns } = compile(
      "SELECT event AS e, properties.$browser, properties.a.b, person.properties.email, count(), 1+1, properties['x y'] FROM events GROUP BY 1, 2, 3, 4, 7",
    );
    expect(columns.map(({ name }) => name)).toEqual([
      'e',
      '$browser',
      'a__b',
      'email',
      'count()',
      '1 + 1',
      'x y',
    ]);
  });

  it('of keys are nullable with WITH TOTALS', () => {
    const { columns } = compile('SELECT event, count() FROM events GROUP BY event WITH TOTALS');
    expect(columns.map(({ typeName }) => typeName)).toEqual(['Nullable(String)', 'Int64']);
  });

  it('have ClickHouse type names', () => {
    const { columns } = compile(
      "SELECT event, properties.plan, count(), 1 / 2, timestamp, toDate(timestamp), [1], (1, 'a'), {'a': 1}, uuid, true, NULL FROM events GROUP BY event, properties.plan, timestamp, uuid",
    );
    expect(columns.map(({ typeName }) => typeName)).toEqual([
      'String',
      'Nullable(String)',
      'Int64',
      'Float64',
      "DateTime64(6, 'UTC')",
      'Date',
      'Array(Int64)',
      'Tuple(Int64, String)',
      'Map(String, Int64)',
      'UUID',
      'Bool',
      'Nullable(Nothing)',
    ]);
  });
});

it('a tree compiles like its text', () => {
  const text = 'SELECT event, count() FROM events GROUP BY event LIMIT 3';
  expect(compileQuery(parseQuery(text), project)).toEqual(compileQuery(text, project));
});

it('a table selects only the columns used, and comparisons are plain where an index can help', () => {
  expect(compile("SELECT uuid FROM events WHERE event = 'a' AND timestamp > '2026-01-01' LIMIT 1").sql).toBe(
    'select "events$1"."uuid" as "c1" from (select "event", "timestamp", "uuid" from "public"."events" where "team_id" = $1::int4) as "events$1" ' +
      'where (("events$1"."event" = $2::text) and ("events$1"."timestamp" > $3::timestamptz)) limit $4::int8',
  );
});

it('sorting by a non-null time can use an index backward; nullable values sort last', () => {
  expect(compile('SELECT uuid FROM events ORDER BY timestamp DESC').sql).toMatch(/order by \S+ desc limit/);
  expect(compile('SELECT uuid FROM events ORDER BY person.created_at DESC').sql).toContain('desc nulls last');
});

it('a count of distinct values, alone or beside one of rows, groups by them first', () => {
  const isSorted = (query: string) => compile(query).sql.includes('count(distinct');
  expect(isSorted('SELECT uniq(person_id) FROM events')).toBe(false);
  expect(isSorted('SELECT event, uniq(person_id) AS n FROM events GROUP BY event HAVING n > 1')).toBe(false);
  expect(isSorted('SELECT uniq(person_id), count() FROM events')).toBe(false);
  expect(isSorted('SELECT uniq(person_id), max(timestamp) FROM events')).toBe(true);
  expect(isSorted("SELECT uniqIf(person_id, event = 'a') FROM events")).toBe(true);
  expect(isSorted('SELECT event, uniq(person_id) FROM events GROUP BY ROLLUP(event)')).toBe(true);
});

it('hours elapse, also next to a window function; days keep the time of day', () => {
  const last = 'ifNull(max(timestamp) OVER (), now())';
  expect(compile(`SELECT ${last} + INTERVAL 2 HOUR FROM events`).sql).not.toContain('at time zone');
  expect(compile(`SELECT ${last} + INTERVAL 2 DAY FROM events`).sql).toContain('at time zone');
});
