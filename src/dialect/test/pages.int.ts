import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../../../test/setup/database.ts';
import { randomCases } from '../../../test/setup/effort.ts';
import { project, teamId } from './project.ts';
import { rowsOf } from './rows_of.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const person = (number: number): string => `00000000-0000-0000-0000-00000000000${String(number)}`;
  // Persons with and without properties, deleted, merged, unknown, and of events that carry their own.
  await database.pool.query(`
    insert into persons (team_id, id, properties, is_deleted) values
      (${teamId}, '${person(1)}', '{"email": "one"}', false), (${teamId}, '${person(2)}', '{}', false),
      (${teamId}, '${person(3)}', '{"email": "three"}', true), (${teamId + 1}, '${person(1)}', '{"email": "other"}', false);
    insert into person_distinct_ids (team_id, distinct_id, person_id, is_deleted) values
      (${teamId}, 'd1', '${person(1)}', false), (${teamId}, 'd2', '${person(1)}', false),
      (${teamId}, 'd3', '${person(2)}', true), (${teamId + 1}, 'd4', '${person(1)}', false);
    insert into groups (team_id, group_type_index, group_key, group_properties) values
      (${teamId}, 0, 'g1', '{"name": "G"}'), (${teamId + 1}, 0, 'g2', '{"name": "other"}');
    insert into events (team_id, uuid, event, distinct_id, person_id, person_properties, properties, timestamp)
      select case when n % 7 = 0 then ${teamId + 1} else ${teamId} end, md5(n::text)::uuid, case when n % 3 = 0 then 'a' else 'b' end,
        'd' || n % 6, nullif(('00000000-0000-0000-0000-00000000000' || n % 5)::uuid, '${person(0)}'),
        case when n % 4 = 0 then '{"email": "own"}'::jsonb end,
        jsonb_strip_nulls(jsonb_build_object('$session_id', case when n % 5 > 0 then 's' || n % 8 end, '$group_0', 'g' || n % 3)),
        '2026-11-20Z'::timestamptz + n * interval '1 minute' * case when n % 2 = 0 then 1 else -1 end
      from generate_series(1, 60) as n`);
});
afterAll(() => database.drop());

const joined = [
  'person.properties.email',
  'person_id',
  'person.id',
  'pdi.person.properties.email',
  'session.$session_duration',
  'session.$start_timestamp',
  'group_0.properties.name',
  'poe.properties.email',
];
const keys = [
  'timestamp',
  'event',
  'distinct_id',
  '$session_id',
  '$group_0',
  'properties.none',
  'toHour(timestamp)',
];
const conditions = [
  '1 = 1',
  "event = 'a'",
  "$session_id != ''",
  "timestamp > toDateTime('2026-11-20 00:00:00')",
  'distinct_id IN (SELECT distinct_id FROM person_distinct_ids)',
];

describe('the page of a query', () => {
  it('has the rows of the whole result at its place', async () => {
    const cases = fc.record({
      columns: fc.uniqueArray(fc.constantFrom(...joined), { minLength: 1 }),
      order: fc.array(fc.tuple(fc.constantFrom(...keys), fc.constantFrom('', ' DESC', ' NULLS FIRST'))),
      condition: fc.constantFrom(...conditions),
      limit: fc.integer({ min: 0, max: 12 }),
      offset: fc.integer({ min: 0, max: 60 }),
    });
    await fc.assert(
      fc.asyncProperty(cases, async ({ columns, order, condition, limit, offset }) => {
        const sorted = [...order.map((parts) => parts.join('')), 'uuid'].join(', ');
        const query = `SELECT uuid, ${columns.join(', ')} FROM events WHERE ${condition} ORDER BY ${sorted}`;
        const all = await rowsOf(database.pool, query, project, { rows: null });
        const page = await rowsOf(database.pool, `${query} LIMIT ${limit} OFFSET ${offset}`, project);
        expect(page).toEqual(all.slice(offset, offset + limit));
      }),
      { numRuns: randomCases(60) },
    );
  });

  it('has as many rows as LIMIT without an order', async () => {
    const rows = await rowsOf(database.pool, `SELECT ${joined.join(', ')} FROM events LIMIT 7`, project);
    expect(rows).toHaveLength(7);
  });
});

describe('counts of distinct values beside counts of rows', () => {
  it.each([
    ['SELECT event, count(), uniq(distinct_id) FROM events GROUP BY event ORDER BY event'],
    ['SELECT count(), uniq(person_id) FROM events'],
    ["SELECT uniq(person_id), count() FROM events WHERE event = 'none'"],
    ['SELECT event, uniq(person_id), count() AS n FROM events GROUP BY event HAVING n > 1 ORDER BY event'],
    ['SELECT event, uniq(person_id), count() FROM events GROUP BY event WITH TOTALS ORDER BY event'],
  ])('are those of each alone: %s', async (query) => {
    // With another aggregate they are computed in one step.
    const apart = query.replace(' FROM', ', max(timestamp) FROM');
    const together = await rowsOf(database.pool, query, project);
    const expected = await rowsOf(database.pool, apart, project);
    expect(together.map((row) => row.map(String))).toEqual(
      expected.map((row) => row.slice(0, -1).map(String)),
    );
  });
});
