import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { runFunnelsQuery, insertEvents, projectOf } from '../funnels_query/run_funnels_query.ts';
import { eventsArb, funnelArb, queryOf } from '../funnels_query/random_funnels.ts';
import { runActorsQuery } from './run_actors_query.ts';
import { randomCases } from '../../setup/effort.ts';

const database = useTestDatabase();
let teams = 0;

interface Step {
  readonly count: number;
  readonly breakdown_value?: readonly string[];
}

describe('The actors of steps of random funnels', () => {
  it('are as many as the step counts, and those who dropped off are the rest', async () => {
    await fc.assert(
      fc.asyncProperty(eventsArb, funnelArb, fc.constantFrom(null, 1), async (events, arbitrary, index) => {
        // The counts do not show who dropped off before an optional step, and "Other" counts people once per value.
        const steps = arbitrary.funnel.steps.map((step) => ({ ...step, optional: false }));
        const source = {
          ...queryOf({ ...arbitrary, viz: 'steps', funnel: { ...arbitrary.funnel, steps, limit: 25 } }),
          aggregation_group_type_index: index,
        };
        teams += 1;
        await insertEvents(database.pool, teams, events);
        const count = async (funnelStep: number, funnelStepBreakdown: unknown): Promise<number> => {
          const { results, more } = await runActorsQuery(
            database.pool,
            teams,
            { source: { kind: 'FunnelsActorsQuery', source, funnelStep, funnelStepBreakdown } },
            projectOf(teams),
          );
          const rows = results as readonly unknown[];
          expect(more).toEqual({ missing_actors_count: rows.length });
          return rows.length;
        };
        const response = (await runFunnelsQuery(database.pool, teams, source)) as readonly (
          | Step
          | readonly Step[]
        )[];
        const lines = response.some((one) => Array.isArray(one))
          ? (response as readonly (readonly Step[])[])
          : [response as readonly Step[]];
        for (const line of lines.slice(0, 2)) {
          const countOf = (funnelStep: number, step: Step) => count(funnelStep, step.breakdown_value ?? null);
          for (const [index, step] of line.entries()) expect(await countOf(index + 1, step)).toBe(step.count);
          for (const [index, step] of line.slice(1).entries())
            expect(await countOf(-index - 2, step)).toBe((line[index]?.count ?? 0) - step.count);
        }
      }),
      { numRuns: randomCases(6) },
    );
  });
});
