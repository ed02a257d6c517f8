import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import { everyRow } from '../../src/source/row_selection.ts';
import type { RowRange, Source } from '../../src/source/source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { sourceOf } from '../source/rows.ts';
import { encodeRange, inflated, joinBlocks } from './files.ts';

const interval = { start: '2026-11-01T10:00:00Z', end: '2026-11-01T11:00:00Z' };
const nested = `${'{"a": ['.repeat(1_000)}1${']}'.repeat(1_000)}`;

/** Values that have broken exporters before, as SQL. */
const rows: { properties: string; text?: string; timestamp?: string }[] = [
  { properties: '{}' },
  { properties: 'null' },
  { properties: '{"id": 12345678901234567890, "price": 1.10, "tiny": 1e-300, "zero": -0}' },
  { properties: '{"__proto__": {"polluted": true}, "constructor": 1}' },
  { properties: '{"separator": "a\u2028b\u2029c", "emoji": "😀", "escaped": "\\n\\t\\"\\\\\\u0001"}' },
  { properties: nested },
  { properties: JSON.stringify({ large: 'z"\n'.repeat(1_700_000) }) },
  {
    properties: '{}',
    text: Array.from({ length: 128 }, (_, code) => String.fromCharCode(code + 1)).join(''),
  },
  { properties: '{}', text: '' },
  { properties: '{}', timestamp: '0001-01-01T00:00:00Z' },
  { properties: '{}', timestamp: '9999-12-31T23:59:59.999999Z' },
  { properties: '{}', timestamp: '1582-10-10T12:00:00.000001+05:30' },
];

let database: TestDatabase;
let source: Source;
const pool = createEncoderPool({ threads: 2 });
beforeAll(async () => {
  database = await createTestDatabase();
  // So small that the large row has a page of its own and the file is made of several blocks.
  source = sourceOf(database.url, { EXPORTD_PAGE_BYTES: 20_000 });
  for (const [index, { properties, text = 'text', timestamp = '2026-11-01T10:00:00Z' }] of rows.entries())
    await database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, elements_chain, properties, timestamp, inserted_at)
       values (1, gen_random_uuid(), $2, $2, $2, $3, $4, timestamptz '2026-11-01 10:00Z' + $1 * interval '1 second')`,
      [index, text, properties, timestamp],
    );
}, 60_000);
afterAll(async () => {
  await Promise.all([pool.close(), source.close()]);
  await database.drop();
});

const rangeOf = (model: RowRange['model'], team_id: number): RowRange => ({
  model,
  team_id,
  interval,
  selection: everyRow,
});

async function fileOf(range: RowRange, compression: 'gzip' | null): Promise<string> {
  const encoder = pool.fileEncoder(
    { file_format: 'JSONLines', compression, on_bad_row: 'fail' },
    await source.columns(range.model),
  );
  const file = await joinBlocks(encoder, await encodeRange(source, range, encoder));
  return inflated(file, compression).toString();
}

describe('a file', () => {
  it.each(['gzip', null] as const)(
    'holds the values that SQL itself gives, compression %s',
    async (compression) => {
      const text = await fileOf(rangeOf('events', 1), compression);
      const lines = text.split('\n').slice(0, -1);
      const expected = await database.pool.query<Record<string, string | null>>(
        `select uuid, event, distinct_id, elements_chain, properties::text, person_id, person_properties::text,
         to_char(timestamp at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as timestamp,
         to_char(inserted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as _inserted_at,
         to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as created_at
       from public.events where team_id = 1 order by inserted_at`,
      );
      expect(lines).toHaveLength(rows.length);
      expected.rows.forEach((row, index) => {
        const { properties, ...others } = row;
        const line = lines[index] ?? '';
        // The text of the JSON itself: a parsed value would have lost digits, and what `__proto__` names.
        expect(line.includes(`"properties":${properties ?? ''},"distinct_id"`)).toBe(true);
        expect(JSON.parse(line)).toMatchObject(others);
        expect(JSON.stringify((JSON.parse(line) as { properties: unknown }).properties)).toBe(
          JSON.stringify(JSON.parse(properties ?? '')),
        );
      });
    },
  );

  it.each([
    ['infinity', 2],
    ['-infinity', 3],
    ['10000-01-01Z', 4],
    ['0001-12-31Z BC', 5],
  ])('is refused for the time %s, with the row and the column', async (time, team_id) => {
    const { rows: inserted } = await database.pool.query<{ uuid: string }>(
      `insert into public.events (team_id, uuid, event, distinct_id, timestamp, created_at, inserted_at)
       values ($1, gen_random_uuid(), 'e', 'd', now(), $2, $3) returning uuid`,
      [team_id, time, interval.start],
    );
    await expect(fileOf(rangeOf('events', team_id), 'gzip')).rejects.toMatchObject({
      name: 'RowNotEncodable',
      row: inserted[0]?.uuid,
      column: 'created_at',
    });
  });

  it('keeps every digit of the versions of persons', async () => {
    await database.pool.query(
      `insert into public.persons (team_id, id, version, updated_at) values (1, '00000000-0000-4000-8000-000000000001', 9007199254740993, $1);`,
      [interval.start],
    );
    await database.pool.query(
      `insert into public.person_distinct_ids (team_id, distinct_id, person_id, version, updated_at)
       values (1, 'd"1', '00000000-0000-4000-8000-000000000001', -1, $1)`,
      [interval.start],
    );
    expect(await fileOf(rangeOf('persons', 1), null)).toMatch(
      /^\{"team_id":1,"distinct_id":"d\\"1",.*"person_distinct_id_version":-1,"person_version":9007199254740993,.*"is_deleted":false\}\n$/,
    );
  });
});
