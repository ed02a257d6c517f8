import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { compileQuery } from '../../compile/compile_query.ts';
import { inReadOnlyTransaction } from '../read_only.ts';
import { createTestDatabase, type TestDatabase } from '../../../../test/setup/database.ts';
import { casesOf } from '../../../../test/setup/effort.ts';
import { project, teamId } from '../project.ts';
import { rowsOf } from '../rows_of.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  // 3 MB of documents, ten times as much as the memory below.
  await database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, person_id, properties, timestamp, created_at)
      select $1, gen_random_uuid(), 'event', 'user ' || n, null, jsonb_build_object('n', n, 'text', repeat(md5(n::text), 30)),
        '2026-01-01'::timestamptz + n * interval '1 second', now() from generate_series(1, 3000) as n`,
    [teamId],
  );
});
afterAll(() => database.drop());

/** The first row of a query that may neither sort in memory nor write temporary files. */
const boundedSettings = `set local work_mem = '64kB'; set local temp_file_limit = 0; set local enable_indexscan = off;
  set local enable_bitmapscan = off`;

async function boundedRow(query: string): Promise<readonly unknown[] | undefined> {
  const { sql, parameters } = compileQuery(query, project);
  return inReadOnlyTransaction(database.pool, boundedSettings, async (connection) => {
    const { rows } = await connection.query<unknown[]>({
      text: sql,
      values: [...parameters],
      rowMode: 'array',
    });
    return rows[0];
  });
}

describe('aggregates that return one value keep one value', () => {
  it.each([
    ['argMax(properties.n, timestamp)', '3000'],
    ["JSONExtractInt(argMax(properties, timestamp), 1 = 1 ? 'n' : '')", 3000],
    ['length(argMin(properties.text, distinct_id))', 960],
    ["JSONHas(any(properties), 'n')", true],
    [
      "argMaxIf(timestamp, toInt(properties.n), toInt(properties.n) < 10) = toDateTime('2026-01-01 00:00:09')",
      true,
    ],
    ['argMax(toInt(properties.n), (event, timestamp))', 3000],
  ])('%s', async (expression, expected) => {
    expect(await boundedRow(`SELECT ${expression} FROM events`)).toEqual([expected]);
  });
});

describe('aggregates that gather values', () => {
  const text = "repeat('x', 100000)";

  /** Every third case: each builds more than a hundred megabytes. */
  const someOf = (cases: readonly string[]) =>
    casesOf(
      cases.filter((_, index) => index % 3 === 0),
      cases,
    );

  const arrays = [
    `length(groupArray(${text})) FROM numbers(2000)`,
    `length(groupArray(${text})), count() FROM numbers(2000) GROUP BY number % 2`,
    `length(groupArray(${text})), length(groupArray(concat(${text}, '.'))) FROM numbers(1000)`,
    `length(string_agg(${text}, ',')) FROM numbers(2000)`,
    `topK(1)(${text}) FROM numbers(2000)`,
    `sumMap(map(${text}, number)) FROM numbers(2000)`,
  ];
  it.each(someOf(arrays))('are rejected before they fill the memory: %s', async (selected) => {
    await expect(rowsOf(database.pool, `SELECT ${selected}`, project)).rejects.toMatchObject({
      code: '54000',
    });
  });

  /** A million characters that no other row has. */
  const different = "concat(leftPad(toString(number), 10, '0'), repeat('x', 999990))";

  const sets = [
    `length(groupUniqArray(${different})) FROM numbers(150)`,
    `length(groupArray(DISTINCT ${different})) FROM numbers(150)`,
    `length(string_agg(DISTINCT ${different}, ',')) FROM numbers(150)`,
    `length(groupUniqArray(${different})), length(groupArray(${text})) FROM numbers(130)`,
    `length(groupUniqArrayIf(${different}, number > 0)), length(groupUniqArray(lower(${different}))) FROM numbers(80)`,
    `number % 2 AS k, length(groupUniqArray(${different})) FROM numbers(150) GROUP BY k`,
  ];
  it.each(someOf(sets))('count each value of a set once, and are rejected: %s', async (selected) => {
    await expect(rowsOf(database.pool, `SELECT ${selected}`, project)).rejects.toMatchObject({
      code: '54000',
    });
  });

  it('accept a small set of many large values', async () => {
    const query = `SELECT number % 2 AS k, length(groupUniqArray(repeat(toString(number % 4), 1000000))), length(groupArray(number)),
      length(groupUniqArrayIf(repeat('x', 1000000), number > 100)) FROM numbers(150) GROUP BY k ORDER BY k`;
    expect(await rowsOf(database.pool, query, project)).toEqual([
      [0, 2, 75, 1],
      [1, 2, 75, 1],
    ]);
  });

  const windows = [
    `length(groupArray(${different}) OVER ()) FROM numbers(150)`,
    `length(groupUniqArray(${different}) OVER (ORDER BY number)) FROM numbers(150)`,
    `length(groupArray(${different}) OVER (PARTITION BY number % 2)) FROM numbers(300)`,
    `length(groupArray(max(${different})) OVER ()) FROM numbers(150) GROUP BY number`,
    `length(groupArray(${different}) OVER (ROWS BETWEEN 2000 PRECEDING AND CURRENT ROW)) FROM numbers(150)`,
  ];
  it.each(someOf(windows))('are rejected for a partition that fills the memory: %s', async (selected) => {
    await expect(rowsOf(database.pool, `SELECT ${selected} LIMIT 1`, project)).rejects.toMatchObject({
      code: '54000',
    });
  });

  it('accept small partitions and short frames of many rows', async () => {
    const query = `SELECT number, length(groupArray(${different}) OVER (PARTITION BY number % 50)),
      length(groupArray(${different}) OVER (ORDER BY number ROWS BETWEEN 1 PRECEDING AND CURRENT ROW))
      FROM numbers(150) ORDER BY number LIMIT 2`;
    expect(await rowsOf(database.pool, query, project)).toEqual([
      [0, 3, 1],
      [1, 3, 2],
    ]);
  });

  it('are rejected in a lambda, whose values their size cannot depend on', () => {
    const query = 'SELECT arrayMap(x -> (SELECT groupArray(number + x) OVER () FROM numbers(1)), [1])';
    expect(() => compileQuery(query, project)).toThrow(
      "Function 'groupArray' with OVER is not allowed in a lambda.",
    );
  });

  it('count only values that they keep', async () => {
    const query = `SELECT length(groupArrayIf(${text}, number < 10)), length(groupUniqArray(${text})), count(), max(number)
      FROM numbers(2000) WHERE number > 0`;
    expect(await rowsOf(database.pool, query, project)).toEqual([[9, 1, 1999, 1999]]);
  });

  it('keep keys, order and totals', async () => {
    const query = `SELECT number % 2 AS k, groupArray(number), groupArray(DISTINCT number % 4), sumIf(number, number > 1), count(DISTINCT number)
      FROM (SELECT number FROM numbers(6) ORDER BY number DESC) AS given GROUP BY k WITH TOTALS HAVING k < 5 ORDER BY k`;
    expect(await rowsOf(database.pool, query, project)).toEqual([
      [0, [4, 2, 0], [0, 2], 6, 3],
      [1, [5, 3, 1], [1, 3], 8, 3],
      [null, [5, 4, 3, 2, 1, 0], [0, 1, 2, 3], 14, 6],
    ]);
  });
});

describe('argMin and argMax order keys as ORDER BY does', () => {
  it.each([
    ['toFloat(x)', ["'-1'", "'1e300'", "'3'", "'-inf'", "'inf'", "'nan'"], "'-inf'", "'nan'"],
    ['toFloat(x)', ["'9'", "'10'", "'-5'"], "'-5'", "'10'"],
    ['x', ["'b'", "'B'", "'ä'", "'a'"], "'B'", "'ä'"],
    ['toDecimal(x, 3)', ["'2.5'", "'10.25'"], "'2.5'", "'10.25'"],
    ['toDate(x)', ["'2026-01-02'", "'1969-12-31'"], "'1969-12-31'", "'2026-01-02'"],
    [
      'toDateTime(x)',
      ["'2026-01-02 00:00:00'", "'2025-12-31 23:59:59'"],
      "'2025-12-31 23:59:59'",
      "'2026-01-02 00:00:00'",
    ],
    ["x = 'b'", ["'b'", "'a'"], "'a'", "'b'"],
    ['(length(x), x)', ["'bb'", "'a'", "'ab'"], "'a'", "'bb'"],
    [
      'toUUID(x)',
      ["'b0000000-0000-0000-0000-000000000000'", "'0a000000-0000-0000-0000-000000000000'"],
      "'0a000000-0000-0000-0000-000000000000'",
      "'b0000000-0000-0000-0000-000000000000'",
    ],
  ])('%s of %p', async (key, values, least, greatest) => {
    const rows = values.map((value) => `SELECT ${value} AS x`).join(' UNION ALL ');
    const query = `SELECT argMin(x, ${key}) = ${least}, argMax(x, ${key}) = ${greatest} FROM (${rows}) AS given`;
    expect(await rowsOf(database.pool, query, project)).toEqual([[true, true]]);
  });

  it('return values of each type unchanged', async () => {
    const query = `SELECT argMax(toInt(n), n), argMax(toFloat(n) / 3, n), argMax(n > 1, n), argMax(toDate('2026-01-01') + n, n),
      argMax(toDateTime('2026-01-01 00:00:00') + INTERVAL n SECOND, n), argMax([n], n), argMax((n, 'a'), n),
      argMax(map('a', n), n), argMax(toDecimal(n, 2), toString(n)), argMax(nullIf(n, 2), n)
      FROM (SELECT 1 AS n UNION ALL SELECT 2 AS n) AS given`;
    const [row] = await rowsOf(database.pool, query, project);
    expect(row?.map((value) => JSON.stringify(value))).toEqual([
      '2',
      '0.6666666666666666',
      'true',
      '"2026-01-03"',
      '"2026-01-01T00:00:02.000Z"',
      '[2]',
      '[2,"a"]',
      '{"a":2}',
      '2',
      '1',
    ]);
  });
});
