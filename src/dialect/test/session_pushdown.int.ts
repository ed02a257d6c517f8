import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { compileQuery } from '../compile/compile_query.ts';
import { createTestDatabase, type TestDatabase } from '../../../test/setup/database.ts';
import { project, teamId } from './project.ts';
import { rowsOf } from './rows_of.ts';
import { randomCases } from '../../../test/setup/effort.ts';

interface Visit {
  readonly session: string | null;
  readonly minute: number;
  readonly event: string;
}

const timeOf = (minute: number): string => new Date(Date.UTC(2026, 10, 20) + minute * 60_000).toISOString();
const visit: fc.Arbitrary<Visit> = fc.record({
  session: fc.option(fc.constantFrom('', 'a', 'b', 'c', 'd', 'e', 'f')),
  minute: fc.integer({ min: 0, max: 100 }),
  event: fc.constantFrom('$pageview', 'other'),
});

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

async function insert(visits: readonly Visit[]): Promise<void> {
  await database.pool.query('delete from events');
  await database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, timestamp, properties)
     select team, gen_random_uuid(), v->>'event', 'd', (v->>'time')::timestamptz,
       jsonb_strip_nulls(jsonb_build_object('$session_id', v->>'session'))
     from jsonb_array_elements($1) as v, unnest(array[$2::int, $2 + 1]) as team`,
    [JSON.stringify(visits.map((one) => ({ ...one, time: timeOf(one.minute) }))), teamId],
  );
}

/** Reference implementation: aggregates a session in a loop over all events. */
function sessionOf(visits: readonly Visit[], id: string | null) {
  const own = visits.filter(({ session }) => session === id);
  if (id === null || id === '') return null;
  const minutes = own.map(({ minute }) => minute);
  const [start, end] = [Math.min(...minutes), Math.max(...minutes)];
  return { start, end, pageviews: own.filter(({ event }) => event === '$pageview').length };
}

const sorted = (rows: readonly (readonly unknown[])[]): readonly string[] =>
  rows.map((row) => JSON.stringify(row)).sort();

const fields = '$session_duration, session.$pageview_count';
const inRange = (from: number, to: number) =>
  `timestamp >= toDateTime('${timeOf(from)}') AND timestamp < toDateTime('${timeOf(to)}')`;

describe('sessions of a query with a time range', () => {
  it('are aggregated from all events of the project, whatever the range', async () => {
    const cases = fc.tuple(fc.array(visit, { maxLength: 25 }), visit, visit, fc.boolean());
    await fc.assert(
      fc.asyncProperty(cases, async ([visits, { minute: from }, { minute: to }, onlyPageviews]) => {
        await insert(visits);
        const more = onlyPageviews ? "AND event = '$pageview'" : '';
        const found = await rowsOf(
          database.pool,
          `SELECT $session_id, session.${fields} FROM events WHERE ${inRange(from, to)} ${more}`,
          project,
        );
        const expected = visits
          .filter(
            ({ minute, event }) => minute >= from && minute < to && (!onlyPageviews || event === '$pageview'),
          )
          .map(({ session }) => {
            const known = sessionOf(visits, session);
            return [session ?? '', known ? (known.end - known.start) * 60 : null, known?.pageviews ?? null];
          });
        expect(sorted(found)).toEqual(sorted(expected));
      }),
      { numRuns: randomCases(16) },
    );
  });

  it('are restricted by their own start and end as well', async () => {
    const cases = fc.tuple(fc.array(visit, { maxLength: 25 }), visit, visit);
    await fc.assert(
      fc.asyncProperty(cases, async ([visits, { minute: from }, { minute: to }]) => {
        await insert(visits);
        const found = await rowsOf(
          database.pool,
          `SELECT session_id, $session_duration FROM sessions
           WHERE $start_timestamp >= toDateTime('${timeOf(from)}') AND $end_timestamp <= toDateTime('${timeOf(to)}')`,
          project,
        );
        const expected = [...new Set(visits.map(({ session }) => session))].flatMap((id) => {
          const known = sessionOf(visits, id);
          return known && known.start >= from && known.end <= to
            ? [[id, (known.end - known.start) * 60]]
            : [];
        });
        expect(sorted(found)).toEqual(sorted(expected));
      }),
      { numRuns: randomCases(16) },
    );
  });

  // Without a limit, which would choose events first.
  const isPushedDown = (query: string): boolean =>
    compileQuery(query, project, { rows: null }).sql.includes('.session_id from');

  it.each([
    'SELECT session.$session_duration FROM events WHERE timestamp > now() - INTERVAL 7 DAY',
    "SELECT count() FROM events AS e PREWHERE toDate(e.timestamp) = today() WHERE event = 'a' AND session.$is_bounce",
    'SELECT toStartOfDay(timestamp) AS day, avg(session.$session_duration) FROM events WHERE day > today() - 3 GROUP BY day',
    'SELECT session_id FROM sessions WHERE $start_timestamp > now() - INTERVAL 7 DAY',
  ])('are restricted in %s', (query) => {
    expect(isPushedDown(query)).toBe(true);
  });

  it.each([
    "SELECT session.$session_duration FROM events WHERE timestamp > now() OR properties.plan = 'a'",
    "SELECT session.$session_duration FROM events WHERE event = 'a'",
    'SELECT session.$session_duration FROM events',
    'SELECT session.$session_duration FROM events WHERE timestamp > (SELECT max(created_at) FROM persons)',
    'SELECT e.event FROM events AS e LEFT JOIN sessions AS s ON s.session_id = e.$session_id WHERE s.$start_timestamp IS NULL',
    // An item of an array belongs to a row of FROM, which the sessions do not have.
    'SELECT session.$session_duration FROM events WHERE timestamp > fromUnixTimestamp(arrayJoin([1, 2]))',
    'SELECT timestamp FROM events WHERE timestamp > now()',
  ])('are all read in %s', (query) => {
    expect(isPushedDown(query)).toBe(false);
  });
});
