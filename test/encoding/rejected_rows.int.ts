import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Model } from '../../src/domain/batch_export.ts';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import type { EncodedBlock, EncodingOptions } from '../../src/encoding/encoder.ts';
import { readRowQuery } from '../../src/source/row_query/read_row_query.ts';
import { allRows, fileColumns, type RowSelection } from '../../src/source/row_selection.ts';
import type { Source } from '../../src/source/source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { blocksOf, sourceOf } from '../source/rows.ts';
import { interval } from './edge_case_rows.ts';

/** Times that a format cannot represent, as PostgreSQL prints them. */
const infinite = ['infinity', '-infinity', '294276-12-31 23:59:59.999999+00'];
const outsideTextRange = [
  ...infinite,
  '10000-01-01 00:00:00+00',
  '0001-12-31 23:59:59.999999+00 BC',
  '4714-11-24 00:00:00+00 BC',
];
const properties = '{"id": 12345678901234567890, "price": 1.10}';

let database: TestDatabase;
let source: Source;
const pool = createEncoderPool({ threads: 1 });
const eventUuids: string[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
  source = sourceOf(database.url);
  // A valid row before and after each invalid one.
  for (const [index, time] of [
    '2026-11-01Z',
    ...outsideTextRange.flatMap((bad) => [bad, '2026-11-01Z']),
  ].entries()) {
    const { rows } = await database.pool.query<{ uuid: string }>(
      `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp, created_at, inserted_at)
       values (1, gen_random_uuid(), 'e', 'line' || chr(10) || 'break', $1, $2, $2, timestamptz '2026-11-01 10:00Z' + $3 * interval '1 second') returning uuid`,
      [properties, time, index],
    );
    eventUuids.push(rows[0]?.uuid ?? '');
  }
  await database.pool.query(
    `insert into public.persons (team_id, id, created_at, updated_at) values (1, '01234567-89ab-cdef-0123-456789abcdef', 'infinity', $1)`,
    [interval.start],
  );
  await database.pool.query(
    `insert into public.person_distinct_ids (team_id, distinct_id, person_id, updated_at)
     values (1, 'd"1', '01234567-89ab-cdef-0123-456789abcdef', $1)`,
    [interval.start],
  );
});
afterAll(async () => {
  await Promise.all([pool.close(), source.close()]);
  await database.drop();
});

async function encode(
  model: Model,
  options: EncodingOptions,
  selection: RowSelection = allRows,
): Promise<EncodedBlock> {
  const range = { model, team_id: 1, interval, selection };
  const [block, ...others] = await blocksOf(source, range);
  if (!block || others.length > 0) throw new Error('The rows are not in one block.');
  return pool.fileEncoder(options, fileColumns(block.columns)).encode(block);
}

const formats = [
  ['JSONLines', outsideTextRange, 'contains a time that is infinite or outside the years 0001 to 9999'],
  ['CSV', outsideTextRange, 'contains a time that is infinite or outside the years 0001 to 9999'],
  ['Parquet', infinite, 'contains a time that is infinite or after the year 294246'],
] as const;

describe.each(formats)('%s', (file_format, badTimes, reason) => {
  it('rejects rows that it cannot represent, and reports them completely', async () => {
    const block = await encode('events', { file_format, compression: null, on_bad_row: 'reject' });
    expect(block.rows).toBe(eventUuids.length - badTimes.length);
    expect(block.first).toMatchObject({ id: eventUuids[0] });
    expect(block.last).toMatchObject({ id: eventUuids.at(-1) });
    expect(block.rejected).toHaveLength(badTimes.length);
    for (const [index, time] of badTimes.entries()) {
      const id = eventUuids[index * 2 + 1];
      expect(block.rejected[index]).toEqual({ id, column: 'timestamp', reason, row: expect.any(String) });
      const row = block.rejected[index]?.row ?? '';
      expect(row).not.toContain('\n');
      expect(row).toContain(`"properties":${properties},"distinct_id":"line\\nbreak"`);
      expect(JSON.parse(row)).toMatchObject({
        uuid: id,
        timestamp: time,
        created_at: time,
        _inserted_at: `2026-11-01T10:00:${String(index * 2 + 1).padStart(2, '0')}.000000Z`,
        person_id: null,
      });
    }
  });

  it('fails with row and column if rows are not rejected', async () => {
    await expect(
      encode('events', { file_format, compression: null, on_bad_row: 'fail' }),
    ).rejects.toMatchObject({
      name: 'UnencodableRow',
      row: eventUuids[1],
      column: 'timestamp',
      reason,
    });
  });

  it("identifies an event by its uuid whatever a query selects, and reports the query's columns", async () => {
    const dialect_query = 'select event as uuid, toDate(timestamp) as day from events';
    const query = readRowQuery('events', { dialect_query, timezone: 'UTC', week_start_day: 'sunday' });
    const options = { file_format, compression: null, on_bad_row: 'reject' } as const;
    const { rows, rejected } = await encode('events', options, { ...allRows, query });
    // Parquet represents dates of any year.
    const bad = file_format === 'Parquet' ? infinite.slice(0, 2) : badTimes;
    expect(rows).toBe(eventUuids.length - bad.length);
    expect(rejected.map(({ id, column }) => [id, column])).toEqual(
      bad.map((_, index) => [eventUuids[index * 2 + 1], 'day']),
    );
    expect(JSON.parse(rejected[0]?.row ?? '')).toEqual({ uuid: 'e', day: 'infinity' });
  });

  it('identifies a person by its distinct id', async () => {
    const block = await encode('persons', { file_format, compression: null, on_bad_row: 'reject' });
    expect(block).toMatchObject({ rows: 0, rejected: [{ id: 'd"1', column: 'created_at', reason }] });
    expect(JSON.parse(block.rejected[0]?.row ?? '')).toMatchObject({ team_id: 1, created_at: 'infinity' });
  });
});
