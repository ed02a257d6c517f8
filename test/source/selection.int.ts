import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { toApplicationFailure } from '../../src/failures/classify_error.ts';
import {
  allRows,
  type PropertyFilter,
  type PropertyOperator,
  type RowSelection,
} from '../../src/source/row_selection.ts';
import type { Model } from '../../src/domain/batch_export.ts';
import type { RowRange, Source } from '../../src/source/source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { blocksOf, rowsOf, sourceOf } from './rows.ts';
import { isSelected } from './reference_selection.ts';
import { randomCases } from '../setup/effort.ts';

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
  ...['', 'a', 'A', 'Äb', 'äB', 'abc', 'a%c', 'a_c', 'axc', 'ab\\', 'line\nbreak', '😀', `'quoted'`, 'null'],
  ...['true', 'True', 'false', '5', '5.0', '05', '+5', '.5', '5.', '-5', '1e2', '5 ', '0x10', '-', '.', 'e5'],
  ...['2026-11-01', '2026-11-01T10:00:00Z', '2026-11-01 10:00', '2026-11-01T12:00:00.500+02:00'],
  ...[
    '2026-02-30',
    '2026-02-28',
    '0000-01-01',
    '2026-13-01',
    '2026-11-02T00:00:00Z',
    '2026-11-01T23:59:59.999Z',
  ],
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
const textOrNumber = fc.constantFrom<string | number>(...texts, ...numbers);
const values: Record<string, fc.Arbitrary<PropertyFilter['value']>> = {
  equal: oneOrMany(scalar),
  part: oneOrMany(textOrNumber),
  pattern: oneOrMany(fc.constantFrom('^a', 'b+', '[0-9]+$', 'A|5', '.', '\\d', '(?:Ä|ä)', '^$', "'")),
  range: fc.tuple(textOrNumber, textOrNumber),
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
const kinds: Record<PropertyOperator, keyof typeof values> = {
  exact: 'equal',
  is_not: 'equal',
  in: 'equal',
  not_in: 'equal',
  icontains: 'part',
  not_icontains: 'part',
  is_cleaned_path_exact: 'equal',
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
const filterOf = (type: PropertyFilter['type']): fc.Arbitrary<PropertyFilter> =>
  fc.constantFrom(...(Object.keys(kinds) as PropertyOperator[])).chain((operator) =>
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
  return selected.map(({ uuid, distinct_id }) =>
    typeof uuid === 'string' ? Number(uuid.slice(-12)) : Number(String(distinct_id).slice(1)),
  );
}
const positions = (of: readonly boolean[]): number[] =>
  of.flatMap((selected, index) => (selected ? [index + 1] : []));

describe('a selection', () => {
  it('of events selects the same rows as the reference implementation', async () => {
    await fc.assert(
      fc.asyncProperty(eventSelection, async (selection) => {
        const expected = rows.map((row) => isSelected(selection, row));
        expect(await selectedBy(sources.jsonb, rangeOf(selection))).toEqual(positions(expected));
      }),
      { numRuns: randomCases(48) },
    );
  });

  it('of events in json columns selects the same rows, whatever other fields contain', async () => {
    await fc.assert(
      fc.asyncProperty(eventSelection, async (selection) => {
        const expected = rows.map(({ event, properties, person_properties }) =>
          isSelected(selection, {
            event,
            properties: { plain: 'before', ...properties },
            person_properties: person_properties && { plain: 'before', ...person_properties },
          }),
        );
        expect(await selectedBy(sources.json, rangeOf(selection))).toEqual(positions(expected));
      }),
      { numRuns: randomCases(24) },
    );
  });

  it('by person properties reads the persons if events do not store them', async () => {
    await fc.assert(
      fc.asyncProperty(filterOf('person'), async (filter) => {
        const expected = rows.map((row) => isSelected({ ...allRows, filters: [filter] }, row));
        expect(await selectedBy(sources.joined, rangeOf({ filters: [filter] }))).toEqual(positions(expected));
      }),
      { numRuns: randomCases(12) },
    );
  });

  it('of persons uses their properties', async () => {
    await fc.assert(
      fc.asyncProperty(filterOf('person'), async (filter) => {
        const expected = rows.map((row) => isSelected({ ...allRows, filters: [filter] }, row));
        expect(await selectedBy(sources.jsonb, rangeOf({ filters: [filter] }, 'persons'))).toEqual(
          positions(expected),
        );
      }),
      { numRuns: randomCases(12) },
    );
  });

  it('compares numbers beyond the precision of doubles', async () => {
    await database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select 2, gen_random_uuid(), 'e', 'd', properties::jsonb, now(), $1 from unnest($2::text[]) properties`,
      [interval.start, ['{"n": 12345678901234567890}', '{"n": 12345678901234567891}', '{"n": "1e99999"}']],
    );
    const count = (filter: Omit<PropertyFilter, 'type' | 'key'>) =>
      sources.jsonb.countRows({
        ...rangeOf({ filters: [{ type: 'event', key: 'n', ...filter }] }),
        team_id: 2,
      });
    expect(await count({ operator: 'gt', value: '12345678901234567890' })).toBe(1);
    expect(await count({ operator: 'exact', value: '12345678901234567890.0' })).toBe(1);
    expect(await count({ operator: 'exact', value: '1e99999' })).toBe(1);
  });

  it('fails with a message about the filters when PostgreSQL rejects a regular expression', async () => {
    const filters: PropertyFilter[] = [{ type: 'event', key: 'plain', operator: 'regex', value: 'a(' }];
    const error: unknown = await sources.jsonb
      .countRows(rangeOf({ filters }))
      .catch((thrown: unknown) => thrown);
    expect(toApplicationFailure(error)).toMatchObject({
      type: 'InvalidRegularExpression',
      nonRetryable: true,
      message: expect.stringMatching(/'filters'/),
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
