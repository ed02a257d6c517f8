import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../../../../test/setup/database.ts';
import { effort } from '../../../../test/setup/effort.ts';
import { compileWith, faults, isConcerned } from './faults.ts';
import { project } from '../project.ts';
import { rowsOf } from '../rows_of.ts';
import { foundDifferences } from './found_differences.ts';
import { DifferentialSearch } from './search.ts';
import { createTables } from './tables.ts';

let database: TestDatabase;
let search: DifferentialSearch;
beforeAll(async () => {
  database = await createTestDatabase();
  await createTables(database.pool);
  search = new DifferentialSearch(database.pool);
});
afterAll(() => database.drop());

// `npm test` repeats the same cases; `npm run test:long` tries 20,000 new ones over four seeds.
const given = process.env.EXPORTD_TEST_SEED;
const first = Date.now() % 1_000_000_000;
const newSeeds = [first, first + 10_000_000, first + 20_000_000, first + 30_000_000];
const seeds = given === undefined ? (effort > 1 ? newSeeds : [1]) : [Number(given)];

it.each(seeds)(
  'random queries return what the reference interpreter returns (EXPORTD_TEST_SEED=%i)',
  async (seed) => {
    const { differences, compared, withRows } = await search.run({ seed, cases: effort > 1 ? 5_000 : 150 });
    expect(differences).toEqual([]);
    expect(withRows).toBeGreaterThan(compared / 3);
  },
);

describe('differences that were found before', () => {
  it.each(foundDifferences)('%s', async (query, rows) => {
    expect(await rowsOf(database.pool, query, project)).toEqual(rows);
  });
});

describe('a planted fault is found', () => {
  it.each(faults)('$name', async (fault) => {
    const { differences } = await search.run({
      seed: 1,
      skip: fault.after,
      cases: 2_000,
      compile: compileWith(fault),
      concerns: (text) => isConcerned(text, fault),
      shrinkTrials: 0,
    });
    expect(differences).toHaveLength(1);
  });
});
