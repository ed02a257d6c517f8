import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import type { Model } from '../../src/domain/batch_export.ts';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import {
  parquetCompressions,
  textCompressions,
  type EncodingOptions,
  type FileEncoder,
} from '../../src/encoding/encoder.ts';
import { allRows, type ExportedColumn } from '../../src/source/row_selection.ts';
import type { Source } from '../../src/source/source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { blocksOf, sourceOf } from '../source/rows.ts';
import { startDuckDb, type IndependentReader, type RowTexts } from './duckdb.ts';
import { decompress, joinBlocks } from './join_blocks.ts';
import { createJsonViews, insertEdgeCaseEvents, insertEdgeCasePersons, interval } from './edge_case_rows.ts';

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
async function expectedRows(model: Model, team: number, times: 'text' | 'microseconds'): Promise<RowTexts[]> {
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

describe.each(cases)('$model whose JSON is $source', ({ source, model }) => {
  const team = teams[source];

  it.each([null, ...textCompressions])('as CSV, compression %s', async (compression) => {
    const options = { file_format: 'CSV', compression, ...onBadRow } as const;
    const { path, columns } = await writeFile(opened[source], model, team, options);
    expect(await duckDb.csv(path, columns)).toEqual(
      withoutLineBreaks(await expectedRows(model, team, 'text'), columns),
    );
  });

  it.each([null, ...parquetCompressions])('as Parquet, compression %s', async (compression) => {
    const options = { file_format: 'Parquet', compression, ...onBadRow } as const;
    const { path, columns } = await writeFile(opened[source], model, team, options);
    expect(await duckDb.parquet(path, columns)).toEqual(await expectedRows(model, team, 'microseconds'));
  });

  it.each([null, ...textCompressions])('as JSON lines, compression %s', async (compression) => {
    const options = { file_format: 'JSONLines', compression, ...onBadRow } as const;
    const { path, columns } = await writeFile(opened[source], model, team, options);
    const expected = withoutLineBreaks(await expectedRows(model, team, 'text'), columns);
    expect(await duckDb.jsonTexts(path)).toEqual(expected.map((row) => lineOf(row, columns)));
    // JSON values are compared above, because this reader rounds numbers.
    const withoutJson = (rows: readonly RowTexts[]): RowTexts[] =>
      rows.map((row) => row.filter((_, index) => columns[index]?.type !== 'json'));
    expect(withoutJson(await duckDb.jsonLines(path, columns))).toEqual(withoutJson(expected));
  });
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
    expect(rows.map((row): unknown => row.properties)).toEqual(
      [1, 2].map(() => JSON.parse(properties) as unknown),
    );
  });
});
