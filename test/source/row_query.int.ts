import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import type { Model } from '../../src/domain/batch_export.ts';
import { classifyError, toApplicationFailure } from '../../src/failures/classify_error.ts';
import { inTransaction } from '../../src/journal/database.ts';
import { eventColumnTypes, eventsQuery } from '../../src/source/events_query.ts';
import { statementSettings } from '../../src/source/model_query.ts';
import { relationsOf } from '../../src/source/relations.ts';
import { readRowQuery } from '../../src/source/row_query/selected_rows.ts';
import { allRows, type ExportedColumn, type RowSelection } from '../../src/source/row_selection.ts';
import type { RowRange, Source } from '../../src/source/source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { blocksOf, hourOf, neverAborted, rowsOf, sourceOf } from './rows.ts';

describe('a row query', () => {
  const interval = { start: '2026-11-01T10:00:00Z', end: '2026-11-01T11:00:00Z' };
  const person = (number: number) => `00000000-0000-0000-0000-00000000000${number}`;
  const event = (number: number) => `10000000-0000-0000-0000-00000000000${number}`;

  let database: TestDatabase;
  /** The relations of the migrations, and views that lack a column and have JSON as text. */
  let sources: Record<'plain' | 'views', Source>;
  beforeAll(async () => {
    database = await createTestDatabase();
    const { pool } = database;
    await pool.query(
      `insert into events (team_id, uuid, event, distinct_id, person_id, properties, person_properties, timestamp, created_at, inserted_at)
     select team, ('10000000-0000-0000-0000-00000000000' || n)::uuid, case when n % 2 = 0 then 'bought' else '$pageview' end,
       'Ä' || n, case when n = 4 then null else ('00000000-0000-0000-0000-00000000000' || n % 2 + 1)::uuid end,
       jsonb_build_object('n', n, 'of', team, 'tags', jsonb_build_array('a', n), 'nothing', null),
       case when n = 1 then '{"plan": "own"}'::jsonb end, timestamptz '2026-10-31 23:30Z' + n * interval '1 hour',
       '2026-11-01 09:00Z', timestamptz '2026-11-01 10:00Z' + n * interval '1 minute'
     from unnest(array[1, 2]) team, generate_series(1, 5) n`,
    );
    await pool.query(
      `insert into persons (team_id, id, properties, created_at, updated_at, version, is_deleted)
     select team, ('00000000-0000-0000-0000-00000000000' || n)::uuid, jsonb_build_object('plan', case team when 1 then 'plan ' || n else 'other team' end, 'of', team),
       '2026-01-01Z', timestamptz '2026-11-01 10:10Z' + n * interval '1 minute', n, n = 3
     from unnest(array[1, 2]) team, generate_series(1, 3) n`,
    );
    await pool.query(
      `insert into person_distinct_ids (team_id, distinct_id, person_id, version, updated_at)
     select team, d, ('00000000-0000-0000-0000-00000000000' || n)::uuid, 7, timestamptz '2026-11-01 10:20Z'
     from unnest(array[1, 2]) team, (values ('Ä', 1), ('b', 2), ('c', 3), ('gone', 9)) as given (d, n)`,
    );
    await pool.query(
      `create view text_events as select team_id, uuid, event, distinct_id, person_id, properties::text as properties,
       elements_chain, timestamp, created_at, inserted_at from events;
     create view json_persons as select team_id, id, properties::text::json as properties, created_at, updated_at, version,
       is_deleted from persons`,
    );
    sources = {
      plain: sourceOf(database.url, { EXPORTD_SOURCE_PAGE_ROWS: 2 }),
      views: sourceOf(database.url, {
        EXPORTD_EVENTS_RELATION: 'public.text_events',
        EXPORTD_PERSONS_RELATION: 'public.json_persons',
        EXPORTD_SOURCE_PAGE_ROWS: 2,
      }),
    };
  });
  afterAll(async () => {
    await Promise.all([sources.plain.close(), sources.views.close()]);
    await database.drop();
  });

  const rangeOf = (model: Model, dialect_query: string, more: Partial<RowSelection> = {}): RowRange => ({
    model,
    team_id: 1,
    interval,
    selection: {
      ...allRows,
      ...more,
      query: readRowQuery(model, { dialect_query, timezone: 'Europe/Berlin', week_start_day: 'monday' }),
    },
  });

  /** Reads the rows of a query, and checks that they are counted alike. */
  async function exported(range: RowRange, from: Source = sources.plain) {
    const blocks = await blocksOf(from, range);
    const columns = from.columns(range.model, range.selection);
    for (const block of blocks) expect(block.columns.filter(({ hidden }) => !hidden)).toEqual(columns);
    const rows = blocks.flatMap((block) => rowsOf({ ...block, columns: visibleNames(block.columns) }));
    expect(await from.countRows(range, neverAborted())).toBe(rows.length);
    return rows.map((row) => columns.map(({ name }) => row[name]));
  }

  /** Hidden columns can have the name of a selected one. */
  const visibleNames = (columns: readonly ExportedColumn[]): ExportedColumn[] =>
    columns.map((column) => (column.hidden ? { ...column, name: `hidden ${column.name}` } : column));

  describe.each(['plain', 'views'] as const)('the query of an export of events, of %s', (name) => {
    it('selects columns of every type, page by page in row order', async () => {
      const rows = await exported(
        rangeOf(
          'events',
          `select uuid, upper(distinct_id) as who, properties, properties.n as n, toInt(properties.n) * 2 as twice,
           toFloat(properties.n) / 4 as part, event = 'bought' as bought, toDate(timestamp) as day, _inserted_at,
           properties.tags as tags, [1, toInt(properties.n)] as list, toDecimal(properties.n, 2) as exact, null as none,
           properties.nothing ?? 'x' as missing from events as e`,
        ),
        sources[name],
      );
      expect(rows).toEqual(
        [1, 2, 3, 4, 5].map((n) => [
          event(n),
          `Ä${n}`,
          { n, of: 1, tags: ['a', n], nothing: null },
          String(n),
          n * 2,
          n / 4,
          n % 2 === 0,
          // 23:30 UTC is the next day in Berlin.
          '2026-11-01',
          `2026-11-01T10:0${n}:00.000000Z`,
          `["a",${n}]`,
          [1, n],
          expect.stringMatching(`^${n}`),
          null,
          'x',
        ]),
      );
    });

    it('reads the person of an event, and filters in addition to the filters of the destination', async () => {
      const persons = `select toInt(properties.n) as n, person.properties.plan as plan, person.id, person.created_at as since from events`;
      const own = name === 'plain' ? 'own' : 'plan 2';
      const rows = [
        [1, own, person(2), '2026-01-01T00:00:00.000000Z'],
        [2, 'plan 1', person(1), '2026-01-01T00:00:00.000000Z'],
        [3, 'plan 2', person(2), '2026-01-01T00:00:00.000000Z'],
        [4, null, null, null],
        [5, 'plan 2', person(2), '2026-01-01T00:00:00.000000Z'],
      ];
      expect(await exported(rangeOf('events', persons), sources[name])).toEqual(rows);
      expect(
        await exported(
          rangeOf('events', `${persons} where person.properties.plan = 'plan 2' and n > 1`),
          sources[name],
        ),
      ).toEqual([rows[2], rows[4]]);
      expect(
        await exported(
          rangeOf('events', `${persons} where n in (1, 2, 3)`, { exclude_events: ['bought'] }),
          sources[name],
        ),
      ).toEqual([rows[0], rows[2]]);
    });

    it('selects all columns of the model with a star, and can exclude some', async () => {
      const stars = rangeOf('events', 'select * except (elements_chain, person_properties) from events');
      expect(sources[name].columns('events', stars.selection).map((column) => column.name)).toEqual([
        'uuid',
        'timestamp',
        '_inserted_at',
        'created_at',
        'event',
        'properties',
        'distinct_id',
        'person_id',
      ]);
      expect((await exported(stars, sources[name]))[0]).toEqual([
        event(1),
        '2026-11-01T00:30:00.000000Z',
        '2026-11-01T10:01:00.000000Z',
        '2026-11-01T09:00:00.000000Z',
        '$pageview',
        { n: 1, of: 1, tags: ['a', 1], nothing: null },
        'Ä1',
        person(2),
      ]);
    });
  });

  describe.each(['plain', 'views'] as const)('the query of an export of persons, of %s', (name) => {
    it('selects columns of their rows, one per distinct id', async () => {
      const rows = await exported(
        rangeOf(
          'persons',
          `select lower(distinct_id) as who, id, properties.plan as plan, version + 1 as next, is_deleted, properties,
           person_distinct_id_version as mapping, toHour(_inserted_at) as hour from persons`,
        ),
        sources[name],
      );
      expect(rows).toEqual([
        ['b', person(2), 'plan 2', 3, false, { plan: 'plan 2', of: 1 }, 7, 11],
        ['c', person(3), 'plan 3', 4, true, { plan: 'plan 3', of: 1 }, 7, 11],
        ['gone', person(9), null, null, false, null, 7, 11],
        ['Ä', person(1), 'plan 1', 2, false, { plan: 'plan 1', of: 1 }, 7, 11],
      ]);
    });

    it('filters them', async () => {
      const deleted = rangeOf(
        'persons',
        `select distinct_id from persons where is_deleted or properties.plan = 'plan 1'`,
      );
      expect(await exported(deleted, sources[name])).toEqual([['c'], ['Ä']]);
    });
  });

  it('splits a range and reads its key ranges like without a query', async () => {
    const range = rangeOf('events', `select event as uuid from events where properties.n != '3'`);
    const splitKeys = await sources.plain.splitKeys(range, 2, neverAborted());
    expect(splitKeys.map(({ id }) => id)).toEqual([event(2)]);
    const [cut] = splitKeys;
    const behind = await blocksOf(sources.plain, range, { after: cut ?? null });
    expect(behind.map(({ rows, first }) => [rows, first.id])).toEqual([[2, event(4)]]);
  });

  it('fails permanently when a stored query compiles to other columns', async () => {
    const range = rangeOf('events', 'select event from events');
    const { query } = range.selection;
    if (!query) throw new Error('There is no query.');
    const fails = async (changed: Partial<RowRange>, message: RegExp) => {
      const failure = await blocksOf(sources.plain, { ...range, ...changed }).then(
        () => undefined,
        toApplicationFailure,
      );
      expect(failure).toMatchObject({ type: 'RowQueryFailed', nonRetryable: true });
      expect(failure?.message).toMatch(message);
    };
    await fails({ model: 'persons' }, /cannot read persons: .*The table `events` is not available/);
    const fields = query.fields.map((field) => ({ ...field, type: 'bigint' as const }));
    await fails({ selection: { ...allRows, query: { ...query, fields } } }, /Save the query again/);
  });

  it('binds values with any content', async () => {
    const rows = await exported(
      rangeOf(
        'events',
        String.raw`select 'it\'s "$1" \\ {x}' as text, properties['n'] as n from events where event in ('bought', '\'; drop')`,
      ),
    );
    expect(rows).toEqual([
      [`it's "$1" \\ {x}`, '2'],
      [`it's "$1" \\ {x}`, '4'],
    ]);
  });

  it('uses the index on the insertion time and reads persons one by one, without sorting', async () => {
    await database.pool.query(`
    insert into events (team_id, uuid, event, distinct_id, person_id, timestamp, inserted_at)
    select 4, gen_random_uuid(), 'e', 'd', gen_random_uuid(), t, t from generate_series(1, 30000) n,
      lateral (select timestamptz '2026-11-01Z' + n * interval '3 seconds' as t) times;
    insert into persons (team_id, id) select 4, gen_random_uuid() from generate_series(1, 5000);
    analyze events; analyze persons`);
    const relations = relationsOf(readSettings({ DATABASE_URL: database.url }));
    const range = {
      ...rangeOf('events', `select person.properties.plan as plan, event from events where event = 'e'`),
      team_id: 4,
    };
    const after = { inserted_at: '2026-11-01T10:30:00.000000Z', id: '00000000-0000-0000-0000-000000000000' };
    const plan = await inTransaction(database.pool, async (connection) => {
      const query = eventsQuery(relations, await eventColumnTypes(connection, relations), range);
      for (const [name, value] of Object.entries(statementSettings(query, range, { after })))
        await connection.query('select set_config($1, $2, true)', [name, value]);
      const { rows } = await connection.query<{ 'QUERY PLAN': string }>(
        `explain ${query.page(100, { after: true, until: false })}`,
      );
      return rows.map((row) => row['QUERY PLAN']).join('\n');
    });
    expect(plan).toMatch(/Index Scan using .*(inserted).* on events/);
    expect(plan).toMatch(/Index Scan using .* on persons/);
    expect(plan).not.toMatch(/-> +(Sort|Seq Scan)/);
  });
});

describe('an installation with other relations', () => {
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
          'team_id',
          'uuid',
          'event',
          'distinct_id',
          'person_id',
          'properties',
          'person_properties',
          'elements_chain',
          '"timestamp"',
          'created_at',
          'inserted_at',
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
});
