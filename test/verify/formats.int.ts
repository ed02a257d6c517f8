import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DuckDBInstance } from '@duckdb/node-api';
import type { FindingKind, VerificationReport } from '../../src/verify/report.ts';
import { casesOf } from '../setup/effort.ts';
import {
  createVerifyHarness,
  crc32Of,
  hours,
  teamId,
  type Exported,
  type VerifyHarness,
} from './verify_harness.ts';

// These files are written by other programs than exportd, from PostgreSQL's values.

const names = [
  'uuid',
  'timestamp',
  '_inserted_at',
  'created_at',
  'event',
  'properties',
  'distinct_id',
  'elements_chain',
  'person_properties',
  'person_id',
];
type Row = Record<string, string | null>;

let harness: VerifyHarness;
let rows: Row[];
beforeAll(async () => {
  harness = await createVerifyHarness(400);
  const { pool } = harness.database;
  await pool.query(
    `update events set elements_chain = case when number % 2 = 0 then E'a, "b"\\r\\n\\U0001F600' else '' end,
       person_id = case when number % 3 = 0 then gen_random_uuid() end,
       person_properties = case when number % 2 = 0 then '{"n": 9007199254740993.10}'::jsonb end,
       timestamp = case when number % 4 = 0 then timestamptz '0001-01-01 00:00:00.000001Z' else timestamp end
     from (select ctid as row_location, row_number() over () as number from events) numbered where events.ctid = row_location`,
  );
  const time = (name: string) =>
    `to_char(${name} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as ${name}`;
  const found = await pool.query<Row>(
    `select uuid::text, ${time('timestamp')}, ${time('inserted_at')}, ${time('created_at')}, event, properties::text,
       distinct_id, elements_chain, person_properties::text, person_id::text
     from events where team_id = $1 and inserted_at >= $2 and inserted_at < $3 order by events.inserted_at, events.uuid`,
    [teamId, hours[0]?.start, hours[0]?.end],
  );
  rows = found.rows.map(({ inserted_at, ...row }) => ({ ...row, _inserted_at: inserted_at ?? null }));
});
afterAll(() => harness.close());

const kindsOf = ({ findings }: VerificationReport): FindingKind[] => findings.map(({ kind }) => kind);

/** Replaces the file of the first hour. */
async function replaceFile(
  exported: Exported,
  extension: string,
  bytes: Buffer,
  written: readonly Row[],
): Promise<void> {
  const manifest = await exported.manifest(0);
  const keys = written.map(({ _inserted_at, uuid }) => ({ inserted_at: _inserted_at ?? '', id: uuid ?? '' }));
  const fingerprint = await harness.fingerprintOf(keys, manifest);
  const summary = { rows: written.length, bytes: bytes.length, fingerprint };
  const files = manifest.files.map((file) => {
    const key = file.key.replace(/\.[^/]*$/, extension);
    return { ...file, ...summary, key, crc32: crc32Of(bytes) };
  });
  await harness.putObject(files[0]?.key ?? '', bytes);
  await exported.putManifest({ ...manifest, ...summary, files });
}

/** Verifies a correct file, then one with a missing and a mismatched row. */
async function expectReadable(
  extension: string,
  write: (rows: readonly Row[]) => Promise<Buffer>,
): Promise<void> {
  const exported = await harness.exportHours();
  await replaceFile(exported, extension, await write(rows), rows);
  for (const deep of [false, true])
    expect(await exported.verify({ deep })).toMatchObject({ ok: true, findings: [] });

  const spoiled = rows.flatMap((row, index) => {
    if (index === 200) return [];
    if (index === 7) return [{ ...row, elements_chain: null }];
    if (index === 8) return [{ ...row, person_properties: '{"n": 9007199254740993.1}' }];
    return [row];
  });
  await replaceFile(exported, extension, await write(spoiled), spoiled);
  const report = await exported.verify({ deep: true });
  expect(kindsOf(report)).toEqual(['missing', 'mismatched']);
  expect(report.findings[0]?.rows).toEqual([{ id: rows[200]?.uuid }]);
  expect(report.findings[1]?.rows).toEqual([
    { id: rows[7]?.uuid, column: 'elements_chain' },
    { id: rows[8]?.uuid, column: 'person_properties' },
  ]);
}

const csvField = (value: string | null | undefined): string =>
  value === null || value === undefined
    ? ''
    : value === '' || /[",\r\n]/.test(value)
      ? `"${value.replaceAll('"', '""')}"`
      : value;

const csvOf = (given: readonly Row[]): Buffer =>
  Buffer.from(
    [names.join(','), ...given.map((row) => names.map((name) => csvField(row[name])).join(','))]
      .map((line) => `${line}\n`)
      .join(''),
  );

describe('CSV', () => {
  const compressions: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
    ['.csv', (bytes: Buffer) => bytes],
    ['.csv.gz', (bytes: Buffer) => gzipSync(bytes)],
    [
      '.csv.br',
      (bytes: Buffer) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
    ],
    [
      '.csv.zst',
      // Several frames, as exportd writes it.
      (bytes: Buffer) =>
        Buffer.concat(
          [0, 1, 2].map((part) =>
            zstdCompressSync(bytes.subarray(part * 100_000, part === 2 ? undefined : (part + 1) * 100_000)),
          ),
        ),
    ],
  ];
  // Each way to find the end of a frame; the other compressions are single streams.
  const usual = compressions.filter(([extension]) => extension === '.csv' || extension === '.csv.zst');
  it.each(casesOf(usual, compressions))('is read back (%s)', (extension, compress) =>
    expectReadable(extension, (given) => Promise.resolve(compress(csvOf(given)))),
  );

  it('that cannot be parsed is reported without values', async () => {
    const exported = await harness.exportHours();
    const bytes = csvOf(rows);
    bytes.write('secret"secret', 100_000);
    await replaceFile(exported, '.csv', bytes, rows);
    const report = await exported.verify();
    expect(kindsOf(report)).toEqual(['file_unreadable', 'missing']);
    expect(JSON.stringify(report)).not.toContain('secret');
  });
});

describe('Parquet', () => {
  const types: Record<string, string> = {
    uuid: 'UUID',
    timestamp: 'TIMESTAMPTZ',
    _inserted_at: 'TIMESTAMPTZ',
    created_at: 'TIMESTAMPTZ',
    properties: 'JSON',
    person_properties: 'JSON',
    person_id: 'UUID',
  };

  async function parquetOf(given: readonly Row[], codec: string): Promise<Buffer> {
    const folder = await mkdtemp(join(tmpdir(), 'exportd-test-'));
    const [input, output] = [join(folder, 'rows.json'), join(folder, 'rows.parquet')];
    await writeFile(input, given.map((row) => `${JSON.stringify(row)}\n`).join(''));
    const columns = names.map((name) => `${name}: 'VARCHAR'`).join(', ');
    const casts = names.map((name) => `"${name}"::${types[name] ?? 'VARCHAR'} as "${name}"`).join(', ');
    const instance = await DuckDBInstance.create();
    const connection = await instance.connect();
    await connection.run('set preserve_insertion_order = true');
    await connection.run(
      `copy (select ${casts} from read_json('${input}', format = 'newline_delimited', columns = {${columns}}))
       to '${output}' (format parquet, codec '${codec}', row_group_size 150)`,
    );
    connection.closeSync();
    instance.closeSync();
    const bytes = await readFile(output);
    await rm(folder, { recursive: true });
    return bytes;
  }

  const codecs = ['zstd', 'lz4_raw', 'snappy', 'gzip', 'brotli', 'uncompressed'];
  it.each(casesOf(codecs.slice(0, 2), codecs))('is read back (%s)', (codec) =>
    expectReadable('.parquet', (given) => parquetOf(given, codec)),
  );

  it('that is damaged is reported', async () => {
    const exported = await harness.exportHours();
    const bytes = await parquetOf(rows, 'zstd');
    bytes.fill(0x55, 1_000, 30_000);
    await replaceFile(exported, '.parquet', bytes, rows);
    expect(new Set(kindsOf(await exported.verify()))).toEqual(new Set(['file_unreadable', 'missing']));
    await replaceFile(exported, '.parquet', bytes.subarray(0, 50_000), rows);
    expect(new Set(kindsOf(await exported.verify()))).toEqual(new Set(['file_unreadable', 'missing']));
  });
});
