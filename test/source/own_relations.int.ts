import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { classifyError } from '../../src/failures/classify_error.ts';
import { allRows, type RowSelection } from '../../src/source/row_selection.ts';
import { readRowQuery } from '../../src/source/row_query/read_row_query.ts';
import type { RowRange, Source } from '../../src/source/source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { blocksOf, hourOf, rowsOf, sourceOf } from './rows.ts';

let database: TestDatabase;
let source: Source;
beforeAll(async () => {
  database = await createTestDatabase();
  await database.pool.query('drop table persons, person_distinct_ids');
  await database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, person_properties, timestamp, inserted_at)
     values (1, gen_random_uuid(), 'click', 'ada', '{"path": "/"}', null, now(), '2026-11-01 10:30Z')`,
  );
  source = sourceOf(database.url);
});
afterAll(async () => {
  await source.close();
  await database.drop();
});

const selecting = (dialect_query: string): RowRange => ({
  ...hourOf('events'),
  selection: {
    ...allRows,
    query: readRowQuery('events', { dialect_query, timezone: 'UTC', week_start_day: 'monday' }),
  },
});
const filtering = (selection: Partial<RowSelection>): RowRange => ({
  ...hourOf('events'),
  selection: { ...allRows, ...selection },
});

const errorOf = (read: () => Promise<unknown>): Promise<unknown> =>
  read().then(
    () => undefined,
    (error: unknown) => error,
  );

describe('events without relations of persons', () => {
  it.each([
    ['all columns', hourOf('events')],
    ['a query of events alone', selecting(`select event, properties.path as path from events`)],
    ['a query of what events carry', selecting(`select event, person_properties from events`)],
    ['a filter on events', filtering({ include_events: ['click'] })],
    [
      'a filter on what events carry',
      filtering({ filters: [{ type: 'person', key: 'plan', operator: 'is_not_set', value: null }] }),
    ],
  ])('are exported: %s', async (_, range) => {
    const [block] = await blocksOf(source, range);
    expect(block && rowsOf(block)).toMatchObject([{ event: 'click' }]);
    expect(await source.countRows(range)).toBe(1);
  });

  it.each([
    ['selects', 'select event, person.properties.plan as plan from events'],
    ['filters by', `select event from events where person.properties.plan = 'free'`],
  ])('cannot be exported by a query that %s the person; the error names the setting', async (_, text) => {
    const error = await errorOf(() => blocksOf(source, selecting(text)));
    expect(classifyError(error)).toMatchObject({
      type: 'RelationNotFound',
      owner: 'operator',
      message: expect.stringContaining('EXPORTD_PERSONS_RELATION'),
    });
  });
});

describe('a relation whose columns do not fit', () => {
  it.each([
    ['person_id', '7::bigint', 'cannot cast type bigint to uuid'],
    ['inserted_at', 'inserted_at::text', 'operator does not exist: text'],
    ['created_at', '7::bigint', 'cannot cast type bigint to timestamp with time zone'],
  ])(
    'fails with the name of its column %s and the message of PostgreSQL',
    async (name, expression, message) => {
      const columns = [
        ...['team_id', 'uuid', 'event', 'distinct_id', 'person_id', 'properties', 'person_properties'],
        ...['elements_chain', '"timestamp"', 'created_at', 'inserted_at'],
      ].map((column) => (column === name ? `${expression} as ${column}` : column));
      const view = `odd_${name}`;
      await database.pool.query(`create view ${view} as select ${columns.join(', ')} from events`);
      const odd = sourceOf(database.url, { EXPORTD_EVENTS_RELATION: view });
      try {
        const described = classifyError(await errorOf(() => blocksOf(odd, hourOf('events'))));
        expect(described).toMatchObject({ type: 'InvalidRelation', owner: 'operator', permanent: false });
        expect(described.message).toContain(`"${view}"`);
        expect(described.message).toContain(`Column ${name} has type`);
        expect(described.message).toContain(message);
        expect(described.message).toContain('exportd source check');
      } finally {
        await odd.close();
      }
    },
  );
});
