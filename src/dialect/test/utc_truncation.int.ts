import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../../test/setup/database.ts';
import { project } from './project.ts';
import { rowsOf } from './rows_of.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const times = 20_000;
/** From 1921 to 2073, at all times of day. Abidjan has had UTC clocks since 1912. */
const time = `toDateTime('1921-03-04 05:06:07') + INTERVAL (number * 4000) MINUTE + INTERVAL number SECOND`;

// UTC uses a different computation than other zones.
it.each([
  'toStartOfDay(t, ZONE)',
  'toStartOfHour(t, ZONE)',
  'toStartOfMinute(t, ZONE)',
  'toStartOfSecond(t, ZONE)',
  'toMonday(t, ZONE)',
  'toStartOfWeek(t, 0, ZONE)',
  'toStartOfWeek(t, 1, ZONE)',
  "dateTrunc('week', t, ZONE)",
  "dateTrunc('day', t, ZONE)",
])('%s is the same in UTC and in a zone with the same clocks', async (start) => {
  const [inUtc, inAbidjan] = ["'UTC'", "'Africa/Abidjan'"].map(
    (zone) => `formatDateTime(${start.replace('ZONE', zone)}, '%Y-%m-%d %H:%i:%S')`,
  );
  const rows = await rowsOf(
    database.pool,
    `SELECT count(), countIf(${inUtc} = ${inAbidjan}), uniq(${inUtc}) > 5000
     FROM (SELECT ${time} AS t FROM numbers(${times}))`,
    { ...project, timezone: 'UTC' },
  );
  expect(rows.map((row) => row.map(String))).toEqual([[String(times), String(times), 'true']]);
});
