import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import type { QueryProject } from '../../../src/queries/query_kind.ts';
import { runActorsQuery, insertPersons, projectOf } from './run_actors_query.ts';
import {
  columnNames,
  orderNames,
  referenceActors,
  referenceCounts,
  type ReferencePerson,
  type ReferenceQuery,
} from './reference_persons.ts';
import { randomCases } from '../../setup/effort.ts';

const database = useTestDatabase();
let teams = 0;

const persons: fc.Arbitrary<readonly ReferencePerson[]> = fc
  .array(
    fc.record({
      properties: fc.record(
        {
          plan: fc.constantFrom('pro', 'free', '', 'Pro', null, 7),
          email: fc.constantFrom('ada@x.org', 'BOB@x.org', 'eve_1@y.org', 'eve%@y.org', ''),
          name: fc.constantFrom('Ada', 'Zoë', null, 'bob'),
        },
        { requiredKeys: [] },
      ),
      day: fc.integer({ min: 1, max: 28 }),
      is_deleted: fc.integer({ min: 0, max: 5 }).map((number) => number === 0),
      distinct_ids: fc.integer({ min: 0, max: 2 }),
    }),
    { maxLength: 25 },
  )
  .map((arbitrary) =>
    arbitrary.map(({ day, distinct_ids: count, ...person }, index) => ({
      ...person,
      id: `${String((index * 7) % 10)}0000000-0000-0000-0000-${String(index).padStart(12, '0')}`,
      created_at: new Date(Date.UTC(2026, 9, day)).toISOString(),
      distinct_ids: Array.from({ length: count }, (_, number) => `d${index}_${number === 0 ? 'Z' : 'A'}`),
    })),
  );

const filterOf = fc.record({
  type: fc.constant('person' as const),
  key: fc.constantFrom('plan', 'email', 'name'),
  operator: fc.constantFrom(
    'exact' as const,
    'is_not' as const,
    'icontains' as const,
    'is_set' as const,
    'is_not_set' as const,
  ),
  value: fc.constantFrom('pro', 'ada', '7', 'org'),
});

const queries: fc.Arbitrary<ReferenceQuery> = fc.record({
  select: fc.uniqueArray(fc.constantFrom(...columnNames), { minLength: 1, maxLength: 5 }),
  search: fc.option(fc.constantFrom('ada', 'X.ORG', '_1', 'e%', 'd1', '0000', 'nobody'), { freq: 2 }),
  properties: fc.option(fc.array(filterOf, { maxLength: 2 })),
  orderBy: fc.option(
    fc.uniqueArray(
      fc
        .tuple(fc.constantFrom(...orderNames), fc.constantFrom('', ' ASC', ' DESC'))
        .map(([name, direction]) => `${name}${direction}`),
      { minLength: 1, maxLength: 2 },
    ),
  ),
  limit: fc.constantFrom(1, 3, 10, 100),
  offset: fc.constantFrom(0, 0, 2),
});

describe('Queries of persons', () => {
  it('return the rows of the reference implementation, for random queries of random persons', async () => {
    await fc.assert(
      fc.asyncProperty(
        persons,
        fc.array(queries, { minLength: 5, maxLength: 5 }),
        async (all, queriesOfRun) => {
          teams += 1;
          await insertPersons(database.pool, teams, all);
          for (const query of queriesOfRun) {
            const { results, hasMore, columns } = await runActorsQuery(database.pool, teams, query);
            expect({ query, columns, results, hasMore }).toEqual({
              query,
              columns: query.select,
              ...referenceActors(all, query),
            });
            const counted = await runActorsQuery(database.pool, teams, {
              ...query,
              select: ['properties.plan', 'count()'],
              orderBy: ['count() DESC', 'properties.plan'],
              limit: 100,
              offset: 0,
            });
            expect(counted.results).toEqual(referenceCounts(all, query));
          }
        },
      ),
      { numRuns: randomCases(6) },
    );
  });

  it('read properties by their definitions, also with a source', async () => {
    teams += 1;
    const [id, other] = ['1', '2'].map((digit) => `${digit}0000000-0000-0000-0000-000000000000`);
    const known = { id: String(id), created_at: '2026-11-01T00:00:00Z', is_deleted: false, distinct_ids: [] };
    await insertPersons(database.pool, teams, [{ ...known, properties: { seats: '3' } }]);
    const project: QueryProject = {
      ...projectOf(teams),
      property_definitions: [{ scope: 'person', name: 'seats', type: 'numeric' }],
    };
    const select = ['id', 'properties.seats + 1', 'person.properties.seats'];
    const of = async (query: object) =>
      (await runActorsQuery(database.pool, teams, { select, ...query }, project)).results;
    expect(await of({})).toEqual([[id, 4, 3]]);
    const query = `select arrayJoin(['${id}', '${other}']) as person_id, properties.seats as seats from persons`;
    expect(await of({ source: { kind: 'DialectQuery', query } })).toEqual([
      [id, 4, 3],
      [other, null, null],
    ]);
    expect(await of({ source: { kind: 'DialectQuery', query }, select: ['id', 'seats'] })).toEqual([
      [id, 3],
      [other, 3],
    ]);
  });
});
