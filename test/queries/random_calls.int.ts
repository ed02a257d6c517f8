import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { compileQuery, type CompiledStatement } from '@exportd/dialect/compile/compile_query';
import { functionDefinitions } from '@exportd/dialect/functions/registry';
import { inTransaction } from '../../src/journal/database.ts';
import { toQueryError } from '../../src/queries/query_errors.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { RandomCalls } from '../../src/dialect/test/random_calls.ts';
import { insertEdgeValues, edgeValueProject } from '../../src/dialect/test/edge_values.ts';
import { randomCases } from '../setup/effort.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await insertEdgeValues(database.pool);
});
afterAll(() => database.drop());

function compiled(query: string): CompiledStatement | undefined {
  try {
    return compileQuery(query, edgeValueProject);
  } catch (error) {
    if (error instanceof Error && error.name === 'DialectError') return undefined;
    throw error;
  }
}

const rawText = { getTypeParser: () => (text: string) => text };

/** The outcome of a statement: `rows`, `timeout`, or the message for the caller. Unexpected errors are thrown. */
async function outcomeOf({ sql, parameters }: CompiledStatement, atMost = '1min'): Promise<string> {
  try {
    await inTransaction(database.pool, async (connection) => {
      await connection.query(`set transaction read only; set local statement_timeout = '${atMost}'`);
      await connection.query({ text: sql, values: [...parameters], rowMode: 'array', types: rawText });
    });
    return 'rows';
  } catch (error) {
    // Timeouts have a separate response.
    if (error instanceof Error && 'code' in error && error.code === '57014') return 'timeout';
    const queryError = toQueryError(error);
    if (queryError === undefined) throw error;
    return queryError.message;
  }
}

describe('random calls of all functions with values at the limits of their types', () => {
  it('return rows, or an error message without values', async () => {
    const counts = { rows: 0, rejected: 0 };
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (draw) => {
        const calls = new RandomCalls((bound) => draw(fc.nat, { max: bound - 1 }));
        const statement = compiled(calls.query());
        if (statement === undefined) return;
        const end = await outcomeOf(statement, '1s');
        counts[end === 'rows' ? 'rows' : 'rejected'] += 1;
        expect(end).toMatch(/^(rows|timeout|[A-Z][^"]+\. \(SQLSTATE [0-9A-Z]{5}\))$/);
      }),
      { numRuns: randomCases(200) },
    );
    // Some four in ten calls do not compile.
    expect(counts.rows).toBeGreaterThan(randomCases(200) / 4);
    expect(counts.rows).toBeGreaterThan(counts.rejected);
  });

  it('compute every aggregate over the items of arrays that have nothing but nulls', async () => {
    const aggregates = functionDefinitions.filter(({ kind }) => kind === 'aggregate');
    const computed = new Set<string>();
    const failed: string[] = [];
    for (const { name, argumentTypes } of aggregates) {
      const nulls = argumentTypes.map(() => 'NULL').join(', ');
      for (const parameters of ['', '(1)', '(0.5)', '(1, 1)'])
        for (const call of [
          `${name}Array${parameters}(${nulls})`,
          `${name}ForEach${parameters}([NULL])`,
          `${name}Map${parameters}(map('a', NULL))`,
          `${name}ArgMin${parameters}(NULL, i)`,
          `arrayReduce('${name}${parameters}', ${argumentTypes.map(() => '[NULL]').join(', ')})`,
        ]) {
          const statement = compiled(`SELECT ${call} AS x FROM edge_values GROUP BY b`);
          if (statement === undefined) continue;
          const outcome = await outcomeOf(statement).catch(String);
          if (outcome !== 'rows') failed.push(`${call}: ${outcome}`);
          computed.add(name);
        }
    }
    expect(failed).toEqual([]);
    expect(computed.size).toBeGreaterThan(aggregates.length / 2);
  });

  it.each([
    ['SELECT i + i FROM edge_values', 'A number is out of range for its type. (SQLSTATE 22003)'],
    ['SELECT f * f FROM edge_values', 'A number is out of range for its type. (SQLSTATE 22003)'],
    [
      "SELECT match('a', s) FROM edge_values",
      'A regular expression is invalid. One that is not a literal cannot use escapes such as \\d, classes such as [:alpha:], or flags other than (?i). (SQLSTATE 2201B)',
    ],
    ["SELECT 'a' LIKE s FROM edge_values", 'A LIKE pattern ends with a backslash. (SQLSTATE 22025)'],
    ["SELECT to_char(f, '9.9.9') FROM edge_values", 'A number or time format is invalid. (SQLSTATE 42601)'],
    ['SELECT toStartOfMonth(d) FROM edge_values', 'A date or time is out of range. (SQLSTATE 22008)'],
    [
      'SELECT toInt(t) FROM edge_values',
      'The database cannot compute this: a FULL JOIN needs an equality between both sides, and few functions accept an infinite time. (SQLSTATE 0A000)',
    ],
    [
      'SELECT map(s, i) FROM edge_values',
      'An argument has a value that its function does not accept. (SQLSTATE 22023)',
    ],
    [
      'SELECT sum(i) OVER (ORDER BY id ROWS -1 PRECEDING) FROM edge_values',
      'A window frame bound is null or negative. (SQLSTATE 22013)',
    ],
  ])('%s', async (query, sentence) => {
    const statement = compiled(query);
    expect(statement && (await outcomeOf(statement))).toBe(sentence);
  });

  it.each([
    'SELECT log(f), ln(i), sqrt(f), pow(f, f), pow(i, 0.5), exp(f), factorial(i), intDiv(i, 0), i % 0, f / 0 FROM edge_values',
    'SELECT toInt(s), toFloat(s), toDate(s), toDateTime(s), toUUID(s), toBool(s), JSONExtractInt(s, s) FROM edge_values',
    'SELECT j.a, j.a.b, j[1], JSONExtractFloat(j, 1), JSONLength(j), JSONType(j) FROM edge_values',
    'SELECT substring(s, i, i), left(s, i), repeat(s, i), leftPad(s, 5, s), s || toString(i) FROM edge_values',
    'SELECT arrayElement([1, 2], i), range(i % 5), arraySlice([1, 2, 3], i, i), [i, i][i] FROM edge_values',
    'SELECT decodeURLComponent(s), domain(s), path(s), port(s), extractURLParameter(s, s), base64Decode(s) FROM edge_values',
  ])('never fail: %s', async (query) => {
    const statement = compiled(query);
    expect(statement && (await outcomeOf(statement))).toBe('rows');
  });
});
