import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { compileQuery } from '../compile/compile_query.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/setup/database.ts';
import { project } from './project.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** Names that the compiler gives to relations and columns, or gave once. */
const names = [
  'c1',
  'k1',
  'a1',
  's1',
  'p1',
  'v',
  'v1',
  'q',
  'n',
  'o1',
  'b1',
  'at',
  'acc',
  'ordinal',
  'seen',
  'value',
  'x0_0',
  'x1_0',
  'fold0',
  'item',
  'item_0',
  'slice',
  'slice_0',
  'each',
  'one',
  'made',
  'run',
  'given',
  'top',
  'grouped',
  'grouped$1',
  'windows$1',
  'subquery$1',
  '$once1',
  'once$1',
  'whole',
  'groups',
  'bounded',
  'inner_rows',
  'numbered',
  'all_rows',
  'position',
  'joined$1',
  'operand',
  '$operand1',
  'first_match$1',
];

/** Queries that use a name for a table, a column, an alias and a lambda's parameter. */
const queriesWith = (name: string): readonly string[] => [
  `WITH ${name} AS (SELECT number AS ${name} FROM numbers(3))
    SELECT ${name}.${name} AS ${name}, arrayMap(${name} -> ${name} + 1, [${name}]) AS mapped,
      arrayFold((${name}, x) -> ${name} + x, [1, 2], toInt64(0)) AS folded, row_number() OVER (ORDER BY ${name}) AS r,
      (SELECT max(${name}) FROM ${name}) AS m, uniq(toString(${name})) AS u
    FROM ${name} GROUP BY ${name} HAVING count() > 0 ORDER BY ${name}`,
  `SELECT ${name}, arrayFilter(${name} -> ${name} IN ([1, 2])[1:2], [1, 2, 3]) AS kept,
      arrayExists(y -> y = ${name}, [1, 2])
    FROM (SELECT number AS ${name} FROM numbers(4)) AS ${name}
    ARRAY JOIN [1, 2] AS j ORDER BY ${name}, j LIMIT 1 BY ${name}`,
  `SELECT ${name}.number AS a, b.${name} FROM numbers(3) AS ${name} LEFT ANY JOIN
      (SELECT number AS ${name}, number AS k FROM numbers(2)) AS b ON b.k = ${name}.number ORDER BY a`,
  `SELECT DISTINCT length(toString(${name})) + (${name} BETWEEN 1 AND 2 ? 1 : 0) AS ${name} FROM
      (SELECT number AS ${name} FROM numbers(3)) QUALIFY row_number() OVER (ORDER BY ${name}) > 0
      ORDER BY ${name} LIMIT 50 PERCENT`,
];

const rowsOf = async (query: string): Promise<readonly unknown[]> => {
  const { sql, parameters } = compileQuery(query, project);
  const { rows } = await database.pool.query<Record<string, unknown>>(sql, [...parameters]);
  return rows;
};

it.each(names)('the name %s means in a query what any other name means', async (name) => {
  const [named, plain] = [queriesWith(`\`${name}\``), queriesWith('plain')];
  for (const [index, query] of named.entries())
    expect(await rowsOf(query)).toEqual(await rowsOf(plain[index] ?? ''));
});
