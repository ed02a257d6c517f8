import { expect, it } from '@jest/globals';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import type { StepResult } from '../../../src/queries/funnels_query/results.ts';
import { insertEvents, runFunnelsQuery } from './run_funnels_query.ts';

const database = useTestDatabase();
const minute = 60_000;
const start = Date.UTC(2026, 9, 25, 2);
let team = 5_000;

/** A letter is an event, a number its minute; x is no step. */
const eventsOf = (story: string) =>
  story.split(' ').map((word, index) => ({
    uuid: `10000000-0000-0000-0000-${String(index).padStart(12, '0')}`,
    actor: '00000000-0000-0000-0000-000000000001',
    at: start + Number(word.slice(1)) * minute,
    event: word.charAt(0),
    size: 's',
    plan: null,
    region: null,
  }));

// What PostHog publishes: funnel-udf/src/steps.rs and unordered_steps.rs.
it.each<[order: string, story: string, steps: string, times: readonly (number | null)[]]>([
  // The last step 1, but the first event of each later step, is measured.
  ['ordered', 'a0 b1 b5 c6', 'abc', [null, 1, 5]],
  ['ordered', 'a0 a4 b5', 'ab', [null, 1]],
  ['ordered', 'a0 b1 a2 c3', 'abc', [null, 1, 2]],
  ['ordered', 'a0 b1 b2 a3 b4 b5 c6', 'abc', [null, 1, 2]],
  ['ordered', 'a0 b1 b3 c4 c5 d6', 'abcd', [null, 1, 3, 2]],
  ['ordered', 'a0 a1 a3', 'aaa', [null, 1, 2]],
  // The window is 10 minutes, from step 1.
  ['ordered', 'a0 b9 b12 c14', 'abc', [null, 9]],
  ['ordered', 'a0 a5 b12', 'ab', [null, 7]],
  ['unordered', 'a0 a4 b5', 'ab', [null, 5]],
  ['unordered', 'b0 a1 b2 c3 c4', 'abc', [null, 1, 2]],
  ['unordered', 'a0 a2 b11', 'ab', [null, 9]],
  ['unordered', 'a0 b1 a12 b13 c14', 'abc', [null, 1, 1]],
  ['unordered', 'a0 a1 a3 b4', 'aab', [null, 1, 3]],
  ['strict', 'a0 x0 b1', 'ab', [null, 1]],
  ['strict', 'a0 x1 b2', 'ab', [null]],
  ['strict', 'a0 x1 x1 b2', 'ab', [null]],
  ['strict', 'a0 x1 d1 b2', 'abd', [null, 2]],
  ['strict', 'a0 b1 b3 c4', 'abc', [null, 1, 3]],
  ['strict', 'a0 a1 b2', 'ab', [null, 1]],
  ['strict', 'a0 b1 a2 c3', 'abc', [null, 1]],
  ['strict', 'a0 b1 x2 a3 b4 c5', 'abc', [null, 1, 1]],
])('%s: %s by the steps %s', async (order, story, steps, times) => {
  team += 1;
  await insertEvents(database.pool, team, eventsOf(story));
  const results = (await runFunnelsQuery(database.pool, team, {
    kind: 'FunnelsQuery',
    series: Array.from(steps, (event) => ({ kind: 'EventsNode', event })),
    dateRange: { date_from: '2026-10-25', date_to: '2026-10-25' },
    funnelsFilter: {
      funnelOrderType: order,
      funnelWindowInterval: 10,
      funnelWindowIntervalUnit: 'minute',
    },
  })) as readonly StepResult[];
  const reached = results.filter(({ count }) => count > 0);
  const inMinutes = (seconds: number | null) => (seconds === null ? null : seconds / 60);
  expect(reached.map(({ average_conversion_time }) => inMinutes(average_conversion_time))).toEqual(times);
});

it.each([
  ['a0 x1 b2', []],
  ['a0 x1 c1 b2', [1, 1]],
  ['a0 b1 x2 b3', [1, 1]],
])('an exclusion bars, unless a different event has its time: %s', async (story, counts) => {
  team += 1;
  await insertEvents(database.pool, team, eventsOf(story));
  const node = (event: string) => ({ kind: 'EventsNode', event });
  const results = (await runFunnelsQuery(database.pool, team, {
    kind: 'FunnelsQuery',
    series: [node('a'), node('b'), node('c')].slice(0, story.includes('c') ? 3 : 2),
    dateRange: { date_from: '2026-10-25', date_to: '2026-10-25' },
    funnelsFilter: { exclusions: [{ ...node('x'), funnelFromStep: 0, funnelToStep: 1 }] },
  })) as readonly StepResult[];
  expect(results.map(({ count }) => count).filter((count) => count > 0)).toEqual(counts);
});
