import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import type { Model } from '../../src/domain/batch_export.ts';
import {
  type EncodedBlock,
  type EncodingOptions,
  type FileEncoder,
  parquetCompressions,
  textCompressions,
} from '../../src/encoding/encoder.ts';
import { readRowQuery } from '../../src/source/row_query/selected_rows.ts';
import {
  allRows,
  type ExportedColumn,
  type RowSelection,
  fileColumns,
} from '../../src/source/row_selection.ts';
import type { Source } from '../../src/source/source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { casesOf } from '../setup/effort.ts';
import { blocksOf, sourceOf } from '../source/rows.ts';
import { type IndependentReader, type RowTexts, startDuckDb } from './duckdb.ts';
import { createJsonViews, insertEdgeCaseEvents, insertEdgeCasePersons, interval } from './edge_case_rows.ts';
import { decompress, joinBlocks } from './join_blocks.ts';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';

describe('what DuckDB reads', () => {
  const sources = ['jsonb', 'json'] as const;
  const models = ['events', 'persons'] as const;
  const teams = { jsonb: 1, json: 2 };

  let database: TestDatabase;
  let opened: Record<(typeof sources)[number], Source>;
  let duckDb: IndependentReader;
  let folder: string;
  const pool = createEncoderPool({ threads: 2 });
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'exportd-formats-'));
    duckDb = await startDuckDb();
    database = await createTestDatabase();
    await createJsonViews(database.pool);
    await insertEdgeCaseEvents(database.pool, teams.jsonb, 'events');
    await insertEdgeCaseEvents(database.pool, teams.json, 'json_events');
    await insertEdgeCasePersons(database.pool, teams.jsonb, 'persons');
    await insertEdgeCasePersons(database.pool, teams.json, 'json_persons');
    opened = {
      jsonb: sourceOf(database.url),
      json: sourceOf(database.url, {
        EXPORTD_EVENTS_RELATION: 'public.json_events',
        EXPORTD_PERSONS_RELATION: 'public.json_persons',
      }),
    };
  });
  afterAll(async () => {
    duckDb.close();
    await Promise.all([pool.close(), opened.json.close(), opened.jsonb.close()]);
    await database.drop();
    rmSync(folder, { recursive: true });
  });

  /** Writes a file of several blocks. Brotli is decompressed, because DuckDB does not read it. */
  async function writeFile(
    source: Source,
    model: Model,
    team_id: number,
    options: EncodingOptions,
    blockBytes = 20_000,
  ): Promise<{ path: string; columns: readonly ExportedColumn[] }> {
    const columns = source.columns(model);
    const encoder: FileEncoder = pool.fileEncoder(options, columns);
    const range = { model, team_id, interval, selection: allRows };
    const blocks = await blocksOf(source, range, { blockBytes });
    expect(blocks.length).toBeGreaterThan(1);
    const file = await joinBlocks(encoder, await Promise.all(blocks.map((block) => encoder.encode(block))));
    const isBrotli = options.file_format !== 'Parquet' && options.compression === 'brotli';
    const extension = isBrotli ? encoder.extension.slice(0, -'.br'.length) : encoder.extension;
    const path = join(folder, `${model}.${extension}`);
    writeFileSync(path, isBrotli ? decompress(file, 'brotli') : file);
    return { path, columns };
  }

  /** The expected rows as strings, from SQL. */
  async function expectedRows(
    model: Model,
    team: number,
    times: 'text' | 'microseconds',
  ): Promise<RowTexts[]> {
    const json = team === teams.jsonb ? '' : 'json_';
    const timeOf = (column: string): string =>
      times === 'text'
        ? `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
        : `(extract(epoch from ${column}) * 1000000)::bigint::text`;
    const statement =
      model === 'events'
        ? `select uuid::text, ${timeOf('timestamp')}, ${timeOf('inserted_at')}, ${timeOf('created_at')}, event,
           properties::text, distinct_id, elements_chain, person_properties::text, person_id::text
         from public.${json}events where team_id = ${team} order by inserted_at`
        : `select m.team_id::text, m.distinct_id, p.id::text, p.properties::text, m.version::text, p.version::text,
           ${timeOf('p.created_at')}, ${timeOf('greatest(p.updated_at, m.updated_at)')}, (p.is_deleted or m.is_deleted)::text
         from public.${json}persons p join public.person_distinct_ids m on m.person_id = p.id and m.team_id = p.team_id
         where p.team_id = ${team} order by greatest(p.updated_at, m.updated_at), m.distinct_id collate "C"`;
    const { rows } = await database.pool.query<(string | null)[]>({ text: statement, rowMode: 'array' });
    expect(rows.length).toBeGreaterThan(1);
    return rows;
  }

  /** The same without line breaks between JSON tokens. */
  const withoutLineBreaks = (rows: readonly RowTexts[], columns: readonly ExportedColumn[]): RowTexts[] =>
    rows.map((row) =>
      row.map((value, index) =>
        columns[index]?.type === 'json' ? (value?.replaceAll(/[\r\n]/g, '') ?? null) : value,
      ),
    );

  const lineOf = (row: RowTexts, columns: readonly ExportedColumn[]): string => {
    const fields = columns.map(({ name, type }, index) => {
      const value = row[index] ?? null;
      const quoted = type === 'text' || type === 'uuid' || type === 'timestamp';
      return `${JSON.stringify(name)}:${quoted || value === null ? JSON.stringify(value) : value}`;
    });
    return `{${fields.join(',')}}`;
  };

  const cases = sources.flatMap((source) => models.map((model) => ({ source, model })));
  const onBadRow = { on_bad_row: 'fail' } as const;

  describe.each(cases)('of $model whose JSON is $source', ({ source, model }) => {
    const team = teams[source];
    // Bytes are compressed alike, whatever was encoded.
    const compressionsOf = <Compression>(all: readonly Compression[]): readonly (Compression | null)[] =>
      casesOf(source === 'jsonb' && model === 'events' ? [null, ...all] : [null], [null, ...all]);

    it.each(compressionsOf(textCompressions))(
      'is what PostgreSQL has, from CSV, compression %s',
      async (compression) => {
        const options = { file_format: 'CSV', compression, ...onBadRow } as const;
        const { path, columns } = await writeFile(opened[source], model, team, options);
        expect(await duckDb.csv(path, columns)).toEqual(
          withoutLineBreaks(await expectedRows(model, team, 'text'), columns),
        );
      },
    );

    it.each(compressionsOf(parquetCompressions))(
      'is what PostgreSQL has, from Parquet, compression %s',
      async (compression) => {
        const options = { file_format: 'Parquet', compression, ...onBadRow } as const;
        const { path, columns } = await writeFile(opened[source], model, team, options);
        expect(await duckDb.parquet(path, columns)).toEqual(await expectedRows(model, team, 'microseconds'));
      },
    );

    it.each(compressionsOf(textCompressions))(
      'is what PostgreSQL has, from JSON lines, compression %s',
      async (compression) => {
        const options = { file_format: 'JSONLines', compression, ...onBadRow } as const;
        const { path, columns } = await writeFile(opened[source], model, team, options);
        const expected = withoutLineBreaks(await expectedRows(model, team, 'text'), columns);
        expect(await duckDb.jsonTexts(path)).toEqual(expected.map((row) => lineOf(row, columns)));
        // JSON values are compared above, because this reader rounds numbers.
        const withoutJson = (rows: readonly RowTexts[]): RowTexts[] =>
          rows.map((row) => row.filter((_, index) => columns[index]?.type !== 'json'));
        expect(withoutJson(await duckDb.jsonLines(path, columns))).toEqual(withoutJson(expected));
      },
    );
  });

  describe('lone surrogates, which JSON allows and DuckDB rejects', () => {
    const properties = '{"lone": "\\ud800", "reversed": "\\udc00\\ud800"}';
    const team = 3;
    beforeAll(async () => {
      for (const second of [1, 2])
        await database.pool.query(
          `insert into public.json_events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
         values ($1, gen_random_uuid(), 'e', 'd', $2, now(), timestamptz '2026-11-01 10:00Z' + $3 * interval '1 second')`,
          [team, properties, second],
        );
    });
    const writeOptions = { compression: null, on_bad_row: 'fail' } as const;

    it('are kept in JSON lines', async () => {
      const options = { file_format: 'JSONLines', ...writeOptions } as const;
      const { path } = await writeFile(opened.json, 'events', team, options, 1);
      const lines = readFileSync(path, 'utf8').trim().split('\n');
      expect(lines).toHaveLength(2);
      for (const line of lines) {
        expect(line).toContain(`"properties":${properties},`);
        expect(JSON.parse(line)).toMatchObject({ properties: { lone: '\ud800' } });
      }
    });

    it('are kept in CSV', async () => {
      const options = { file_format: 'CSV', ...writeOptions } as const;
      const { path, columns } = await writeFile(opened.json, 'events', team, options, 1);
      expect(await duckDb.csv(path, columns)).toEqual(await expectedRows('events', team, 'text'));
    });

    it('are kept in Parquet', async () => {
      const options = { file_format: 'Parquet', ...writeOptions } as const;
      const { path } = await writeFile(opened.json, 'events', team, options, 1);
      const rows = await parquetReadObjects({ file: await asyncBufferFromFile(path) });
      expect(rows.map((row): unknown => JSON.parse(String(row.properties)))).toEqual(
        [1, 2].map(() => JSON.parse(properties) as unknown),
      );
    });
  });
});

describe('a property of 50 MB', () => {
  let database: TestDatabase;
  let source: Source;
  let duckDb: IndependentReader;
  let folder: string;
  let expected: (string | null)[];
  const pool = createEncoderPool({ threads: 2 });
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'exportd-huge-'));
    duckDb = await startDuckDb();
    database = await createTestDatabase();
    source = sourceOf(database.url);
    // A small row, one with 50 MB of JSON in a property, a small row.
    await database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     select 1, gen_random_uuid(), 'e', 'd', jsonb_build_object('large', repeat('z"' || chr(10), size)), now(),
       timestamptz '2026-11-01 10:00Z' + position * interval '1 second'
     from unnest(array[1, 10000000, 2]) with ordinality as sizes (size, position)`,
    );
    const { rows } = await database.pool.query<{ properties: string }>(
      `select properties::text from public.events where team_id = 1 order by inserted_at`,
    );
    expected = rows.map(({ properties }) => properties);
  });
  afterAll(async () => {
    duckDb.close();
    await Promise.all([pool.close(), source.close()]);
    await database.drop();
    rmSync(folder, { recursive: true });
  });

  async function writeFile(
    options: EncodingOptions,
  ): Promise<{ path: string; columns: readonly ExportedColumn[] }> {
    const columns = source.columns('events');
    const encoder = pool.fileEncoder(options, columns);
    const range = { model: 'events', team_id: 1, interval, selection: allRows } as const;
    const encoding = (await blocksOf(source, range)).map((block) => encoder.encode(block));
    const file = await joinBlocks(encoder, await Promise.all(encoding));
    const path = join(folder, `events.${encoder.extension.replace(/\.br$/, '')}`);
    writeFileSync(path, path.endsWith(encoder.extension) ? file : decompress(file, 'brotli'));
    return { path, columns };
  }

  /** Fails without printing a difference of 50 MB. */
  const expectSame = (values: (string | null | undefined)[]): void => {
    expect(values.map((value) => value?.length)).toEqual(expected.map((value) => value?.length));
    expect(values.every((value, index) => value === expected[index])).toBe(true);
  };

  const compressions = [null, 'gzip', 'zstd', 'brotli'] as const;
  it.each(casesOf(['gzip'] as const, compressions))(
    'is read back from JSON lines, compression %s',
    async (compression) => {
      const { path } = await writeFile({ file_format: 'JSONLines', compression, on_bad_row: 'fail' });
      const lines = await duckDb.jsonTexts(path);
      expectSame(
        lines.map((line) => line.slice(line.indexOf('"properties":') + 13, line.indexOf(',"distinct_id"'))),
      );
    },
  );

  const csv = ['CSV', 'csv'] as const;
  const parquet = ['Parquet', 'parquet'] as const;
  it.each(casesOf([parquet], [csv, parquet]))('is read back from %s', async (file_format, reader) => {
    const { path, columns } = await writeFile({ file_format, compression: 'zstd', on_bad_row: 'fail' });
    expectSame((await duckDb[reader](path, columns)).map((row) => row[5]));
  });
});

describe('rejected rows', () => {
  /** Times that files have not, as PostgreSQL prints them. */
  const badTimes = [
    'infinity',
    '-infinity',
    '294276-12-31 23:59:59.999999+00',
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
      ...badTimes.flatMap((bad) => [bad, '2026-11-01Z']),
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

  const reason = 'contains a time that is infinite or outside the years 0001 to 9999';

  describe.each(['JSONLines', 'CSV', 'Parquet'] as const)('the encoder of %s', (file_format) => {
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
      expect(rows).toBe(eventUuids.length - badTimes.length);
      expect(rejected.map(({ id, column }) => [id, column])).toEqual(
        badTimes.map((_, index) => [eventUuids[index * 2 + 1], 'day']),
      );
      expect(JSON.parse(rejected[0]?.row ?? '')).toEqual({ uuid: 'e', day: 'infinity' });
    });

    it('identifies a person by its distinct id', async () => {
      const block = await encode('persons', { file_format, compression: null, on_bad_row: 'reject' });
      expect(block).toMatchObject({ rows: 0, rejected: [{ id: 'd"1', column: 'created_at', reason }] });
      expect(JSON.parse(block.rejected[0]?.row ?? '')).toMatchObject({ team_id: 1, created_at: 'infinity' });
    });
  });
});
