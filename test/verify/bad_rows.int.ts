import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createVerifyHarness, hours, teamId, type VerifyHarness } from './verify_harness.ts';

const formats = [
  { file_format: 'JSONLines', compression: 'gzip' },
  { file_format: 'CSV', compression: null },
  { file_format: 'Parquet', compression: 'zstd' },
];

/** What the first hour has besides its good rows: the first and the last row, two next to each other, and one with two bad columns. */
const bad = [
  { event: 'first', second: 0, columns: ['properties'] },
  { event: 'time', second: 1_000.5, columns: ['timestamp'] },
  { event: 'next', second: 1_000.500_001, columns: ['properties'] },
  { event: 'both', second: 2_000, columns: ['timestamp', 'properties'] },
  { event: 'raised', second: 2_500, columns: ['elements_chain'] },
  { event: 'damaged', second: 3_000, columns: ['person_properties'] },
  { event: 'last', second: 3_599.999_999, columns: ['person_id'] },
];
const eventsOf = (column: string): string =>
  bad.flatMap(({ event, columns }) => (columns.includes(column) ? [`'${event}'`] : [])).join(', ');
const goodRows = 300;

describe('rows that PostgreSQL cannot read', () => {
  let harness: VerifyHarness;
  beforeAll(async () => {
    harness = await createVerifyHarness(goodRows);
    const { pool } = harness.database;
    await pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select $1, gen_random_uuid(), event, 'd', '{"big": 12345678901234567890}', '2026-01-01T09:00:00Z',
         $2::timestamptz + second * interval '1 second' from unnest($3::text[], $4::float8[]) row(event, second)`,
      [teamId, hours[0]?.start, bad.map(({ event }) => event), bad.map(({ second }) => second)],
    );
    await pool.query(`create function fail(event text, state text, message text) returns text immutable language plpgsql as $$
        begin raise exception '%', message using errcode = state; end $$;
      alter table events rename to stored_events;
      create view events as select team_id, uuid, event, distinct_id,
        case when event in (${eventsOf('person_id')}) then 'none' else person_id::text end::uuid as person_id,
        case when event in (${eventsOf('properties')}) then '{broken' else properties::text end::json as properties,
        case when event in (${eventsOf('person_properties')}) then fail(event, 'XX001', 'missing chunk number 0') else null end::json as person_properties,
        case when event in (${eventsOf('elements_chain')}) then fail(event, 'P0001', 'not today') else elements_chain end as elements_chain,
        case when event in (${eventsOf('timestamp')}) then 'not a time' else timestamp::text end::timestamptz as timestamp,
        created_at, inserted_at from stored_events`);
  });
  afterAll(() => harness.close());

  it.each(formats)('are rejected with what can be read, and found in $file_format', async (format) => {
    const exported = await harness.exportHours({ config: { ...format, on_bad_row: 'reject' } });
    const manifest = await exported.manifest(0);
    expect(manifest).toMatchObject({
      rows: goodRows,
      rejected: bad.length,
      source_rows: goodRows + bad.length,
    });
    const rejected = (await harness.reader.textOf(manifest.rejected_file?.key ?? '')).trimEnd().split('\n');
    expect(rejected.map((line) => (JSON.parse(line) as { row: { event: string } }).row.event)).toEqual(
      bad.map(({ event }) => event),
    );
    expect(rejected.map((line) => JSON.parse(line) as unknown)).toEqual(
      bad.map(({ columns }) =>
        expect.objectContaining({
          column: expect.stringMatching(new RegExp(`^(?:${columns.join('|')})$`)),
          reason: expect.stringMatching(/^cannot be read by PostgreSQL \(.*, SQLSTATE \w{5}\)$/),
          row: expect.objectContaining(
            Object.fromEntries(columns.map((name) => [name, expect.stringMatching(/^left out: cannot/)])),
          ),
        }),
      ),
    );
    expect(rejected[1]).toContain('12345678901234567890');
    expect(await exported.verify()).toMatchObject({ ok: true, findings: [] });
    expect(await exported.verify({ deep: true })).toMatchObject({ ok: true, findings: [] });
  });

  it('do not matter to a query that reads none of their values', async () => {
    const exported = await harness.exportHours({
      config: { file_format: 'JSONLines', compression: null },
      query: 'select uuid, event, _inserted_at from events',
    });
    expect(await exported.manifest(0)).toMatchObject({ rows: goodRows + bad.length, rejected: 0 });
    expect(await exported.verify({ deep: true })).toMatchObject({ ok: true, findings: [] });
  });

  it('are rejected by a query that reads only a value of theirs', async () => {
    const exported = await harness.exportHours({
      config: { file_format: 'Parquet', compression: 'zstd', on_bad_row: 'reject' },
      query: 'select timestamp from events',
    });
    expect(await exported.manifest(0)).toMatchObject({ rows: goodRows + 5, rejected: 2 });
    expect(await exported.verify({ deep: true })).toMatchObject({ ok: true, findings: [] });
  });

  it('fail the run by default, which names the first of them', async () => {
    await expect(harness.exportHours({ config: formats[0] ?? {} })).rejects.toThrow(
      /^PostgreSQL cannot read a row of .*: invalid input syntax for type json, SQLSTATE 22P02\. It is the row [-\da-f]{36}, inserted at 2026-01-01T10:00:00\.000000Z: its column properties\. Correct/,
    );
  });
});

/**
 * Persons of the first hour, after many others: in tables as small as these alone, PostgreSQL reads all persons for each row, and
 * none can be blamed.
 */
async function insertPersons(
  { database: { pool } }: VerifyHarness,
  time: string,
  bad: string,
): Promise<void> {
  await pool.query(
    `insert into persons (team_id, id, properties, created_at, updated_at, version)
     select $1, md5(n::text)::uuid, '{}', now(), ${time}, n from generate_series(1, 3009) n`,
    [teamId, hours[0]?.start],
  );
  await pool.query(
    `insert into person_distinct_ids (team_id, distinct_id, person_id, version, updated_at)
     select $1, 'user ' || n, md5(n::text)::uuid, n, ${time} from generate_series(1, 3009) n`,
    [teamId, hours[0]?.start],
  );
  await pool.query(`alter table persons rename to stored_persons`);
  await pool.query(`create view persons as select team_id, id, case when version in (${bad}) then '{broken' else properties::text end::json as properties,
    created_at, updated_at, version, is_deleted from stored_persons`);
  await pool.query('analyze');
}

describe('persons that PostgreSQL cannot read', () => {
  let harness: VerifyHarness;
  beforeAll(async () => {
    harness = await createVerifyHarness(1);
    const time = `$2::timestamptz + case when n <= 9 then n * interval '1 minute' else - n * interval '1 minute' end`;
    await insertPersons(harness, time, '1, 5, 9');
  });
  afterAll(() => harness.close());

  it.each(formats)('are rejected with what can be read, and found in $file_format', async (format) => {
    const exported = await harness.exportHours({
      model: 'persons',
      config: { ...format, on_bad_row: 'reject' },
    });
    const manifest = await exported.manifest(0);
    expect(manifest).toMatchObject({ rows: 6, rejected: 3 });
    const rejected = (await harness.reader.textOf(manifest.rejected_file?.key ?? '')).trimEnd().split('\n');
    expect(rejected.map((line) => (JSON.parse(line) as { id: string }).id)).toEqual([
      'user 1',
      'user 5',
      'user 9',
    ]);
    expect(await exported.verify({ deep: true })).toMatchObject({ ok: true, findings: [] });
  });
});

describe('persons that PostgreSQL cannot read of one time', () => {
  let harness: VerifyHarness;
  beforeAll(async () => {
    harness = await createVerifyHarness(1);
    const time = `$2::timestamptz - case when n <= 9 then interval '0' else n * interval '1 minute' end`;
    await insertPersons(harness, time, '1, 2, 9');
  });
  afterAll(() => harness.close());

  it('are the only ones that are rejected', async () => {
    const exported = await harness.exportHours({ model: 'persons', config: { on_bad_row: 'reject' } });
    expect(await exported.manifest(0)).toMatchObject({ rows: 6, rejected: 3 });
    expect(await exported.verify({ deep: true })).toMatchObject({ ok: true, findings: [] });
  });
});
