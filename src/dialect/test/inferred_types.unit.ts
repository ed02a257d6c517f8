import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { compileQuery } from '../compile/compile_query.ts';
import { DialectError } from '../query_text.ts';
import type { ConvertedType, Schema } from '../schema.ts';
import type { Property, PropertyScope } from '../types.ts';
import { effort } from '../../../test/setup/effort.ts';
import { goldenQueries } from './golden_queries.ts';
import { project } from './project.ts';

/** What is inferred of undeclared properties; nothing of others. */
const inferable = new Map<string, ConvertedType>([
  ['price', 'numeric'],
  ['discount', 'numeric'],
  ['vip', 'boolean'],
  ['since', 'datetime'],
]);
const scopes: readonly PropertyScope[] = ['event', 'person', 'group_0'];

/** A statement and the names of its types: those tell not whether a type may be inferred. */
function compile(query: string, schema: Partial<Schema>) {
  const { columns, ...statement } = compileQuery(query, {
    ...project,
    schema: { ...project.schema, properties: new Map(), ...schema },
  });
  return { ...statement, types: columns.map(({ typeName }) => typeName) };
}
const asText = (query: string) => compile(query, {});
const asDeclared = (query: string) =>
  compile(query, { properties: new Map(scopes.map((scope) => [scope, inferable])) });

/** Compiles until all types are known that the query needs. */
function asInferred(query: string) {
  const known = new Map<string, ConvertedType | undefined>();
  for (;;) {
    const requested: Property[] = [];
    const inference = {
      typeOf: ({ name }: Property) => known.get(name),
      request: (property: Property) => !known.has(property.name) && requested.push(property) > 0,
    };
    let statement: ReturnType<typeof compile> | null = null;
    try {
      statement = compile(query, { inference });
    } catch (error) {
      if (requested.length === 0) throw error;
    }
    if (statement !== null && requested.length === 0) return { statement, needed: [...known.keys()] };
    for (const { name } of requested) known.set(name, inferable.get(name));
  }
}

describe('a property without a declared type is read by its inferred type in a query that uses it', () => {
  it.each([
    ['as a number', 'select avg(properties.price), sum(person.properties.price) from events'],
    ['above a number', 'select count() from events where properties.price > 100'],
    ['as equal to one', 'select count() from events where 5 = properties.price'],
    ['in arithmetic', 'select properties.price * 2, -properties.discount, properties.price / 3 from events'],
    ['as one of numbers', 'select count() from events where properties.price in (1, 2)'],
    ['between numbers', 'select count() from events where properties.price not between 1 and 5'],
    ['as a boolean', 'select count() from events where properties.vip = true'],
    [
      'as a condition',
      'select countIf(properties.vip), countIf(not properties.vip) from events where properties.vip',
    ],
    ['with a default', 'select coalesce(properties.vip, false), ifNull(properties.price, 0) from events'],
    ['with `??`', 'select properties.price ?? 0 from events'],
    [
      'in branches',
      'select if(properties.vip, properties.price, 0), multiIf(properties.vip, 1, 2) from events',
    ],
    ['in CASE', 'select case properties.price when 5 then 1 end from events'],
    ['as a time', 'select toStartOfDay(properties.since) from events where properties.since > now()'],
    [
      'with an interval',
      'select properties.since + interval 1 day, extract(day from properties.since) from events',
    ],
    ['through a subquery', 'select avg(x) from (select properties.price as x from events)'],
    ['through a CTE', 'with a as (select properties.price as x from events) select x + 1 from a'],
    [
      'through an aggregate',
      'select max(properties.price) * 2, argMax(properties.price, timestamp) + 1 from events',
    ],
    ['in lambdas', 'select arrayMap(x -> x * 2, groupArray(properties.price)) from events'],
    ['as summed items', 'select arraySum(groupArray(properties.price)) from events'],
    ['in a union', 'select properties.price from events union all select 0'],
    ['among items', 'select has([1, 2], properties.price) from events'],
    ['as items', 'select has(groupArray(properties.price), 5) from events'],
    ['in an array', 'select [properties.price, 1] from events'],
    ['in windows', 'select lagInFrame(properties.price) over (order by timestamp) - 1 from events'],
    ['of a group', 'select count() from events where group_0.properties.price > 5'],
    ['of persons', "select count() from persons where properties['price'] > 5"],
    ['beside another one', 'select properties.price + properties.discount from events'],
    [
      'equal to another one',
      'select properties.price = properties.discount from events where properties.price > 1',
    ],
    // What was text alone is a number beside.
    [
      'in other places',
      'select properties.price, max(properties.price), avg(properties.price) from events group by 1',
    ],
    [
      'and compared with a numeric text',
      "select count() from events where properties.price = '5' and properties.price > 3",
    ],
  ])('%s: like a declared one', (_, query) => {
    expect(() => asText(query)).toThrow(DialectError);
    expect(asInferred(query).statement).toEqual(asDeclared(query));
  });

  it.each([
    ["properties.price != ''", / ->> \$\d::text\) is distinct from \$\d::text/],
    ["properties.price like '5%'", / ->> \$\d::text\) like \$\d::text/],
    ["lower(properties.price) = 'x'", /lower\(.* ->> \$\d::text/],
    ["coalesce(properties.price, '') = 'x'", /coalesce\(\(case .* end\), \$\d::text/],
  ])('and as text where only text fits: %s', (condition, sql) => {
    const query = `select avg(properties.price) from events where ${condition}`;
    expect(() => asText(query)).toThrow(DialectError);
    expect(() => asDeclared(query)).toThrow(DialectError);
    expect(asInferred(query).statement.sql).toMatch(sql);
  });

  it('and the error is that of the text if no type is known', () => {
    for (const query of [
      'select avg(properties.other) from events',
      'select 1 from events where properties.other > 5',
    ])
      expect(() => asInferred(query)).toThrow(/Nullable\(String\)/);
    expect(() => asInferred('select foo(properties.price) + properties.price from events')).toThrow(
      /Unsupported function call 'foo/,
    );
  });

  it('but not if it is declared as a string, nor inside of an object', () => {
    const properties: Schema['properties'] = new Map([['event', new Map([['price', 'string']])]]);
    const request = () => true;
    const inference = { typeOf: () => undefined, request };
    expect(() => compile('select avg(properties.price) from events', { properties, inference })).toThrow(
      /found Nullable\(String\)/,
    );
    expect(() => asInferred('select avg(properties.price.net) from events')).toThrow(
      /found Nullable\(String\)/,
    );
  });
});

/** What `read` compiles; null if the query is rejected. */
function unlessRejected<Result>(read: () => Result): Result | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof DialectError) return null;
    throw error;
  }
}

/** A query as text, and what it is where types are inferred. Of one that is rejected as text, only that both end. */
function bothWays(query: string) {
  const text = unlessRejected(() => asText(query));
  const inferred = unlessRejected(() => asInferred(query));
  return text === null ? { text: null, inferred: null } : { text: { statement: text, needed: [] }, inferred };
}

describe('no inferred type changes a query that reads text', () => {
  it('of the golden queries', () => {
    const both = goldenQueries.map(([query]) => bothWays(query));
    expect(both.map(({ inferred }) => inferred)).toEqual(both.map(({ text }) => text));
  });

  const { expression } = fc.letrec<{ expression: string; leaf: string }>((tie) => ({
    leaf: fc.constantFrom(
      ...[...inferable.keys(), 'other'].map((name) => `properties.${name}`),
      'person.properties.price',
      "'5'",
      "''",
      '5',
      'true',
      'timestamp',
      'event',
    ),
    expression: fc.oneof(
      { maxDepth: 3 },
      tie('leaf'),
      fc
        .tuple(
          tie('expression'),
          fc.constantFrom('=', '!=', '<', '>', '+', '*', '||', 'like', '??'),
          tie('expression'),
        )
        .map(([left, operator, right]) => `(${left} ${operator} ${right})`),
      fc
        .tuple(
          fc.constantFrom(
            'lower',
            'toString',
            'toFloat',
            'max',
            'sum',
            'not',
            'isNull',
            'toDate',
            'length',
            'empty',
          ),
          tie('expression'),
        )
        .map(([name, argument]) => `${name}(${argument})`),
      fc
        .tuple(
          fc.constantFrom('coalesce', 'nullIf', 'concat', 'least', 'startsWith'),
          tie('expression'),
          tie('expression'),
        )
        .map(([name, ...both]) => `${name}(${both.join(', ')})`),
      fc.tuple(tie('expression'), tie('expression'), tie('expression')).map((all) => `if(${all.join(', ')})`),
    ),
  }));

  it('of random ones', () => {
    fc.assert(
      fc.property(expression, expression, (one, other) => {
        const { text, inferred } = bothWays(`select ${one}, ${other} from events`);
        expect(inferred).toEqual(text);
      }),
      { numRuns: 1_000 * effort },
    );
  });
});
