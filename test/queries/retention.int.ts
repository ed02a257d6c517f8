import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import { admitQueryRequest } from '../../src/queries/rate_limiter.ts';
import { deleteExpiredQueries, storeResult } from '../../src/queries/results.ts';
import { recordCacheHit } from '../../src/queries/statuses.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';

const database = useTestDatabase();

const minute = 60_000;
const day = 24 * 60 * minute;

it('deletes results that are unreferenced and old or superseded, and expired statuses', async () => {
  const { pool } = database;
  const settings = readSettings({ DATABASE_URL: database.url });
  const storeOutput = async (cache_key: string, age: number) => {
    const output = { json: Buffer.from('{}'), next_refresh_ms: 0 };
    const { id } = await storeResult(pool, { ...output, team_id: 1, cache_key });
    await pool.query(
      `update exportd.query_results set computed_at = computed_at - $2 * interval '1 millisecond' where id = $1`,
      [id, age],
    );
    return id;
  };
  const status = async (result_id: string, isExpired: boolean) => {
    const id = randomUUID();
    const job = { team_id: 1, id, kind: 'K', query: {}, variables: {}, cache_key: 'x' };
    await recordCacheHit(pool, { ...job, user_id: 1, result_id });
    if (isExpired)
      await pool.query('update exportd.queries set expiration_time = clock_timestamp() where id = $1', [id]);
    return id;
  };
  const old = await storeOutput('a', 8 * day);
  const referenced = await storeOutput('b', 8 * day);
  const replaced = await storeOutput('c', 10 * minute);
  const remaining = [
    await storeOutput('c', 5 * minute),
    await storeOutput('c', 0),
    await storeOutput('d', 6 * day),
    referenced,
  ].sort();
  const [unexpired, expired] = [await status(referenced, false), await status(old, true)];
  await admitQueryRequest(pool, { team_id: 1, user_id: null }, 5);
  await admitQueryRequest(pool, { team_id: 1, user_id: null }, 5);
  await pool.query(
    `update exportd.query_requests set requested_at = requested_at - interval '61 minutes' where number = 1`,
  );
  expect(await deleteExpiredQueries(pool, settings)).toBe(3);
  const ids = async (table: string) =>
    (await pool.query<{ id: string }>(`select id from exportd.${table}`)).rows.map(({ id }) => id).sort();
  expect(await ids('query_results')).toEqual(remaining);
  expect(remaining).not.toContain(replaced);
  expect(await ids('queries')).toEqual([unexpired]);
  expect(expired).not.toBe(unexpired);
  expect((await admitQueryRequest(pool, { team_id: 1, user_id: null }, 5)).remaining).toBe(3);
  expect(await deleteExpiredQueries(pool, settings)).toBe(0);
});
