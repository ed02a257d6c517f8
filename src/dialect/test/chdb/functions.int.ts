import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { functionDefinitions } from '../../functions/registry.ts';
import { createTestDatabase, type TestDatabase } from '../../../../test/setup/database.ts';
import { batched, comparable, compiled, kindOfType } from './batches.ts';
import {
  type FunctionCase,
  functionCases,
  withColumns,
  rejectedCases,
  unresolvedCases,
} from './function_cases.ts';

const batchSize = 60;

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  // The role of queries may call only the functions that the compiler needs.
  pool = new pg.Pool({
    connectionString: database.url,
    max: 2,
    options: '-c role=exportd_query -c timezone=UTC',
  });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const batches = <Item>(items: readonly Item[]): readonly (readonly Item[])[] =>
  Array.from({ length: Math.ceil(items.length / batchSize) }, (_, part) =>
    items.slice(part * batchSize, (part + 1) * batchSize),
  );

/** The results of PostgreSQL, from one statement. */
async function resultsOf(queries: readonly string[]): Promise<readonly unknown[]> {
  const { text, values } = batched(queries.map(compiled));
  const { rows } = await pool.query<{ n: number; result: string | null }>(text, [...values]);
  return rows
    .toSorted((first, second) => first.n - second.n)
    .map(({ result }) => comparable(result === null ? null : JSON.parse(result)));
}

const compiles = (query: string): boolean => {
  try {
    compiled(query);
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === 'DialectError') return false;
    throw error;
  }
};

describe('functions return what ClickHouse returns', () => {
  it.each(batches(functionCases).map((cases) => [cases[0]?.function ?? '', cases] as const))(
    'from %s on',
    async (_, cases) => {
      const results = await resultsOf(cases.map(({ query }) => query));
      const found = cases.map(({ query }, index) => ({ query, value: results[index] }));
      expect(found).toEqual(cases.map(({ query, value }) => ({ query, value: comparable(value) })));
    },
  );

  it('in columns of the same kind', () => {
    const kinds = functionCases.flatMap(({ query, kind }) => {
      const type = compiled(query).columns[0]?.type;
      const found = type === undefined ? null : kindOfType(type);
      return kind === null || found === null || found === kind ? [] : [{ query, kind, found }];
    });
    expect(kinds).toEqual([]);
  });

  /** Without cases whose arguments must be literals: a zone, or a translated pattern. */
  const columnCases = functionCases.flatMap((one): readonly FunctionCase[] => {
    const query = /toTimeZone|\\\\[bdsw]/.test(one.query) ? null : withColumns(one.query);
    return query !== null && compiles(query) ? [{ ...one, query }] : [];
  });

  it.each(batches(columnCases).map((cases) => [cases[0]?.function ?? '', cases] as const))(
    'from %s on, with columns',
    async (_, cases) => {
      const results = await resultsOf(cases.map(({ query }) => query));
      const found = cases.map(({ query }, index) => ({ query, value: results[index] }));
      expect(found).toEqual(cases.map(({ query, value }) => ({ query, value: comparable(value) })));
    },
  );

  it('in over a thousand cases, which cover every function', () => {
    expect(unresolvedCases).toEqual([]);
    expect(functionCases.length).toBeGreaterThan(1_900);
    expect(columnCases.length).toBeGreaterThan(1_100);
    const tested = new Set([...functionCases, ...unsupportedFunctions].map((one) => one.function));
    expect(functionDefinitions.map(({ name }) => name).filter((name) => !tested.has(name))).toEqual([]);
  });
});

const unsupportedFunctions = functionDefinitions
  .filter(({ unsupported: rejected }) => rejected !== null)
  .map(({ name }) => ({ function: name }));

describe('what is not supported', () => {
  it.each(rejectedCases)('is rejected: $query', ({ query, rejected }) => {
    expect(() => compiled(query)).toThrow(rejected);
  });
});
