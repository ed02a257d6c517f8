import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { readRowQuery } from '../../src/source/row_query/read_row_query.ts';
import { allRows, type RowQuery } from '../../src/source/row_selection.ts';
import type { Source } from '../../src/source/source.ts';
import { comparable } from '../dialect/chdb/batches.ts';
import { functionCases, type FunctionCase } from '../dialect/chdb/function_cases.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { blocksOf, rowsOf, sourceOf } from './rows.ts';

const batchSize = 200;
const interval = { start: '2026-11-01T10:00:00Z', end: '2026-11-01T11:00:00Z' };

let database: TestDatabase;
let source: Source;
beforeAll(async () => {
  database = await createTestDatabase();
  source = sourceOf(database.url);
  await database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
     values (1, gen_random_uuid(), 'e', 'd', '2026-11-01Z', '2026-11-01 10:00Z')`,
  );
});
afterAll(async () => {
  await source.close();
  await database.drop();
});

/** A query that exports expressions without columns; null if one cannot be exported. */
function queryOf(expressions: readonly string[]): RowQuery | null {
  const columns = expressions.map((expression, index) => `${expression} as c${index}`).join(', ');
  try {
    return readRowQuery('events', {
      dialect_query: `select ${columns} from events`,
      timezone: 'America/New_York',
      week_start_day: 'sunday',
    });
  } catch (error) {
    if (Error.isError(error) && error.name === 'DialectError') return null;
    throw error;
  }
}

const expressionOf = ({ query }: FunctionCase): string | undefined =>
  / from /i.test(query) ? undefined : /^select (.*)$/s.exec(query)?.[1];

/** Two calls of each function: this tests how values are bound, not what functions return. */
const some = [...Map.groupBy(functionCases, (one) => one.function).values()].flatMap((cases) => [
  ...new Set([cases.at(0), cases.at(-1)]),
]);
const exportable = some.flatMap((one) => {
  if (one === undefined) return [];
  const expression = expressionOf(one);
  return expression !== undefined && queryOf([expression]) ? [{ expression, value: one.value }] : [];
});
const batches = Array.from({ length: Math.ceil(exportable.length / batchSize) }, (_, batch) =>
  exportable.slice(batch * batchSize, (batch + 1) * batchSize),
);

/** Formats a value like the expected one; decimals are strings. */
const shown = (value: unknown, expected: unknown): unknown =>
  comparable(typeof expected === 'number' && typeof value === 'string' ? Number(value) : value);

it('exports the same results of functions as queries', async () => {
  expect(exportable.length).toBeGreaterThan(400);
  for (const cases of batches) {
    const query = queryOf(cases.map(({ expression }) => expression));
    const range = { model: 'events', team_id: 1, interval, selection: { ...allRows, query } } as const;
    const [block] = await blocksOf(source, range);
    const [row] = block ? rowsOf(block) : [];
    const found = cases.map(({ expression, value }, index) => [expression, shown(row?.[`c${index}`], value)]);
    expect(found).toEqual(cases.map(({ expression, value }) => [expression, comparable(value)]));
  }
});
