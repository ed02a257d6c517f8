import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../setup/database.ts';
import { rowsOf } from '../running.ts';
import { comparable, compiled, newYork } from './batches.ts';
import { queryCases, refusedQueries, unansweredQueries } from './query_cases.ts';
import { insertQueryData } from './queries_data.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await insertQueryData(database.pool);
});
afterAll(() => database.drop());

describe('queries give the rows that ClickHouse gives', () => {
  it.each(queryCases)('$query', async ({ query, rows }) => {
    expect(comparable(await rowsOf(database.pool, query, newYork))).toEqual(comparable(rows));
  });

  it('of more than five hundred', () => {
    expect(unansweredQueries).toEqual([]);
    expect(queryCases.length).toBeGreaterThan(500);
  });
});

describe('what cannot be computed', () => {
  it.each(refusedQueries)('is refused: $query', ({ query, refused }) => {
    expect(() => compiled(query)).toThrow(refused);
  });
});
