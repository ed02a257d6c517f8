import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import { admitQueryRequest } from '../../src/queries/rate_limiter.ts';
import { storeResult } from '../../src/queries/results.ts';
import { deleteExpiredQueries } from '../../src/queries/retention.ts';
import { recordCacheHit } from '../../src/queries/statuses.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const minute = 60_000;
const day = 24 * 60 * minute;

it('answers go when they are too old or replaced and nobody can ask for them, statuses when they expire', async () => {
  const { pool } = database;
  const settings = readSettings({ DATABASE_URL: database.url });
  const answer = async (cache_key: string, age: number) => {
    const { id } = await storeResult(pool, { team_id: 1, cache_key, json: '{}' });
    await pool.query(
      `update exportd.query_results set computed_at = computed_at - $2 * interval '1 millisecond' where id = $1`,
      [id, age],
    );
    return id;
  };
  const status = async (result_id: string, keptMs: number) => {
    const id = randomUUID();
    const order = { team_id: 1, id, kind: 'K', query: {}, variables: {}, cache_key: 'x' };
    await recordCacheHit(pool, { ...order, result_id, ttlMs: keptMs });
    return id;
  };
  const old = await answer('a', 8 * day);
  const named = await answer('b', 8 * day);
  const replaced = await answer('c', 10 * minute);
  const kept = [
    await answer('c', 5 * minute),
    await answer('c', 0),
    await answer('d', 6 * day),
    named,
  ].sort();
  const [asked, expired] = [await status(named, day), await status(old, 0)];
  await admitQueryRequest(pool, 1, 5);
  await admitQueryRequest(pool, 1, 5);
  await pool.query(
    `update exportd.query_requests set requested_at = requested_at - interval '61 minutes' where number = 1`,
  );
  expect(await deleteExpiredQueries(pool, settings)).toBe(3);
  const ids = async (table: string) =>
    (await pool.query<{ id: string }>(`select id from exportd.${table}`)).rows.map(({ id }) => id).sort();
  expect(await ids('query_results')).toEqual(kept);
  expect(kept).not.toContain(replaced);
  expect(await ids('queries')).toEqual([asked]);
  expect(expired).not.toBe(asked);
  expect((await admitQueryRequest(pool, 1, 5)).remaining).toBe(3);
  expect(await deleteExpiredQueries(pool, settings)).toBe(0);
});
