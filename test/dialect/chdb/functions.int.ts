import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { functionDefinitions } from '../../../src/dialect/functions/registry.ts';
import { createTestDatabase, type TestDatabase } from '../../setup/database.ts';
import { batched, comparable, compiled, kindOfType } from './batches.ts';
import { type FunctionCase, functionCases, ofColumns, refusedCases, unanswered } from './function_cases.ts';

const batchSize = 60;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const parts = <Item>(items: readonly Item[]): readonly (readonly Item[])[] =>
  Array.from({ length: Math.ceil(items.length / batchSize) }, (_, part) =>
    items.slice(part * batchSize, (part + 1) * batchSize),
  );

/** What PostgreSQL gives for each, in one statement. */
async function answersOf(queries: readonly string[]): Promise<readonly unknown[]> {
  const { text, values } = batched(queries.map(compiled));
  const { rows } = await database.pool.query<{ n: number; answer: string | null }>(text, [...values]);
  return rows
    .toSorted((first, second) => first.n - second.n)
    .map(({ answer }) => comparable(answer === null ? null : JSON.parse(answer)));
}

const compiles = (query: string): boolean => {
  try {
    compiled(query);
    return true;
  } catch (error) {
    if (Error.isError(error) && error.name === 'DialectError') return false;
    throw error;
  }
};

describe('functions give what ClickHouse gives', () => {
  it.each(parts(functionCases).map((cases) => [cases[0]?.function ?? '', cases] as const))(
    'from %s on',
    async (_, cases) => {
      const answers = await answersOf(cases.map(({ query }) => query));
      const found = cases.map(({ query }, place) => ({ query, value: answers[place] }));
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

  /** Not those that say something the compiler has to know: a zone, or a pattern that it translates. */
  const columnCases = functionCases.flatMap((one): readonly FunctionCase[] => {
    const query = /toTimeZone|\\\\b/.test(one.query) ? null : ofColumns(one.query);
    return query !== null && compiles(query) ? [{ ...one, query }] : [];
  });

  it.each(parts(columnCases).map((cases) => [cases[0]?.function ?? '', cases] as const))(
    'from %s on, of columns',
    async (_, cases) => {
      const answers = await answersOf(cases.map(({ query }) => query));
      const found = cases.map(({ query }, place) => ({ query, value: answers[place] }));
      expect(found).toEqual(cases.map(({ query, value }) => ({ query, value: comparable(value) })));
    },
  );

  it('over a thousand cases, and each function of the table has some', () => {
    expect(unanswered).toEqual([]);
    expect(functionCases.length).toBeGreaterThan(1_900);
    expect(columnCases.length).toBeGreaterThan(1_100);
    const tested = new Set([...functionCases, ...functionsRefused].map((one) => one.function));
    expect(functionDefinitions.map(({ name }) => name).filter((name) => !tested.has(name))).toEqual([]);
  });
});

const functionsRefused = functionDefinitions
  .filter(({ unsupported: refused }) => refused !== null)
  .map(({ name }) => ({ function: name }));

describe('what cannot be computed', () => {
  it.each(refusedCases)('is refused: $query', ({ query, refused }) => {
    expect(() => compiled(query)).toThrow(refused);
  });
});
