import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { formatPostgresqlTime } from '../../src/encoding/encode_block.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { int64 } from './copy_block.ts';

const database = useTestDatabase();

const earliest = -211_813_488_000_000_000n; // 4714-11-24 BC
const latest = 9_223_371_331_199_999_999n; // 294276-12-31 23:59:59.999999
const dayBounds = fc
  .bigInt({ min: earliest / 86_400_000_000n, max: latest / 86_400_000_000n })
  .map((day) => day * 86_400_000_000n);

it('formats any time like PostgreSQL', async () => {
  const times = fc.sample(fc.oneof(fc.bigInt({ min: earliest, max: latest }), dayBounds), 2_000);
  const given = [earliest, latest, 0n, -1n, ...times.filter((time) => time >= earliest)];
  const { rows } = await database.pool.query<{ text: string }>(
    `select (timestamp '2000-01-01' + (given || ' microseconds')::interval)::text || '+00' as text
     from unnest($1::bigint[]) with ordinality as times (given, position) order by position`,
    [given.map(String)],
  );
  const printed = rows.map(({ text }) => text.replace(' BC+00', '+00 BC'));
  expect(given.map((time) => formatPostgresqlTime(int64(time), 0))).toEqual(printed);
});
