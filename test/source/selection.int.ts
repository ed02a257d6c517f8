import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { buildSelect } from '@exportd/dialect/ast_builders';
import { printQuery } from '@exportd/dialect/print';
import type { Model } from '../../src/domain/batch_export.ts';
import { classifyError, toApplicationFailure } from '../../src/failures/classify_error.ts';
import type { FilterOperator, PropertyFilter } from '../../src/filters/schema.ts';
import { filtersCondition } from '../../src/queries/property_filters.ts';
import { readRowQuery } from '../../src/source/row_query/selected_rows.ts';
import { allRows, type RowQuery, type RowSelection } from '../../src/source/row_selection.ts';
import type { RowRange, Source } from '../../src/source/source.ts';
import { comparable } from '../../src/dialect/test/chdb/batches.ts';
import { type FunctionCase, functionCases } from '../../src/dialect/test/chdb/function_cases.ts';
import { project, schema } from '../../src/dialect/test/project.ts';
import { rowsOf as rowsOfQuery } from '../../src/dialect/test/rows_of.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { randomCases } from '../setup/effort.ts';
import { blocksOf, rowsOf, sourceOf } from './rows.ts';

describe('selections', () => {
  const interval = { start: '2026-11-01T10:00:00Z', end: '2026-11-01T11:00:00Z' };
  const rangeOf = (selection: Partial<RowSelection>, model: Model = 'events'): RowRange => ({
    model,
    team_id: 1,
    interval,
    selection: { ...allRows, ...selection },
  });

  const keys = [
    'plain',
    '$os',
    `quo'te"`,
    'a.b',
    '__proto__',
    'ключ',
    ' ',
    '\\',
    '%',
    '0',
    "'; drop table x; --",
  ];
  const names = ['$pageview', `it's`, '', 'event', '{"a"}', 'a,b', 'NULL'];
  const texts = [
    '',
    'a',
    'A',
    'Äb',
    'äB',
    'abc',
    'a%c',
    'a_c',
    'axc',
    'ab\\',
    'line\nbreak',
    '😀',
    `'quoted'`,
    'null',
    'true',
    'True',
    'false',
    '5',
    '5.0',
    '05',
    '+5',
    '.5',
    '5.',
    '-5',
    '1e2',
    '5 ',
    '0x10',
    '-',
    '.',
    'e5',
    '2026-11-01',
    '2026-11-01T10:00:00Z',
    '2026-11-01 10:00',
    '2026-11-01T12:00:00.500+02:00',
    '2026-02-30',
    '2026-02-28',
    '0000-01-01',
    '2026-13-01',
    '2026-11-02T00:00:00Z',
    '2026-11-01T23:59:59.999Z',
  ];
  const numbers = [0, 5, 5.5, -1, 100, 0.25, 123_456_789];
  const scalar = fc.oneof(
    { arbitrary: fc.constantFrom(...texts), weight: 3 },
    fc.constantFrom(...numbers),
    fc.boolean(),
    fc.constant(null),
  );
  const property = fc.oneof({ arbitrary: scalar, weight: 8 }, fc.constantFrom([], {}, [1]));
  const document = fc
    .array(fc.tuple(fc.constantFrom(...keys), property), { maxLength: 12 })
    .map((entries) => Object.fromEntries(entries) as Record<string, unknown>);

  const oneOrMany = <Value>(value: fc.Arbitrary<Value>) => fc.oneof(value, fc.array(value, { maxLength: 3 }));
  /** A value, or a list with one at least that is not null. */
  const isComplete = (value: unknown): boolean =>
    Array.isArray(value) ? value.length === 0 || value.some((one) => one !== null) : value !== null;
  const textOrNumber = fc.constantFrom<string | number>(...texts, ...numbers);
  const bound = fc.constantFrom<string | number>('5', '-1', '1e2', ...numbers);
  const values: Record<string, fc.Arbitrary<PropertyFilter['value']>> = {
    equal: oneOrMany(scalar).filter(isComplete),
    part: oneOrMany(fc.oneof(textOrNumber, fc.boolean())),
    pattern: oneOrMany(
      fc.constantFrom(
        '^a',
        'b+',
        '[0-9]+$',
        'A|5',
        '.',
        '\\d',
        '(?:Ä|ä)',
        '^$',
        "'",
        '\\ba',
        '\\babc\\b',
        '^\\w+$',
        '\\W',
        '(?i)^A',
        '\\s',
        '[[:alpha:]]',
        '^[^\\d]*$',
      ),
    ),
    range: fc.tuple(bound, bound).map((pair) => [...pair]),
    date: oneOrMany(
      fc.constantFrom(
        '2026-11-01',
        '2026-11-01T10:00:00Z',
        '2026-11-01T10:00:00.500Z',
        '2026-02-28',
        '2026-11-02T00:00:00',
      ),
    ),
    none: fc.constant(null),
  };
  const kinds: Record<Exclude<FilterOperator, 'is_cleaned_path_exact'>, keyof typeof values> = {
    exact: 'equal',
    is_not: 'equal',
    in: 'equal',
    not_in: 'equal',
    icontains: 'part',
    not_icontains: 'part',
    regex: 'pattern',
    not_regex: 'pattern',
    gt: 'part',
    gte: 'part',
    lt: 'part',
    lte: 'part',
    min: 'part',
    max: 'part',
    between: 'range',
    not_between: 'range',
    is_date_exact: 'date',
    is_date_before: 'date',
    is_date_after: 'date',
    is_set: 'none',
    is_not_set: 'none',
  };
  const filterOf = (type: 'event' | 'person'): fc.Arbitrary<PropertyFilter> =>
    fc.constantFrom(...(Object.keys(kinds) as (keyof typeof kinds)[])).chain((operator) =>
      fc.record({
        type: fc.constant(type),
        key: fc.constantFrom(...keys, 'nowhere'),
        operator: fc.constant(operator),
        value: values[kinds[operator]] ?? fc.constant(null),
      }),
    );
  const someNames = fc.oneof(fc.constant([]), fc.subarray(names));
  const eventSelection: fc.Arbitrary<RowSelection> = fc.record({
    include_events: someNames,
    exclude_events: someNames,
    filters: fc.array(fc.oneof(filterOf('event'), filterOf('person')), { minLength: 1, maxLength: 2 }),
  });

  const rows = fc.sample(
    fc.record({
      event: fc.constantFrom(...names),
      properties: document,
      person_properties: fc.option(document),
    }),
    { numRuns: randomCases(150), seed: 4 },
  );

  let database: TestDatabase;
  /** Sources with `jsonb`, and with `json` that PostgreSQL cannot convert to text. */
  let sources: { jsonb: Source; json: Source; joined: Source };
  beforeAll(async () => {
    database = await createTestDatabase();
    await database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, person_properties, timestamp, inserted_at)
     select 1, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, row->>'event', 'd' || n,
       ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, row->'properties',
       nullif(row->'person_properties', 'null'), now(), timestamptz '2026-11-01 10:00Z' + n * interval '1 second'
     from jsonb_array_elements($1::jsonb) with ordinality as given (row, n)`,
      [JSON.stringify(rows)],
    );
    await database.pool.query(`
    insert into public.persons (team_id, id, properties, updated_at)
      select team_id, person_id, coalesce(person_properties, '{}'), inserted_at from public.events;
    insert into public.person_distinct_ids (team_id, distinct_id, person_id, updated_at)
      select team_id, distinct_id, person_id, inserted_at from public.events;
    create function public.hard(document jsonb) returns json language sql immutable as $$
      select case when document is not null then (
        '{"first": "\\u0000 \\\\\\\\u0000 \\\\\\ud800 \\ud83d\\ude00", "second": "\\udead\\udead", "third": 1e400, "plain":  "before"'
        || case document when '{}' then '}' else ', ' || substr(document::text, 2) end)::json end $$;
    create view public.json_events as select team_id, uuid, event, distinct_id, person_id,
      public.hard(properties) as properties, public.hard(person_properties) as person_properties,
      elements_chain, timestamp, created_at, inserted_at from public.events;
    create view public.plain_events as select team_id, uuid, event, distinct_id, person_id, properties,
      elements_chain, timestamp, created_at, inserted_at from public.events`);
    sources = {
      jsonb: sourceOf(database.url),
      json: sourceOf(database.url, { EXPORTD_EVENTS_RELATION: 'public.json_events' }),
      joined: sourceOf(database.url, { EXPORTD_EVENTS_RELATION: 'public.plain_events' }),
    };
  });
  afterAll(async () => {
    for (const source of Object.values(sources)) await source.close();
    await database.drop();
  });

  /** Positions of the rows that a source returns, from the last digits of their uuids or distinct ids. */
  async function selectedBy(source: Source, range: RowRange): Promise<number[]> {
    const selected = (await blocksOf(source, range)).flatMap(rowsOf);
    expect(await source.countRows(range)).toBe(selected.length);
    return selected
      .map(({ uuid, distinct_id }) =>
        typeof uuid === 'string' ? positionOf(uuid) : Number(String(distinct_id).slice(1)),
      )
      .sort((one, other) => one - other);
  }
  const positionOf = (id: unknown): number => Number(String(id).slice(-12));

  /** Positions of the rows that a query with the same conditions finds. */
  async function foundBy(
    { include_events, exclude_events, filters }: RowSelection,
    relation = 'events',
    scope: 'events' | 'persons' = 'events',
  ): Promise<number[]> {
    const type = relation === 'json_events' ? 'json' : 'jsonb';
    const columns = new Map([['properties', type]]);
    if (relation !== 'plain_events') columns.set('person_properties', type);
    const condition = filtersCondition(filters, { scope, attr: 'filters' }) ?? { value: true };
    const query =
      scope === 'events'
        ? buildSelect('select event, toString(uuid) from events where {condition} limit 10000', { condition })
        : buildSelect("select '', toString(id) from persons where {condition} limit 10000", { condition });
    const found = await rowsOfQuery(database.pool, printQuery(query), {
      ...project,
      teamId: 1,
      schema: {
        ...schema,
        properties: new Map(),
        events: { relation: `public.${relation}`, columns },
      },
    });
    return found
      .filter(
        ([event]) =>
          (include_events.length === 0 || include_events.includes(String(event))) &&
          !exclude_events.includes(String(event)),
      )
      .map(([, id]) => positionOf(id))
      .sort((one, other) => one - other);
  }

  describe('a selection finds the rows of a query with the same filters:', () => {
    it.each([
      ['of events', 'jsonb', 'events', 24],
      ['of events in json columns, whatever other fields contain', 'json', 'json_events', 12],
      ['of events that do not store person properties', 'joined', 'plain_events', 12],
    ] as const)('rows %s', async (_, source, relation, runs) => {
      await fc.assert(
        fc.asyncProperty(eventSelection, async (selection) => {
          expect(await selectedBy(sources[source], rangeOf(selection))).toEqual(
            await foundBy(selection, relation),
          );
        }),
        { numRuns: randomCases(runs) },
      );
    });

    it('rows of persons', async () => {
      await fc.assert(
        fc.asyncProperty(filterOf('person'), async (filter) => {
          const selection = { ...allRows, filters: [filter] };
          expect(await selectedBy(sources.jsonb, rangeOf(selection, 'persons'))).toEqual(
            await foundBy(selection, 'events', 'persons'),
          );
        }),
        { numRuns: randomCases(12) },
      );
    });
  });

  it('read the properties of the merged person where an event does not store them', async () => {
    // Three persons are now the third. One event stores the properties of its time; one has no mapping.
    const id = (number: number) => `00000000-0000-4000-8000-00000000000${number}`;
    await database.pool.query(
      `with people as (
       insert into public.persons (team_id, id, properties)
       select 2, ('00000000-0000-4000-8000-00000000000' || n)::uuid, jsonb_build_object('plan', 'plan ' || n)
       from generate_series(1, 3) n
     ), mapped as (
       insert into public.person_distinct_ids (team_id, distinct_id, person_id)
       select 2, 'd' || n, $2::uuid from generate_series(1, 3) n
     )
     insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, person_properties, timestamp, inserted_at)
     select 2, id, 'e', 'd' || n, id, '{}', case when n = 2 then '{"plan": "old"}'::jsonb end, now(), $1
     from generate_series(1, 4) n, lateral (select ('00000000-0000-4000-8000-00000000000' || n)::uuid as id) ids`,
      [interval.start, id(3)],
    );
    const selected = (filter: PropertyFilter) =>
      selectedBy(sources.jsonb, { ...rangeOf({ filters: [filter] }), team_id: 2 });
    const isPlan = (value: string): PropertyFilter => ({ type: 'person', key: 'plan', value });
    expect(await selected(isPlan('plan 1'))).toEqual([]);
    expect(await selected(isPlan('plan 3'))).toEqual([1, 3]);
    expect(await selected(isPlan('old'))).toEqual([2]);
    expect(await selected({ type: 'person', key: 'plan', operator: 'is_not_set' })).toEqual([4]);
    expect(await selected({ type: 'event_metadata', key: 'person_id', value: id(3) })).toEqual([1, 2, 3]);
  });

  describe('a stored filter that cannot be compiled', () => {
    it.each<[PropertyFilter, string]>([
      [{ type: 'event', key: 'plain', operator: 'regex', value: 'a(' }, 'filters.0.value'],
      [{ type: 'event', key: 'plain', operator: 'exact', value: null }, 'filters.0.value'],
      [{ type: 'event', key: 'plain', operator: 'is_cleaned_path_exact', value: '/a' }, 'filters.0.operator'],
    ])('fails permanently, with the name of the field: %j', async (filter, field) => {
      const error: unknown = await sources.jsonb
        .countRows(rangeOf({ filters: [filter] }))
        .catch((thrown: unknown) => thrown);
      expect(toApplicationFailure(error)).toMatchObject({
        type: 'UnsupportedSelection',
        nonRetryable: true,
        message: expect.stringContaining(`'${field}'`),
      });
    });

    it.each<Partial<RowSelection>>([
      { include_events: ['a'] },
      { exclude_events: ['a'] },
      { filters: [{ type: 'event', key: 'a', operator: 'is_set', value: null }] },
    ])('of events is rejected for persons: %j', async (selection) => {
      await expect(sources.jsonb.countRows(rangeOf(selection, 'persons'))).rejects.toMatchObject({
        name: 'UnsupportedSelection',
      });
    });
  });
});

describe('an export with a query', () => {
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
      if (error instanceof Error && error.name === 'DialectError') return null;
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

  it('has the same results of functions as queries', async () => {
    expect(exportable.length).toBeGreaterThan(400);
    for (const cases of batches) {
      const query = queryOf(cases.map(({ expression }) => expression));
      const range = { model: 'events', team_id: 1, interval, selection: { ...allRows, query } } as const;
      const [block] = await blocksOf(source, range);
      const [row] = block ? rowsOf(block) : [];
      const found = cases.map(({ expression, value }, index) => [
        expression,
        shown(row?.[`c${index}`], value),
      ]);
      expect(found).toEqual(cases.map(({ expression, value }) => [expression, comparable(value)]));
    }
  });
});

describe('a statement that PostgreSQL rejects', () => {
  const rangeOf = (selection: Partial<RowSelection>): RowRange => ({
    model: 'events',
    team_id: 1,
    interval: { start: '2026-11-01T10:00:00Z', end: '2026-11-01T11:00:00Z' },
    selection: { ...allRows, ...selection },
  });
  const filtered = rangeOf({
    filters: [{ type: 'event_metadata', key: 'event', operator: 'regex', value: '^s' }],
  });

  let database: TestDatabase;
  let source: Source;
  beforeAll(async () => {
    database = await createTestDatabase();
    // Rows can be read, but their events cannot be matched with a regular expression.
    await database.pool.query(
      `create view odd_events as select * from events;
     insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     values (1, gen_random_uuid(), 'signup', 'ada', '{}', now(), '2026-11-01 10:30Z');
     create schema odd;
     create function odd.reject(text, text) returns boolean language plpgsql as
       $$ begin raise exception 'There is no such operator.' using errcode = 'undefined_function'; end $$;
     create operator odd.~ (leftarg = text, rightarg = text, function = odd.reject);
     do $$ begin execute format('alter database %I set search_path = odd, pg_catalog, public', current_database()); end $$`,
    );
    source = sourceOf(database.url, { EXPORTD_EVENTS_RELATION: 'odd_events' });
  });
  afterAll(async () => {
    await source.close();
    await database.drop();
  });

  const rejectionOf = async (read: () => Promise<unknown>) =>
    classifyError(
      await read().then(
        () => undefined,
        (error: unknown) => error,
      ),
    );

  it.each([
    ['a count', () => source.countRows(filtered)],
    ['a fingerprint', () => source.fingerprint(filtered)],
    ['a page', () => blocksOf(source, filtered)],
  ])("is the tenant's fault if only its filters are rejected: %s", async (_, read) => {
    const rejection = await rejectionOf(read);
    expect(rejection).toMatchObject({ type: 'SelectionRejected', owner: 'tenant', permanent: true });
    expect(rejection.message).toContain('42883');
  });

  it("is the tenant's fault if its query exceeds a limit of PostgreSQL", async () => {
    const row = `(${Array.from({ length: 1_700 }, () => 'event').join(', ')})`;
    const dialect_query = `select event from events where ${row} in (${row})`;
    const query = readRowQuery('events', { dialect_query, timezone: 'UTC', week_start_day: 'sunday' });
    const rejection = await rejectionOf(() => blocksOf(source, rangeOf({ query })));
    expect(rejection).toMatchObject({ type: 'SelectionRejected', owner: 'tenant', permanent: true });
    expect(rejection.message).toContain('54011');
  });

  it('leaves exports without filters alone', async () => {
    expect(await source.countRows(rangeOf({}))).toBe(1);
  });

  it.each([
    ['a missing column', 'alter view odd_events rename column uuid to identifier'],
    ['a missing relation', 'alter view odd_events rename column identifier to uuid; drop view odd_events'],
  ])("is the operator's fault otherwise: %s", async (_, change) => {
    await database.pool.query(change);
    expect(await rejectionOf(() => source.countRows(filtered))).toMatchObject({
      owner: 'operator',
      permanent: false,
    });
  });
});

describe('a value that PostgreSQL cannot compute', () => {
  const rangeOf = (value: string): RowRange => ({
    model: 'events',
    team_id: 1,
    interval: { start: '2026-11-01T10:00:00Z', end: '2026-11-01T11:00:00Z' },
    selection: { ...allRows, filters: [{ type: 'event_metadata', key: 'event', operator: 'regex', value }] },
  });
  const unfiltered = { ...rangeOf(''), selection: allRows };

  let database: TestDatabase;
  let source: Source;
  beforeAll(async () => {
    database = await createTestDatabase();
    // One event has a time that is none, and none can be matched with the regular expression `never`.
    await database.pool.query(
      `create view cast_events as select team_id, uuid, event, distinct_id, person_id, properties, person_properties,
         elements_chain, timestamp, (properties->>'created')::timestamptz as created_at, inserted_at from events;
       insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select 1, gen_random_uuid(), event, 'ada', jsonb_build_object('created', created), now(), at
       from (values ('signup', 'today', timestamptz '2026-11-01 10:10Z'), ('broken', 'no time', '2026-11-01 10:30Z'))
         as row (event, created, at);
       create schema odd;
       create function odd.reject(text, pattern text) returns boolean language plpgsql as $$ begin
         if position('never' in pattern) > 0 then raise exception 'No.' using errcode = 'invalid_text_representation'; end if;
         return $1 operator(pg_catalog.~) pattern; end $$;
       create operator odd.~ (leftarg = text, rightarg = text, function = odd.reject);
       do $$ begin execute format('alter database %I set search_path = odd, pg_catalog, public', current_database()); end $$`,
    );
    source = sourceOf(database.url, { EXPORTD_EVENTS_RELATION: 'cast_events' });
  });
  afterAll(async () => {
    await source.close();
    await database.drop();
  });

  const failureOf = async (range: RowRange) => {
    const error: unknown = await blocksOf(source, range).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    return classifyError(error);
  };

  it.each([
    ['without a selection', unfiltered],
    ['whatever an export selects', rangeOf('broken')],
  ])("is the operator's fault, one for all exports: %s", async (_, range) => {
    expect(await failureOf(range)).toEqual({
      type: 'InvalidSourceValue',
      message: expect.stringMatching(
        /^PostgreSQL cannot read a row of "cast_events", .*22007\. It is the row /,
      ),
      owner: 'operator',
      permanent: false,
    });
  });

  it('does not matter to an export that does not select it', async () => {
    const blocks = await blocksOf(source, rangeOf('signup'));
    expect(blocks.flatMap(rowsOf)).toHaveLength(1);
  });

  it("is the tenant's fault if only the export's filters fail", async () => {
    await database.pool.query(`delete from events where event = 'broken'`);
    expect(await failureOf(rangeOf('never'))).toMatchObject({
      type: 'DataException',
      owner: 'tenant',
      permanent: true,
    });
  });
});
