import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { openDialectReader } from '../../../src/queries/dialect_reader.ts';
import { funnelActors, type FunnelPoint } from '../../../src/queries/funnels_query/actors.ts';
import type { StepResult } from '../../../src/queries/funnels_query/results.ts';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { asQuery, sampledIds } from '../trends_query/run_trends_query.ts';
import { funnelsQuery, insertEvents, now, projectOf, runFunnelsQuery } from './run_funnels_query.ts';
import { eventsArb, funnelArb, queryOf } from './random_funnels.ts';
import { randomCases } from '../../setup/effort.ts';

const database = useTestDatabase();

async function actorsOf(team: number, query: object, point: FunnelPoint): Promise<readonly unknown[]> {
  const project = projectOf(team);
  const rows = await asQuery(database.pool, project, now, async (context) => {
    const reader = await openDialectReader(context);
    const about = { project, now, earliest: null };
    return (await reader.read(funnelActors(funnelsQuery(query), point, about))).rows;
  });
  return rows.map(([actor]) => actor);
}

const stepsOf = (results: unknown): readonly (readonly StepResult[])[] => {
  const list = results as readonly (StepResult | readonly StepResult[])[];
  return list.length > 0 && Array.isArray(list[0])
    ? (list as readonly (readonly StepResult[])[])
    : [list as readonly StepResult[]];
};

let team = 5_000;

it('the actors of a step are as many as it counts, and the rest dropped off', async () => {
  const ofSteps = funnelArb.filter(
    ({ viz, funnel }) =>
      viz === 'steps' && (funnel.breakdowns.length === 0 || funnel.attribution === 'first_touch'),
  );
  await fc.assert(
    fc.asyncProperty(eventsArb, ofSteps, async (events, random) => {
      team += 1;
      await insertEvents(database.pool, team, events);
      const query = queryOf(random);
      for (const steps of stepsOf(await runFunnelsQuery(database.pool, team, query)))
        for (const [index, step] of steps.entries()) {
          const funnelStepBreakdown = step.breakdown_value ?? null;
          const done = await actorsOf(team, query, { funnelStep: index + 1, funnelStepBreakdown });
          expect(done).toHaveLength(step.count);
          expect(new Set(done).size).toBe(done.length);
          const before = steps[index - 1];
          if (before === undefined || random.funnel.steps.some(({ optional }) => optional)) continue;
          const lost = await actorsOf(team, query, { funnelStep: -index - 1, funnelStepBreakdown });
          expect(lost).toHaveLength(before.count - step.count);
        }
    }),
    { numRuns: randomCases(5) },
  );
});

it('the actors of a sample are those of its distinct ids, and counts are extrapolated', async () => {
  const ofSteps = funnelArb.filter(({ viz, funnel }) => viz === 'steps' && funnel.breakdowns.length === 0);
  const factors = fc.constantFrom(0.2, 0.4, 0.7);
  await fc.assert(
    fc.asyncProperty(eventsArb, ofSteps, factors, async (events, random, samplingFactor) => {
      team += 1;
      await insertEvents(database.pool, team, events);
      const ids = await sampledIds(database.pool, projectOf(team), now, samplingFactor);
      const query = { ...queryOf(random), samplingFactor };
      const [steps = []] = stepsOf(await runFunnelsQuery(database.pool, team, query));
      for (const [index, step] of steps.entries()) {
        const done = await actorsOf(team, query, { funnelStep: index + 1 });
        expect(step.count).toBe(Math.round(done.length / samplingFactor));
        expect(done.filter((actor) => !ids.has(actor))).toEqual([]);
      }
    }),
    { numRuns: randomCases(4) },
  );
});

it('the actors of a point of a trend are those that entered in its interval', async () => {
  const person = '00000000-0000-0000-0000-000000000001';
  const at = Date.UTC(2026, 10, 10, 8, 30);
  const event = { actor: person, size: 's', plan: 'pro', region: null };
  team += 1;
  await insertEvents(database.pool, team, [
    { ...event, uuid: '10000000-0000-0000-0000-000000000001', event: 'a', at },
    { ...event, uuid: '10000000-0000-0000-0000-000000000002', event: 'b', at: at + 1_000 },
    { ...event, uuid: '10000000-0000-0000-0000-000000000003', event: 'a', at: at + 86_400_000 },
  ]);
  for (const interval of ['hour', 'day', 'week', 'month']) {
    const query = {
      series: ['a', 'b'].map((name) => ({ kind: 'EventsNode', event: name })),
      interval,
      dateRange: { date_from: '2026-11-01', date_to: '2026-11-20' },
      funnelsFilter: { funnelVizType: 'trends' },
      breakdownFilter: { breakdown: 'plan', breakdown_limit: 1 },
    };
    const point = { funnelTrendsEntrancePeriodStart: '2026-11-10 09:30:00', funnelStepBreakdown: ['pro'] };
    expect(await actorsOf(team, query, point)).toEqual([person]);
    expect(await actorsOf(team, query, { ...point, funnelTrendsDropOff: true })).toEqual([]);
    expect(await actorsOf(team, query, { ...point, funnelStepBreakdown: 'Other' })).toEqual([]);
  }
});
