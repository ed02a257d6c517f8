import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { openDialectReader, readRows } from '../../../src/queries/dialect_reader.ts';
import { funnelActorRows } from '../../../src/queries/funnels_query/actors.ts';
import { planFunnel } from '../../../src/queries/funnels_query/plan.ts';
import { asQuery, sampledIds } from '../trends_query/run_trends_query.ts';
import { funnelsQuery, insertEvents, now, projectOf, runFunnelsQuery } from './run_funnels_query.ts';
import { actualResult, expectedResult } from './expected_results.ts';
import { eventsArb, firstTime, funnelArb, queryOf, withActions } from './random_funnels.ts';
import { randomCases } from '../../setup/effort.ts';

const database = useTestDatabase();

let team = 1_000;

it('random funnels over random events match the reference implementation, also as actions', async () => {
  await fc.assert(
    fc.asyncProperty(
      eventsArb,
      fc.array(funnelArb, { minLength: 5, maxLength: 5 }),
      async (events, funnels) => {
        team += 1;
        await insertEvents(database.pool, team, events);
        for (const one of funnels) {
          const expected = expectedResult(one, events);
          const results = await runFunnelsQuery(database.pool, team, queryOf(one));
          expect(actualResult(one, results)).toEqual(expected);
          const { nodeOf, actions } = withActions();
          const query = queryOf(one, nodeOf);
          const ofActions = await runFunnelsQuery(database.pool, team, query, actions);
          expect(actualResult(one, ofActions)).toEqual(expected);
        }
      },
    ),
    { numRuns: randomCases(8) },
  );
});

it('of equal steps at the same time, the first ones form the attempt', async () => {
  team += 1;
  const event = { event: 'a', size: 's', plan: null, region: null };
  // PostgreSQL keeps the order of equal rows only if they are few.
  const events = Array.from({ length: 40 }, (_, number) => ({
    ...event,
    actor: `00000000-0000-0000-0000-00000000000${number % 4}`,
    at: number < 36 ? firstTime + 1_800_000 : firstTime,
    uuid: `10000000-0000-0000-0000-0000000000${number + 10}`,
  }));
  await insertEvents(database.pool, team, events);
  const series = ['a', 'a'].map((name) => ({ kind: 'EventsNode', event: name }));
  const dateRange = { date_from: '2026-10-24', date_to: '2026-10-25' };
  expect(
    await runFunnelsQuery(database.pool, team, { kind: 'FunnelsQuery', series, dateRange }),
  ).toMatchObject([{ count: 4 }, { count: 4, average_conversion_time: 1_800 }]);
});

it('a sample of a funnel matches its distinct ids, extrapolated', async () => {
  await fc.assert(
    fc.asyncProperty(
      eventsArb,
      fc.array(funnelArb, { minLength: 3, maxLength: 3 }),
      fc.constantFrom(0.2, 0.4, 0.7),
      async (events, funnels, factor) => {
        team += 1;
        await insertEvents(database.pool, team, events);
        const ids = await sampledIds(database.pool, projectOf(team), now, factor);
        for (const arbitrary of funnels) {
          const one = { ...arbitrary, funnel: { ...arbitrary.funnel, factor } };
          const results = await runFunnelsQuery(database.pool, team, {
            ...queryOf(one),
            samplingFactor: factor,
          });
          const sampled = events.filter(({ actor }) => ids.has(actor));
          expect(actualResult(one, results)).toEqual(expectedResult(one, sampled));
        }
      },
    ),
    { numRuns: randomCases(6) },
  );
});

it.each([
  ['ordered', 5],
  ['strict', 7],
])('PostgreSQL sorts the events of an %s funnel once for all steps', async (order, windows) => {
  const series = ['a', 'b', 'c', 'd'].map((event) => ({ kind: 'EventsNode', event }));
  const plan = planFunnel(funnelsQuery({ series, funnelsFilter: { funnelOrderType: order } }));
  const project = projectOf(1);
  const lines = await asQuery(database.pool, project, now, async (context) => {
    const reader = await openDialectReader(context);
    const { sql, parameters } = reader.compile(funnelActorRows(plan, { project, now, earliest: null }));
    const explain = { text: `explain (costs off) ${sql}`, values: parameters };
    return (await readRows(context, explain, 1_000)).rows.map(([line]) => line ?? '');
  });
  expect(lines.filter((line) => line.includes('WindowAgg'))).toHaveLength(windows);
  // The second one sorts the few remaining attempts, of which the best of each person is selected.
  expect(lines.filter((line) => line.includes('Sort Key'))).toHaveLength(2);
});
