import { expect, it } from '@jest/globals';
import { compileQuery } from '../compile/compile_query.ts';
import { project } from './project.ts';

it.each([
  ['SELECT event FROM events', 0],
  ['SELECT count(), sum(1), max(event) FROM events', 0],
  ['SELECT event, count() FROM events GROUP BY event ORDER BY event', 2],
  ['SELECT uniq(event), uniqIf(event, 1 = 1), count(DISTINCT event), quantile(0.5)(1) FROM events', 4],
  [
    'SELECT groupUniqArray(event), groupArray(DISTINCT event), sumDistinct(1), groupArray(event) FROM events',
    5,
  ],
  ['SELECT groupArray(event ORDER BY event), row_number() OVER (ORDER BY count()) FROM events', 2],
  [
    'SELECT DISTINCT event FROM events LIMIT 1 BY event UNION ALL SELECT a.event FROM events a JOIN events b ON a.uuid = b.uuid',
    4,
  ],
])('%s may keep %d sorts and hash tables in memory', (query, operations) => {
  expect(compileQuery(query, project).memoryOperations).toBe(operations);
});
