import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { previousRange, resolveRange } from '../../../src/queries/dates.ts';
import type { Interval } from '../../../src/queries/buckets.ts';
import type { QueryProject } from '../../../src/queries/query_kind.ts';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { actorsOf, sampledIds, runTrendsQuery, type Result } from './run_trends_query.ts';
import type { ReferenceEvent } from './reference_math.ts';
import { type ReferenceSample, ReferenceTrends } from './reference_trends.ts';
import {
  actionsOfCases,
  cohortsOfCases,
  eventsOf,
  groupsOfCases,
  now,
  personsOfCases,
  trendsCase,
  withMath,
  type TrendsCase,
} from './random_cases.ts';
import { randomCases } from '../../setup/effort.ts';
import { queryProject } from '../query_project.ts';

const database = useTestDatabase();

const projects = [
  { timezone: 'UTC', week_start_day: 'monday' },
  { timezone: 'Europe/Berlin', week_start_day: 'sunday' },
] as const;
let teams = 0;

/** Each set of events is a separate project. */
async function projectWith(
  events: readonly ReferenceEvent[],
  settings: (typeof projects)[number],
): Promise<QueryProject> {
  teams += 1;
  await database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, timestamp)
     select $1, gen_random_uuid(), event, distinct_id, person_id, properties, timestamp
     from jsonb_to_recordset($2) as x(event text, distinct_id text, person_id uuid, properties jsonb, timestamp timestamptz)`,
    [teams, JSON.stringify(events.map(({ time, ...event }) => ({ ...event, timestamp: time.toISO() })))],
  );
  await database.pool.query(
    `insert into public.persons (team_id, id, properties)
     select $1, id, properties from jsonb_to_recordset($2) as x(id uuid, properties jsonb)`,
    [teams, JSON.stringify(personsOfCases)],
  );
  await insertGroups(teams);
  for (const { id, name, persons } of cohortsOfCases)
    await database.pool.query(
      `insert into public.cohort_people (team_id, cohort_id, cohort_name, person_id)
       select $1, $2, $3, unnest($4::uuid[])`,
      [teams, id, name, persons],
    );
  return queryProject({ team_id: teams, ...settings, actions: actionsOfCases });
}

/** Groups of the requested type, and others with the same keys. */
async function insertGroups(teamId: number): Promise<void> {
  const others = groupsOfCases.map(({ key }) => ({ key, properties: { tier: 'another' } }));
  for (const [index, groups] of [groupsOfCases, others].entries())
    await database.pool.query(
      `insert into public.groups (team_id, group_type_index, group_key, group_properties)
       select $1, $2, key, properties from jsonb_to_recordset($3) as x(key text, properties jsonb)`,
      [teamId, index, JSON.stringify(groups)],
    );
}

/** The expected result: comparison, breakdown and points of each line. */
function expected(
  { request, reference }: TrendsCase,
  events: readonly ReferenceEvent[],
  project: QueryProject,
): unknown[] {
  const times = events.map(({ time }) => time.toMillis());
  const earliest = times.length === 0 ? null : new Date(Math.min(...times));
  const about = { project, now, earliest };
  const { dateRange, compareFilter, interval } = request;
  const range = resolveRange(dateRange, interval as Interval, about);
  const compareTo = compareFilter?.compare_to ?? null;
  const ranges =
    compareFilter === null ? [range] : [range, previousRange(dateRange, compareTo, range, about)];
  return ranges.flatMap((one, index) =>
    new ReferenceTrends(events, reference, one).lines().flatMap((lines, order) =>
      lines.map(({ values, data }) => ({
        ...(compareFilter !== null && { compared: index === 0 ? 'current' : 'previous' }),
        order,
        values,
        data,
      })),
    ),
  );
}

async function actualResult({ query, reference }: TrendsCase, project: QueryProject): Promise<unknown[]> {
  const { results } = await runTrendsQuery(database.pool, query, project, now);
  return results.map(({ compare_label, order, breakdown_value, data, aggregated_value = 0 }) => ({
    ...(compare_label && { compared: compare_label }),
    order,
    values: breakdown_value === undefined ? [] : [breakdown_value].flat().map(String),
    data: reference.display === 'totalValue' ? [aggregated_value] : data,
  }));
}

/** As in JSON, which has a single zero. */
const asJson = (lines: readonly unknown[]): unknown => JSON.parse(JSON.stringify(lines));

/** The same, rounded to nine digits. */
const rounded = (lines: readonly unknown[]): unknown =>
  JSON.parse(
    JSON.stringify(lines, (_, value: unknown) =>
      typeof value === 'number' ? Number(value.toPrecision(9)) : value,
    ),
  );

describe('random queries of random events match the reference implementation', () => {
  it.each(projects)('in $timezone', async (settings) => {
    await fc.assert(
      fc.asyncProperty(
        eventsOf(settings.timezone),
        fc.array(trendsCase(true), { minLength: 4, maxLength: 4 }),
        trendsCase(false),
        async (events, cases, inexact) => {
          const project = await projectWith(events, settings);
          for (const one of cases)
            expect(asJson(await actualResult(one, project))).toEqual(asJson(expected(one, events, project)));
          expect(rounded(await actualResult(inexact, project))).toEqual(
            rounded(expected(inexact, events, project)),
          );
        },
      ),
      { numRuns: randomCases(4), endOnFailure: true },
    );
  });
});

/** Enough distinct ids that a sample contains some of them. */
const ofManyIds = (events: readonly ReferenceEvent[]): readonly ReferenceEvent[] =>
  events.map((event, index) => ({ ...event, distinct_id: `d${index % 12}` }));

const ofSample = ({ request, query, reference }: TrendsCase, sample: ReferenceSample): TrendsCase => ({
  request,
  query: { ...query, samplingFactor: sample.factor },
  reference: { ...reference, sample },
});

describe('random queries of a sample', () => {
  const factors = fc.constantFrom(0.5, 0.4, 0.7);

  it('match the reference implementation over its distinct ids, extrapolated', async () => {
    const cases = fc.array(trendsCase(true), { minLength: 4, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(
        eventsOf('UTC'),
        cases,
        trendsCase(false),
        factors,
        async (arbitrary, exact, one, factor) => {
          const events = ofManyIds(arbitrary);
          const project = await projectWith(events, projects[0]);
          const sample = { distinctIds: await sampledIds(database.pool, project, now, factor), factor };
          for (const sampled of exact.map((each) => ofSample(each, sample)))
            expect(asJson(await actualResult(sampled, project))).toEqual(
              asJson(expected(sampled, events, project)),
            );
          const inexact = ofSample(one, sample);
          expect(rounded(await actualResult(inexact, project))).toEqual(
            rounded(expected(inexact, events, project)),
          );
        },
      ),
      { numRuns: randomCases(4), endOnFailure: true },
    );
  });

  it('have points whose actors are those of the sample', async () => {
    await fc.assert(
      fc.asyncProperty(
        eventsOf('UTC'),
        trendsCase(true),
        factors,
        fc.nat(),
        async (arbitrary, one, factor, seed) => {
          const events = ofManyIds(arbitrary).filter(({ person_id }) => person_id !== null);
          const project = await projectWith(events, projects[0]);
          const sample = { distinctIds: await sampledIds(database.pool, project, now, factor), factor };
          const persons = new Set(
            events
              .filter(({ distinct_id }) => sample.distinctIds.has(distinct_id))
              .map(({ person_id }) => person_id),
          );
          const { query, reference } = withMath(ofSample(one, sample), 'dau');
          const { results } = await runTrendsQuery(database.pool, query, project, now);
          for (const line of results.slice(0, 2)) {
            const point = seed % Math.max(line.days.length, 1);
            const day = line.days[point] ?? null;
            const actors = await actorsBehind(query, line, day, project);
            expect(actors.filter(({ id }) => !persons.has(String(id)))).toEqual([]);
            const shown = day === null ? line.aggregated_value : line.data[point];
            const roundings = reference.display === 'cumulative' ? point + 1 : 1;
            expect(Math.abs(Number(shown) - actors.length / factor)).toBeLessThanOrEqual(roundings / 2);
          }
        },
      ),
      { numRuns: randomCases(4), endOnFailure: true },
    );
  });
});

/** The actors of a point of a line. */
const actorsBehind = (query: object, line: Result, day: string | null, project: QueryProject) =>
  actorsOf(
    database.pool,
    query,
    {
      day,
      series: line.order,
      breakdown: line.breakdown_value ?? null,
      compare: line.compare_label ?? null,
    },
    project,
    now,
  );

describe('the actors of a point', () => {
  it.each(projects)(
    'are as many as it counts, and their events add up to it, in $timezone',
    async (settings) => {
      await fc.assert(
        fc.asyncProperty(
          eventsOf(settings.timezone),
          trendsCase(true),
          fc.nat(),
          async (events, one, seed) => {
            const ofSomebody = events.filter(({ person_id }) => person_id !== null);
            const project = await projectWith(ofSomebody, settings);
            for (const math of ['dau', 'weekly_active', 'first_time_for_user', 'total']) {
              const { query, reference } = withMath(one, math);
              const isRunning = math !== 'dau' && math !== 'total' && reference.display === 'cumulative';
              if (isRunning) continue;
              const { results } = await runTrendsQuery(database.pool, query, project, now);
              const line = results[seed % Math.max(results.length, 1)];
              if (line === undefined) continue;
              const point = seed % Math.max(line.days.length, 1);
              const day = line.days[point] ?? null;
              const actors = await actorsBehind(query, line, day, project);
              const counted =
                math === 'total' ? actors.reduce((sum, actor) => sum + actor.events, 0) : actors.length;
              expect(counted).toBe(day === null ? line.aggregated_value : line.data[point]);
              expect(new Set(actors.map(({ id }) => id)).size).toBe(actors.length);
            }
          },
        ),
        { numRuns: randomCases(2), endOnFailure: true },
      );
    },
  );
});
