import { beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { inTransaction } from '../../../src/journal/database.ts';
import { eventsQueryKind } from '../../../src/queries/events_query/index.ts';
import { postgresWarehouse } from '../../../src/queries/postgres_warehouse.ts';
import type { QueryOutput } from '../../../src/queries/query_kind.ts';
import { eventsQuerySchema, type EventsQuery } from '../../../src/queries/events_query/schema.ts';
import { queryRelationsOf } from '../../../src/queries/query_source.ts';
import type { QueryRelations } from '../../../src/queries/source_schema.ts';
import { readSettings } from '../../../src/config/settings.ts';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { contextOf } from '../dates/context.ts';
import { insertEvents, personIdOf, randomEvents } from '../filters/random_events.ts';
import { randomFilters } from '../filters/random_filters.ts';
import {
  referenceAggregates,
  referenceResult,
  referenceColumns,
  referenceConditions,
  type ReferenceQuery,
} from './reference_events_query.ts';
import { randomCases } from '../../setup/effort.ts';

const now = new Date('2026-11-21T12:00:00Z');
const events = randomEvents(now, 60);
const { project } = contextOf('UTC', now);
const database = useTestDatabase();
let relations: QueryRelations;
beforeAll(async () => {
  relations = queryRelationsOf(readSettings({ DATABASE_URL: database.url }));
  await insertEvents(database.pool, project.team_id, events);
});

const run = (query: EventsQuery): Promise<QueryOutput> =>
  inTransaction(database.pool, async (connection) => {
    await connection.query('set transaction read only');
    return eventsQueryKind.run(query, {
      warehouse: postgresWarehouse(connection, { relations, project }),
      project,
      now,
      row_limit: 10_000,
      byte_limit: 10_000_000,
      variables: {},
      progress: () => undefined,
    });
  });

const namesOf = <Name extends string>(table: Readonly<Record<Name, unknown>>): readonly Name[] =>
  Object.keys(table) as Name[];
const some = <Name extends string>(table: Readonly<Record<Name, unknown>>, maxLength: number) =>
  fc.uniqueArray(fc.constantFrom(...namesOf(table)), { maxLength });
const moment = fc.integer({ min: 0, max: 5 * 86_400_000 }).map((ago) => new Date(now.getTime() - ago));

const arbitrary: fc.Arbitrary<ReferenceQuery> = fc
  .record({
    columns: some(referenceColumns, 3),
    aggregates: fc.oneof(fc.constant([]), some(referenceAggregates, 2)),
    conditions: fc.oneof(fc.constant([]), some(referenceConditions, 2)),
    isOften: fc.boolean(),
    properties: fc.oneof(fc.constant(null), randomFilters),
    event: fc.constantFrom(null, null, 'bought', 'nothing'),
    after: moment,
    before: moment,
    limit: fc.integer({ min: 1, max: 30 }),
    offset: fc.constantFrom(0, 0, 3),
  })
  .filter(
    ({ columns, aggregates, isOften }) =>
      columns.length + aggregates.length > 0 && !(isOften && columns.length === 0),
  );

const toRequest = (query: ReferenceQuery): unknown => ({
  kind: 'EventsQuery',
  select: [...query.columns, ...query.aggregates],
  where: [...query.conditions, ...(query.isOften ? ['count() > 1'] : [])],
  properties: query.properties,
  event: query.event,
  after: query.after.toISOString(),
  before: query.before.toISOString(),
  limit: query.limit,
  offset: query.offset,
});

describe('random queries of events', () => {
  it('return the rows of the reference implementation', async () => {
    await fc.assert(
      fc.asyncProperty(arbitrary, async (query) => {
        const parsed = eventsQuerySchema.parse(toRequest(query));
        expect(eventsQuerySchema.parse(JSON.parse(JSON.stringify(parsed)))).toEqual(parsed);
        const { results, hasMore } = await run(parsed);
        expect({ results, hasMore }).toEqual(referenceResult(events, query));
      }),
      { numRuns: randomCases(40) },
    );
  });

  it('return the person of each event', async () => {
    const query = eventsQuerySchema.parse({ kind: 'EventsQuery', select: ['uuid', 'person'], after: 'all' });
    const { results } = await run(query);
    const expected = [...events]
      .sort((one, other) => (one.uuid < other.uuid ? -1 : 1))
      .map(({ uuid, person, distinct_id }) => [
        uuid,
        person === null
          ? { distinct_id }
          : {
              uuid: personIdOf(distinct_id),
              created_at: '2026-01-01T00:00:00Z',
              properties: person,
              distinct_id,
            },
      ]);
    expect(results).toEqual(expected);
  });
});
