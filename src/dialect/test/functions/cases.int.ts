import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Pool } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../../../test/setup/database.ts';
import { openQueryRolePool } from '../../../../test/setup/query_role.ts';
import { batched, comparable, compiled } from '../chdb/batches.ts';
import { caseRows } from './cases/case_rows.ts';
import { functionCases } from './function_cases.ts';

const batchSize = 60;

let database: TestDatabase;
/** As the role of queries, which may call only some functions of PostgreSQL. */
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = openQueryRolePool(database.url);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

/** The query of a case: `sum(x) FROM nulls` reads rows of `case_rows.ts`. */
function queryOf(call: string): string {
  const [, expression, name = ''] = / FROM (\w+)$/.test(call) ? (/^(.*) FROM (\w+)$/s.exec(call) ?? []) : [];
  const rows = caseRows[name];
  if (expression === undefined || rows === undefined) return `SELECT ${call}`;
  return expression.includes(' OVER (')
    ? `SELECT arrayMap(one -> one.1, groupArray(tuple(value))) FROM (SELECT ${expression} AS value FROM (${rows}) AS given ORDER BY y) AS calls`
    : `SELECT ${expression} FROM (${rows}) AS given`;
}

const cases = Object.values(functionCases).flatMap((casesOfFunction) =>
  Object.entries(casesOfFunction).map(([call, value]) => ({ call, value })),
);
const batches = Array.from({ length: Math.ceil(cases.length / batchSize) }, (_, index) =>
  cases.slice(index * batchSize, (index + 1) * batchSize),
);

describe('the cases of the function table', () => {
  it.each(batches.map((batch) => [batch[0]?.call ?? '', batch] as const))('from %s on', async (_, batch) => {
    const { text, values } = batched(batch.map(({ call }) => compiled(queryOf(call))));
    const { rows } = await pool.query<{ n: number; result: string | null }>(text, [...values]);
    const results = rows.toSorted((first, second) => first.n - second.n).map(({ result }) => result);
    const found = batch.map(({ call }, index) => {
      const result = results[index] ?? null;
      return { call, value: comparable(result === null ? null : JSON.parse(result)) };
    });
    expect(found).toEqual(batch.map(({ call, value }) => ({ call, value: comparable(value) })));
  });
});
