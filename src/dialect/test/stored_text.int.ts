import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { compileQuery } from '../compile/compile_query.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/setup/database.ts';
import { project } from './project.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const name of ['$session_id', 'plan'])
    await database.pool.query(`create index on events (team_id, (properties ->> '${name}'))`);
});
afterAll(() => database.drop());

/** The conditions on indexes that a query can use. */
async function indexConditions(query: string): Promise<readonly string[]> {
  const { sql, parameters } = compileQuery(query, project);
  const connection = await database.pool.connect();
  try {
    await connection.query('set enable_seqscan = off');
    const { rows } = await connection.query<{ 'QUERY PLAN': string }>(`explain ${sql}`, [...parameters]);
    return rows.map((row) => row['QUERY PLAN']).filter((line) => line.includes('Index Cond'));
  } finally {
    connection.release(true);
  }
}

describe('an index on a property', () => {
  it.each([
    ["SELECT count() FROM events WHERE $session_id = 'a'", '$session_id'],
    ["SELECT count() FROM events WHERE 'a' = $session_id AND event = 'x'", '$session_id'],
    ["SELECT count() FROM events WHERE $session_id IN ('a', 'b')", '$session_id'],
    ["SELECT event, $session_id, person_id FROM events WHERE $session_id = 'a'", '$session_id'],
    ["SELECT session.$session_duration FROM events WHERE $session_id = 'a'", '$session_id'],
    ["SELECT properties.plan, count() FROM events WHERE properties.plan = 'pro' GROUP BY 1", 'plan'],
    ["SELECT count() FROM events WHERE properties.plan IN ('pro', 'free')", 'plan'],
    ["SELECT count() FROM events WHERE toString(properties.plan) = 'pro'", 'plan'],
    ['SELECT count() FROM events WHERE properties.plan IS NULL', 'plan'],
  ])('is used by %s', async (query, name) => {
    const conditions = await indexConditions(query);
    expect(conditions.some((line) => line.includes(`'${name}'`))).toBe(true);
  });
});
