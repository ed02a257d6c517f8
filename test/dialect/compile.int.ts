import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { goldenQueries } from './golden_queries.ts';
import { berlin, project } from './project.ts';
import { RandomQueries } from './random_queries.ts';
import { rowsOf } from './rows_of.ts';
import { insertSmallData, otherTeamMarker } from './small_data.ts';
import { randomCases } from '../setup/effort.ts';

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

describe('days and weeks use the project time zone', () => {
  it.each([
    ["SELECT toDate(timestamp), toHour(timestamp) FROM events WHERE distinct_id = 'c'", [['2026-11-19', 0]]],
    ["SELECT toStartOfDay(timestamp) FROM events WHERE distinct_id = 'c'", [['2026-11-18T23:00:00.000Z']]],
    ["SELECT toStartOfWeek(timestamp) FROM events WHERE distinct_id = 'c'", [['2026-11-16']]],
    ["SELECT count() FROM events WHERE timestamp < '2026-11-19 00:30:01'", [[1]]],
    ["SELECT count() FROM events WHERE timestamp < '2026-11-19 00:30:00'", [[0]]],
    ["SELECT toString(timestamp) FROM events WHERE distinct_id = 'c'", [['2026-11-19 00:30:00']]],
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
      { numRuns: randomCases(250) },
    );
  });

  it('sees its own rows', async () => {
    expect(await rowsOf(database.pool, 'SELECT DISTINCT event FROM events', other)).toEqual([
      [otherTeamMarker],
    ]);
  });
});
