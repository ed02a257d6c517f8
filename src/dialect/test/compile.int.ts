import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../../../test/setup/database.ts';
import { goldenQueries } from './golden_queries.ts';
import { berlin, project } from './project.ts';
import { RandomQueries } from './random_queries.ts';
import { rowsOf } from './rows_of.ts';
import { insertSmallData, otherTeamMarker } from './small_data.ts';
import { randomCases } from '../../../test/setup/effort.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await insertSmallData(database.pool);
});
afterAll(() => database.drop());

describe('golden queries return the expected rows', () => {
  it.each(goldenQueries)('%s', async (query, rows) => {
    expect(await rowsOf(database.pool, query, project)).toEqual(rows);
  });
});

describe('more values than a function of PostgreSQL takes arguments', () => {
  const numbers = Array.from({ length: 250 }, (_, index) => index);
  const list = (item: (number: number) => string): string => numbers.map(item).join(', ');
  // Its SQL grows with the square of its items.
  const first = numbers.slice(0, 101);
  const withNull = numbers.map((number) => (number === 7 ? null : String(number)));
  const byKey = Object.fromEntries(numbers.map((number) => [`k${number}`, number]));
  it.each<readonly [name: string, expression: string, value: unknown]>([
    ['an array', `[${list(String)}]`, numbers],
    ['an array of texts and a null', `[${list((n) => (n === 7 ? 'NULL' : `'${n}'`))}]`, withNull],
    ['array()', `array(${list(String)})`, numbers],
    ['a tuple', `(${list(String)})`, numbers],
    ['tuple()', `tuple(${list(String)})`, numbers],
    ['the text of a tuple', `toString((${first.join(', ')}))`, `(${first.join(',')})`],
    ['arrayZip()', `arrayZip(${list((n) => `[${n}]`)})`, [numbers]],
    ['map()', `map(${list((n) => `'k${n}', ${n}`)})`, byKey],
    ['a dictionary', `{${list((n) => `'k${n}': ${n}`)}}`, byKey],
    ['a template', `f'${numbers.map((n) => `{${n}}`).join('')}'`, numbers.join('')],
    ['has()', `has([${list(String)}], 249)`, true],
    ['IN an array', `250 IN [${list(String)}]`, false],
    ['IN a list', `249 IN (${list(String)})`, true],
  ])('are those of %s', async (_, expression, value) => {
    expect(await rowsOf(database.pool, `SELECT ${expression}`, project)).toEqual([[value]]);
  });
});

describe('days and weeks use the project time zone', () => {
  it.each([
    ["SELECT toDate(timestamp), toHour(timestamp) FROM events WHERE distinct_id = 'c'", [['2026-11-19', 0]]],
    ["SELECT toStartOfDay(timestamp) FROM events WHERE distinct_id = 'c'", [['2026-11-18T23:00:00.000Z']]],
    ["SELECT toStartOfWeek(timestamp) FROM events WHERE distinct_id = 'c'", [['2026-11-16']]],
    ["SELECT count() FROM events WHERE timestamp < '2026-11-19 00:30:01'", [[1]]],
    ["SELECT count() FROM events WHERE timestamp < '2026-11-19 00:30:00'", [[0]]],
    ["SELECT toString(timestamp) FROM events WHERE distinct_id = 'c'", [['2026-11-19 00:30:00']]],
    // Days keep the time of day across a clock change, hours elapse, wherever time and interval come from.
    [
      "SELECT toString(t + INTERVAL 1 DAY), toString(t + INTERVAL 24 HOUR), toString(t + if(1 = 1, INTERVAL 3 HOUR, INTERVAL 1 DAY)), toString(t + coalesce(i, INTERVAL 1 HOUR)), toString(t - if(1 = 2, INTERVAL 3 HOUR, INTERVAL 1 MONTH)), toString(t + i * 1.5), toString(t + (d + INTERVAL 3 HOUR)) FROM (SELECT toDateTime('2026-03-28 12:00:00') AS t, toIntervalHour(24) AS i, toIntervalDay(1) AS d)",
      [
        [
          '2026-03-29 12:00:00',
          '2026-03-29 13:00:00',
          '2026-03-28 15:00:00',
          '2026-03-29 13:00:00',
          '2026-02-28 12:00:00',
          '2026-03-30 01:00:00',
          '2026-03-29 15:00:00',
        ],
      ],
    ],
    [
      "SELECT toString(d + INTERVAL 36 HOUR), d + toIntervalDay(length('hours')), toString(d + INTERVAL 2 HOUR), d - INTERVAL 1 MONTH * 2, toString(d + INTERVAL 1 DAY * 0.5), toString(d + if(1 = 1, INTERVAL 90 MINUTE, INTERVAL 1 DAY)) FROM (SELECT toDate('2026-03-29') AS d)",
      [
        [
          '2026-03-30 13:00:00',
          '2026-04-03',
          '2026-03-29 03:00:00',
          '2026-01-29',
          '2026-03-29 13:00:00',
          '2026-03-29 01:30:00',
        ],
      ],
    ],
  ] as const)('%s', async (query, rows) => {
    expect(await rowsOf(database.pool, query, berlin)).toEqual(rows);
  });
});

describe('another project', () => {
  const other = { ...project, teamId: project.teamId + 1 };

  it('is invisible to random queries, and cannot see this one', async () => {
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (draw) => {
        const query = new RandomQueries(draw).query();
        expect(JSON.stringify(await rowsOf(database.pool, query, project))).not.toContain(otherTeamMarker);
        expect(JSON.stringify(await rowsOf(database.pool, query, other))).not.toMatch(
          /@ex\.com|signup|pageview/,
        );
      }),
      { numRuns: randomCases(100) },
    );
  });

  it('sees its own rows', async () => {
    expect(await rowsOf(database.pool, 'SELECT DISTINCT event FROM events', other)).toEqual([
      [otherTeamMarker],
    ]);
  });
});
