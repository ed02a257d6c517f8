import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../../../test/setup/database.ts';
import { rowsOf } from '../rows_of.ts';
import { comparable, compiled, newYork } from './batches.ts';
import { queryCases, rejectedQueries, unresolvedQueries } from './query_cases.ts';
import { insertQueryData } from './queries_data.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await insertQueryData(database.pool);
});
afterAll(() => database.drop());

describe('queries return the rows that ClickHouse returns', () => {
  it.each(queryCases)('$query', async ({ query, rows }) => {
    expect(comparable(await rowsOf(database.pool, query, newYork))).toEqual(comparable(rows));
  });

  it('in more than five hundred cases', () => {
    expect(unresolvedQueries).toEqual([]);
    expect(queryCases.length).toBeGreaterThan(500);
  });
});

describe('what is not supported', () => {
  it.each(rejectedQueries)('is rejected: $query', ({ query, rejected }) => {
    expect(() => compiled(query)).toThrow(rejected);
  });
});
