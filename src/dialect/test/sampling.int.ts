import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../../../test/setup/database.ts';
import { project, teamId } from './project.ts';
import { rowsOf } from './rows_of.ts';
import { randomCases } from '../../../test/setup/effort.ts';

const idCount = 10_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const people = `generate_series(1, ${idCount}) as n, lateral (select md5(n::text)::uuid as person) as p,
    unnest(array[$1::int, $1 + 1]) as team`;
  const statements = [
    `insert into events (team_id, uuid, event, distinct_id, person_id, timestamp, properties)
     select team, gen_random_uuid(), 'e' || number, 'd' || n, person, '2026-11-20T10:00Z'::timestamptz + make_interval(mins => number, secs => n % 2),
       jsonb_build_object('$session_id', 's' || n / 2) from ${people}, generate_series(1, 2) as number`,
    `insert into persons (team_id, id, properties) select team, person, jsonb_build_object('number', n) from ${people}`,
    `insert into person_distinct_ids (team_id, distinct_id, person_id) select team, 'd' || n, person from ${people}`,
    `insert into session_replay_events (team_id, session_id, distinct_id, min_first_timestamp, max_last_timestamp)
     select team, 's' || n, 'd' || n, now(), now() from ${people}`,
  ];
  for (const statement of statements) await database.pool.query(statement, [teamId]);
});
afterAll(() => database.drop());

const rows = (query: string): Promise<readonly (readonly unknown[])[]> =>
  rowsOf(database.pool, query, project, { rows: null });

const rowTexts = async (query: string): Promise<readonly string[]> =>
  (await rows(query)).map((row) => JSON.stringify(row)).sort();

/** Tables with a unique column. */
const tables = [
  ['events', 'uuid'],
  ['persons', 'id'],
  ['person_distinct_ids', 'distinct_id'],
  ['sessions', 'session_id'],
  ['session_replay_events', 'session_id'],
] as const;

describe('a SAMPLE', () => {
  it.each(tables)('of %s partitions the rows into disjoint shares, repeatably', async (table, id) => {
    const sample = (offset: string) => rows(`SELECT ${id} FROM ${table} SAMPLE 1/4 OFFSET ${offset}`);
    const quarters = await Promise.all(['0', '0.25', '2/4', '3/4'].map(sample));
    const all = await rowTexts(`SELECT ${id} FROM ${table}`);
    expect(
      quarters
        .flat()
        .map((row) => JSON.stringify(row))
        .sort(),
    ).toEqual(all);
    expect(await sample('1/4')).toEqual(quarters[1]);
    expect(await rowTexts(`SELECT ${id} FROM ${table} SAMPLE 1`)).toEqual(all);
    expect(await rowTexts(`SELECT ${id} FROM ${table} SAMPLE 0`)).toEqual(all);
  });

  it.each(tables.map(([table]) => table))('of a tenth of %s returns about a tenth', async (table) => {
    const [[all, tenth] = []] = await rows(
      `SELECT (SELECT count() FROM ${table}), (SELECT count() FROM ${table} SAMPLE 1/10)`,
    );
    expect(Number(tenth)).toBeGreaterThan(Number(all) * 0.08);
    expect(Number(tenth)).toBeLessThan(Number(all) * 0.12);
  });

  it('at any boundaries partitions the rows', async () => {
    const cuts = fc.uniqueArray(fc.integer({ min: 1, max: 999 }), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(cuts, async (inside) => {
        const bounds = [0, ...inside.sort((one, other) => one - other), 1_000];
        const counts = bounds
          .slice(1)
          .map(
            (end, index) =>
              `(SELECT count() FROM events SAMPLE ${end - (bounds[index] ?? 0)}e-3 OFFSET ${bounds[index] ?? 0}/1000)`,
          );
        expect(await rows(`SELECT ${counts.join(' + ')}`)).toEqual([[idCount * 2]]);
      }),
      { numRuns: randomCases(10) },
    );
  });

  it('that exceeds the last id ends there', async () => {
    expect(await rowTexts('SELECT uuid FROM events SAMPLE 1/2 OFFSET 3/4')).toEqual(
      await rowTexts('SELECT uuid FROM events SAMPLE 1/4 OFFSET 3/4'),
    );
  });

  it('by distinct id has the same ids in all tables, with all their rows', async () => {
    const ids = (table: string) =>
      rowTexts(`SELECT DISTINCT distinct_id FROM ${table} SAMPLE 0.3 OFFSET 0.1`);
    const ofEvents = await ids('events');
    expect(ofEvents.length).toBeGreaterThan(0);
    expect(await ids('person_distinct_ids')).toEqual(ofEvents);
    expect(await ids('session_replay_events')).toEqual(ofEvents);
    expect(
      await rows('SELECT count() FROM events SAMPLE 0.3 OFFSET 0.1 GROUP BY distinct_id HAVING count() != 2'),
    ).toEqual([]);
  });

  it('of sessions returns complete sessions', async () => {
    const columns = 'session_id, $session_duration, distinct_id, $start_timestamp';
    const all = new Set(await rowTexts(`SELECT ${columns} FROM sessions`));
    const sampled = await rowTexts(`SELECT ${columns} FROM sessions SAMPLE 1/3 OFFSET 1/3`);
    expect(sampled.length).toBeGreaterThan(0);
    expect(sampled.filter((session) => !all.has(session))).toEqual([]);
  });

  it('is applied to each table before joins', async () => {
    const sampledIds = new Set(await rowTexts('SELECT id FROM persons SAMPLE 1/5'));
    const joined = await rows(
      `SELECT e.person_id, p.id, e.person.properties.number, p.properties.number
       FROM events AS e SAMPLE 1/100 LEFT JOIN persons AS p SAMPLE 1/5 ON p.id = e.person_id`,
    );
    expect(joined).toHaveLength((await rows('SELECT 1 FROM events SAMPLE 1/100')).length);
    for (const [person, found, number, ofFound] of joined) {
      const isSampled = sampledIds.has(JSON.stringify([person]));
      expect([found, ofFound]).toEqual(isSampled ? [person, number] : [null, null]);
    }
    const [[matches] = []] = await rows(
      `SELECT count() FROM events AS e SAMPLE 1/100 SEMI JOIN persons AS p SAMPLE 1/5 ON p.id = e.person_id`,
    );
    expect(Number(matches)).toBe(joined.filter(([, found]) => found !== null).length);
  });
});
