import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import type { EncodingOptions } from '../../src/encoding/encoder.ts';
import { allRows, type ExportedColumn } from '../../src/source/row_selection.ts';
import type { Source } from '../../src/source/source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { casesOf } from '../setup/effort.ts';
import { blocksOf, sourceOf } from '../source/rows.ts';
import { startDuckDb, type IndependentReader } from './duckdb.ts';
import { decompress, joinBlocks } from './join_blocks.ts';
import { interval } from './edge_case_rows.ts';

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

describe('a property of 50 MB', () => {
  const compressions = [null, 'gzip', 'zstd', 'brotli'] as const;
  it.each(casesOf(['gzip'] as const, compressions))('in JSON lines, compression %s', async (compression) => {
    const { path } = await writeFile({ file_format: 'JSONLines', compression, on_bad_row: 'fail' });
    const lines = await duckDb.jsonTexts(path);
    expectSame(
      lines.map((line) => line.slice(line.indexOf('"properties":') + 13, line.indexOf(',"distinct_id"'))),
    );
  });

  const csv = ['CSV', 'csv'] as const;
  const parquet = ['Parquet', 'parquet'] as const;
  it.each(casesOf([parquet], [csv, parquet]))('in %s', async (file_format, reader) => {
    const { path, columns } = await writeFile({ file_format, compression: 'zstd', on_bad_row: 'fail' });
    expectSame((await duckDb[reader](path, columns)).map((row) => row[5]));
  });
});
