import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Settings } from 'luxon';
import { parseTime } from '../compile/times/local_times.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/setup/database.ts';
import { project } from './project.ts';
import { rowsOf } from './rows_of.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** Days with a clock change: expressions, in which t is a UTC time, and the times or values that ClickHouse returns. */
const cases: Readonly<Record<string, readonly (readonly [string, string, string])[]>> = {
  // 02:00–03:00 occurs at 00:00 and at 01:00 UTC on 2026-10-25, and never on 2026-03-29.
  'Europe/Berlin': [
    ['subtractMonths(t, 0)', '2026-10-25 00:30', '2026-10-25 00:30'],
    ['addDays(t, 0)', '2026-10-25 01:30', '2026-10-25 01:30'],
    ['t + INTERVAL 1 DAY - INTERVAL 1 DAY', '2026-10-25 01:30', '2026-10-25 01:30'],
    ['t + make_interval(0, 0, 0, 1)', '2026-10-25 00:30', '2026-10-25 01:30'],
    ['addDays(t, 1)', '2026-10-24 00:30', '2026-10-25 00:30'],
    ['subtractDays(t, 1)', '2026-10-26 01:30', '2026-10-25 01:30'],
    ['addMonths(t, 1)', '2026-09-25 00:30', '2026-10-25 00:30'],
    ['addYears(t, 1)', '2025-10-25 00:30', '2026-10-25 00:30'],
    ['subtractWeeks(t, 1)', '2026-11-01 01:30', '2026-10-25 01:30'],
    ['addDays(t, 1)', '2026-03-28 01:30', '2026-03-29 01:30'],
    ['subtractDays(t, 1)', '2026-03-30 00:30', '2026-03-29 01:30'],
    ['toStartOfHour(t)', '2026-10-25 00:30', '2026-10-25 00:00'],
    ['toStartOfHour(t)', '2026-10-25 01:30', '2026-10-25 01:00'],
    ["dateTrunc('hour', t)", '2026-10-25 00:30', '2026-10-25 00:00'],
    ['toStartOfFifteenMinutes(t)', '2026-10-25 00:50', '2026-10-25 00:45'],
    ['toStartOfFifteenMinutes(t)', '2026-10-25 01:50', '2026-10-25 01:45'],
    ['timeSlot(t)', '2026-10-25 00:50', '2026-10-25 00:30'],
    ['toStartOfInterval(t, INTERVAL 15 MINUTE)', '2026-10-25 00:50', '2026-10-25 00:45'],
    ['toStartOfInterval(t, INTERVAL 1 HOUR)', '2026-10-25 00:30', '2026-10-25 00:00'],
    ['toStartOfInterval(t, INTERVAL 1 HOUR)', '2026-10-25 01:30', '2026-10-25 01:00'],
    ['toStartOfInterval(t, INTERVAL 2 HOUR)', '2026-10-25 00:30', '2026-10-25 00:00'],
    ['toStartOfInterval(t, INTERVAL 2 HOUR)', '2026-10-25 01:30', '2026-10-25 00:00'],
    ['toStartOfInterval(t, INTERVAL 1 DAY)', '2026-10-25 01:30', '2026-10-24 22:00'],
    ["toDateTime('2026-10-25 02:30:00')", '', '2026-10-25 00:30'],
    ["toDateTime('2026-03-29 02:30:00')", '', '2026-03-29 01:30'],
    ["toDateTime(concat('2026-10-25 ', '02:30:00'))", '', '2026-10-25 00:30'],
    ["parseDateTimeBestEffort('2026-10-25 02:30')", '', '2026-10-25 00:30'],
    ["parseDateTime('25/10/2026 02:30', '%d/%m/%Y %H:%i')", '', '2026-10-25 00:30'],
    ['make_timestamp(2026, 10, 25, 2, 30, 0)', '', '2026-10-25 00:30'],
    ["formatDateTime(t, '%H:%i %z')", '2026-10-25 00:30', '02:30 +0200'],
    ["formatDateTime(t, '%H:%i %z')", '2026-10-25 01:30', '02:30 +0100'],
    ["toInt(date_part('epoch', t)) - toUnixTimestamp(t)", '2026-10-25 00:30', '0'],
    ["dateDiff('hour', t, t + INTERVAL 1 HOUR)", '2026-10-25 00:30', '1'],
    ["age('hour', t, t + INTERVAL 1 HOUR)", '2026-10-25 00:30', '1'],
    ["age('day', t, t + INTERVAL 1 DAY)", '2026-10-25 00:30', '1'],
    ["dateDiff('day', t, t + INTERVAL 24 HOUR)", '2026-10-24 22:30', '0'],
  ],
  // Midnight occurs twice, at 00:00 and at 01:00 UTC.
  'Atlantic/Azores': [
    ['toStartOfDay(t)', '2026-10-25 00:30', '2026-10-25 00:00'],
    ['toStartOfDay(t)', '2026-10-25 01:30', '2026-10-25 00:00'],
    ['toStartOfDay(t)', '2026-10-25 12:00', '2026-10-25 00:00'],
    ['toStartOfHour(t)', '2026-10-25 00:30', '2026-10-25 00:00'],
    ['toStartOfHour(t)', '2026-10-25 01:30', '2026-10-25 01:00'],
    ['toStartOfInterval(t, INTERVAL 3 HOUR)', '2026-10-25 01:30', '2026-10-25 00:00'],
    ['toStartOfInterval(t, INTERVAL 7 DAY)', '2026-11-01 12:00', '2026-10-29 01:00'],
    ["dateTrunc('day', t)", '2026-10-25 01:30', '2026-10-25 00:00'],
    ["toDateTime(toDate('2026-10-25'))", '', '2026-10-25 00:00'],
    ["toDateTime('2026-10-25')", '', '2026-10-25 00:00'],
    ["toDate('2026-10-25') + INTERVAL 1 HOUR", '', '2026-10-25 01:00'],
    ["if(t >= toDate('2026-10-25'), 'after', 'before')", '2026-10-25 00:30', 'after'],
    ['addDays(t, 1)', '2026-10-25 00:30', '2026-10-26 01:30'],
  ],
  // Midnight is skipped.
  'America/Sao_Paulo': [
    ['toStartOfDay(t)', '2018-11-04 12:00', '2018-11-04 03:00'],
    ['toStartOfDay(t)', '2018-11-04 03:30', '2018-11-04 03:00'],
    ['toStartOfDay(t)', '2018-02-18 02:30', '2018-02-17 02:00'],
    ['toStartOfDay(t)', '2018-02-18 03:30', '2018-02-18 03:00'],
    ["toDateTime(toDate('2018-11-04'))", '', '2018-11-04 03:00'],
    ['addDays(t, 1)', '2018-11-03 03:30', '2018-11-04 03:30'],
  ],
  'Africa/Cairo': [
    ['toStartOfDay(t)', '2026-04-24 01:00', '2026-04-23 22:00'],
    ['toStartOfDay(t)', '2026-10-29 21:30', '2026-10-28 21:00'],
    ['toStartOfHour(t)', '2026-10-29 21:30', '2026-10-29 21:00'],
    ['addDays(t, 0)', '2026-10-29 20:30', '2026-10-29 20:30'],
  ],
  'Asia/Beirut': [
    ['toStartOfDay(t)', '2026-03-28 22:30', '2026-03-28 22:00'],
    ['toStartOfDay(t)', '2026-10-24 21:30', '2026-10-23 21:00'],
    ['addMonths(t, 0)', '2026-10-24 20:30', '2026-10-24 20:30'],
  ],
  // Two hours occur twice.
  'Antarctica/Troll': [
    ['toStartOfHour(t)', '2026-10-25 00:30', '2026-10-25 00:00'],
    ['toStartOfHour(t)', '2026-10-25 02:30', '2026-10-25 02:00'],
    ['addMonths(t, 0)', '2026-10-24 23:30', '2026-10-24 23:30'],
    ["toDateTime('2026-10-25 01:30:00')", '', '2026-10-24 23:30'],
  ],
  // Half an hour occurs twice.
  'Australia/Lord_Howe': [
    ['toStartOfHour(t)', '2026-04-04 14:45', '2026-04-04 14:00'],
    ['toStartOfFifteenMinutes(t)', '2026-04-04 15:20', '2026-04-04 15:15'],
    ['toStartOfDay(t)', '2026-04-04 15:15', '2026-04-04 13:00'],
    ['addMonths(t, 0)', '2026-04-04 15:15', '2026-04-04 15:15'],
    ["dateDiff('hour', t, toDateTime('2026-04-05T04:45:00Z'))", '2026-03-28 23:00', '173'],
    ["toDateTime('2026-04-05 01:45:00')", '', '2026-04-04 14:45'],
    ['addDays(t, 1)', '2026-10-02 15:45', '2026-10-03 15:45'],
  ],
};

/** The results of the expressions of a zone: times in UTC to the minute, other values as text. */
async function resultsIn(zone: string): Promise<readonly string[]> {
  const values = (cases[zone] ?? []).map(([expression, time]) =>
    expression.replaceAll(/\bt\b/g, `toDateTime('${time.replace(' ', 'T')}:00Z')`),
  );
  const [row = []] = await rowsOf(database.pool, `SELECT ${values.join(', ')}`, {
    ...project,
    timezone: zone,
  });
  return row.map((value) => String(value).replace(/^(.{10})T(.{5}):00.*Z$/, '$1 $2'));
}

describe('days with a clock change', () => {
  it.each(Object.keys(cases))('%s', async (zone) => {
    const found = (await resultsIn(zone)).map((value, index) =>
      [...(cases[zone]?.[index] ?? [])].with(2, value),
    );
    expect(found).toEqual(cases[zone]);
  });
});

it('reads a repeated local time alike in summer and in winter', () => {
  const readAt = (now: string): string | null => {
    Settings.now = () => Date.parse(now);
    return parseTime('2026-10-25 02:30:00', 'Europe/Berlin');
  };
  try {
    expect([readAt('2026-07-01'), readAt('2026-12-01')]).toEqual([
      '2026-10-25T00:30:00Z',
      '2026-10-25T00:30:00Z',
    ]);
  } finally {
    Settings.now = () => Date.now();
  }
});
