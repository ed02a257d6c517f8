import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { runTrendsQuery, type Result } from '../trends_query/run_trends_query.ts';
import { eventsOf, groupsOfCases, personsOfCases } from '../trends_query/random_cases.ts';
import { runActorsQuery, now, projectOf } from './run_actors_query.ts';
import { randomCases } from '../../setup/effort.ts';

const database = useTestDatabase();
let teams = 0;

const queries = fc.record({
  math: fc.constantFrom('total', 'dau', 'weekly_active', 'unique_group'),
  event: fc.constantFrom('a', null),
  range: fc.constantFrom(
    { interval: 'day', dateRange: { date_from: '2026-10-20', date_to: '2026-11-04' } },
    { interval: 'week', dateRange: { date_from: '2026-09-20', date_to: '2026-11-04' } },
    { interval: 'month', dateRange: { date_from: '2026-09-20', date_to: '2026-11-04' } },
  ),
  display: fc.constantFrom('ActionsLineGraph', 'BoldNumber'),
  breakdown: fc.constantFrom(null, { breakdowns: [{ property: 'plan' }], breakdown_limit: 2 }),
  compareFilter: fc.constantFrom(null, { compare: true }),
});

/** A few points of a line, those that are not 0 first. */
const pointsOf = ({ days, data, aggregated_value }: Result): readonly (readonly [string | null, number])[] =>
  aggregated_value === undefined
    ? days
        .map((day, index) => [day, data[index] ?? 0] as const)
        .sort(([, one], [, other]) => other - one)
        .slice(0, 3)
    : [[null, aggregated_value]];

describe('The actors of points of random trends', () => {
  it('are as many as the point counts, or have as many events', async () => {
    let checked = 0;
    await fc.assert(
      fc.asyncProperty(
        eventsOf('UTC'),
        queries,
        async (arbitrary, { math, event, range, display, ...more }) => {
          teams += 1;
          const events = arbitrary.filter(({ person_id }) => person_id !== null);
          await database.pool.query(
            `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, timestamp)
           select $1, gen_random_uuid(), event, distinct_id, person_id, properties, timestamp from jsonb_to_recordset($2)
             as x(event text, distinct_id text, person_id uuid, properties jsonb, timestamp timestamptz)`,
            [teams, JSON.stringify(events.map(({ time, ...one }) => ({ ...one, timestamp: time.toISO() })))],
          );
          const persons = personsOfCases.slice(1).map(({ id }) => id);
          await database.pool.query(
            'insert into public.persons (team_id, id) select $1, unnest($2::uuid[])',
            [teams, persons],
          );
          const groups = groupsOfCases.map(({ key }) => key);
          await database.pool.query(
            `insert into public.groups (team_id, group_type_index, group_key)
           select $1, kind, unnest($2::text[]) from generate_series(0, 1) as kind`,
            [teams, groups],
          );
          const known = math === 'unique_group' ? groups : persons;
          const source = {
            kind: 'TrendsQuery',
            ...range,
            series: [{ kind: 'EventsNode', event, math, math_group_type_index: 0 }],
            breakdownFilter: more.breakdown,
            compareFilter: more.compareFilter,
            trendsFilter: { display },
          };
          const { results } = await runTrendsQuery(database.pool, source, projectOf(teams), now);
          for (const line of results)
            for (const [day, number] of pointsOf(line)) {
              const response = await runActorsQuery(database.pool, teams, {
                select: ['actor', 'id', 'event_count'],
                orderBy: ['event_count DESC'],
                source: {
                  kind: 'InsightActorsQuery',
                  source,
                  day,
                  breakdown: line.breakdown_value ?? null,
                  compare: line.compare_label ?? null,
                },
              });
              const rows = response.results as unknown as readonly (readonly [object, string, number])[];
              const counts = rows.map(([, , count]) => count);
              const sum = counts.reduce((total, count) => total + count, 0);
              expect(math === 'total' ? sum : rows.length).toBe(number);
              expect(counts).toEqual([...counts].sort((one, other) => other - one));
              const missing = rows.filter(([, id]) => !known.includes(id));
              expect(response.more).toEqual({ missing_actors_count: missing.length });
              for (const [actor, id] of missing) expect(actor).toEqual({ id });
              checked += 1;
            }
        },
      ),
      { numRuns: randomCases(12) },
    );
    expect(checked).toBeGreaterThan(0);
  });
});

describe('The actors of an hour that the clock repeats', () => {
  it('are those of its first occurrence, in summer and in winter', async () => {
    teams += 1;
    const team = teams;
    await database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, person_id, timestamp)
       select $1, gen_random_uuid(), 'a', 'd', id, time from (values
         ('00000000-0000-0000-0000-000000000001'::uuid, '2026-10-25 00:30Z'::timestamptz),
         ('00000000-0000-0000-0000-000000000002', '2026-10-25 01:30Z')) as given (id, time)`,
      [team],
    );
    const source = {
      kind: 'TrendsQuery',
      interval: 'hour',
      dateRange: { date_from: '2026-10-25', date_to: '2026-10-25 23:59' },
      series: [{ kind: 'EventsNode', event: 'a', math: 'dau' }],
    };
    const project = { ...projectOf(team), timezone: 'Europe/Berlin' };
    const { results } = await runTrendsQuery(database.pool, source, project, now);
    expect(results[0]?.days).toHaveLength(25);
    expect(results[0]?.data.filter((count) => count > 0)).toEqual([1, 1]);
    const actors = await runActorsQuery(
      database.pool,
      team,
      { select: ['id'], source: { kind: 'InsightActorsQuery', source, day: '2026-10-25 02:00:00' } },
      project,
    );
    expect(actors.results).toEqual([['00000000-0000-0000-0000-000000000001']]);
  });
});
