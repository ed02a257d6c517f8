import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../../setup/database.ts';
import { funnel as ask, insertEvents } from './asking.ts';
import { answered, expectedOf } from './expected.ts';
import { eventsArb, funnelArb, queryOf } from './random_funnels.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

let team = 1_000;

it('random funnels over random events give what a walk event by event gives', async () => {
  await fc.assert(
    fc.asyncProperty(
      eventsArb,
      fc.array(funnelArb, { minLength: 5, maxLength: 5 }),
      async (events, funnels) => {
        team += 1;
        await insertEvents(database.pool, team, events);
        for (const one of funnels) {
          const results = await ask(database.pool, team, queryOf(one));
          expect(answered(one, results)).toEqual(expectedOf(one, events));
        }
      },
    ),
    { numRuns: 20 },
  );
});
