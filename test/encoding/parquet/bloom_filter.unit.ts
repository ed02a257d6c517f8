import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { ColumnChunk } from 'hyparquet';
import { readBloomFilter, sbbfContains } from 'hyparquet/src/bloom.js';
import { xxhash64 } from 'hyparquet/src/xxhash.js';
import { joinRowGroup } from '../../../src/encoding/parquet/join_row_group.ts';
import { encodeFragment } from '../../../src/encoding/parquet/row_group.ts';
import { xxHash64 } from '../../../src/encoding/parquet/bloom_filter.ts';
import type { ExportedColumn } from '../../../src/source/row_selection.ts';
import { randomCases } from '../../setup/effort.ts';
import { copyBlock } from '../copy_block.ts';
import { bytesOf, sampleOf, textsOf, type SampleRow } from './samples.ts';
import { fileOf, metadataOf, readWithHyparquet } from './written_file.ts';

it('the hash of a value is xxHash64', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 120 }), fc.nat({ max: 8 }), (bytes, start) => {
      const value = bytes.subarray(Math.min(start, bytes.length));
      const hash = { high: 0, low: 0 };
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      xxHash64(view, bytes.length - value.length, bytes.length, hash);
      expect((BigInt(hash.high) << 32n) | BigInt(hash.low)).toBe(xxhash64(value));
    }),
    { numRuns: randomCases(500) },
  );
});

const columns: ExportedColumn[] = [
  { name: 'uuid', type: 'uuid' },
  { name: '_inserted_at', type: 'timestamp' },
  { name: 'distinct_id', type: 'text' },
  { name: 'event', type: 'text' },
];
const [groups, blocks, rowsPerBlock] = [4, 3, 2_000];
const rowsPerGroup = blocks * rowsPerBlock;

/** Random in appearance, so that every row group has the whole range. */
const uuidOf = (row: number): string => {
  const digits = (Math.imul(row + 1, 0x9e37_79b1) >>> 0).toString(16).padStart(8, '0');
  return `${digits}-0000-4000-8000-${String(row).padStart(12, '0')}`;
};

/** The persons of the second half of a row group's blocks are all distinct, so they have no dictionary. */
const personOf = (row: number): string =>
  row % rowsPerGroup < rowsPerBlock
    ? `user-${uuidOf(Math.floor(row / 100))}`
    : `user-${uuidOf(row)} with a long name`;

const rowOf = (row: number): SampleRow => [
  sampleOf.uuid(uuidOf(row)),
  sampleOf.timestamp(BigInt(row)),
  row % 7 === 0 ? null : sampleOf.text(personOf(row)),
  sampleOf.text('event'),
];

function writeGroup(group: number, bloom_filters: boolean) {
  const options = { compression: 'zstd', bloom_filters } as const;
  const fragments = Array.from({ length: blocks }, (_, block) => {
    const first = group * rowsPerGroup + block * rowsPerBlock;
    const rows = Array.from({ length: rowsPerBlock }, (__, row) => bytesOf(rowOf(first + row)));
    return encodeFragment(copyBlock(rows), rows.length, columns, options, () => undefined, {
      sorted: [1, 0],
    });
  });
  return joinRowGroup(fragments, columns, options);
}

const fileWith = (bloomFilters: boolean): Buffer<ArrayBuffer> =>
  fileOf(
    columns,
    'zstd',
    Array.from({ length: groups }, (_, group) => writeGroup(group, bloomFilters)),
  );

describe('a file with bloom filters', () => {
  const folder = mkdtempSync(join(tmpdir(), 'exportd-bloom-'));
  const paths = { with: join(folder, 'with.parquet'), without: join(folder, 'without.parquet') };
  const file = fileWith(true);
  let duckDb: DuckDBConnection;
  beforeAll(async () => {
    writeFileSync(paths.with, file);
    writeFileSync(paths.without, fileWith(false));
    duckDb = await (await DuckDBInstance.create(':memory:')).connect();
  });
  afterAll(() => {
    duckDb.closeSync();
    rmSync(folder, { recursive: true });
  });
  const rowsOf = async (statement: string): Promise<unknown[][]> =>
    (await duckDb.runAndReadAll(statement)).getRowsJson();

  /** The words of the filter of a column chunk. DuckDB does not read those of uuids. */
  const filterOf = (chunk: ColumnChunk | undefined): Uint32Array => {
    const offset = Number(chunk?.meta_data?.bloom_filter_offset);
    const view = new DataView(file.buffer, file.byteOffset, file.length);
    return readBloomFilter({ view, offset })?.blocks ?? new Uint32Array();
  };

  /** The row groups that may contain a value. */
  const candidates = async (column: string, value: string): Promise<unknown[]> =>
    (
      await rowsOf(
        `select row_group_id from parquet_bloom_probe('${paths.with}', '${column}', ${value}) where not bloom_filter_excludes`,
      )
    ).flat();

  it('has those of uuid and distinct_id after the chunks of each row group', () => {
    for (const { columns: chunks } of metadataOf(file).row_groups)
      expect(chunks.map(({ meta_data }) => meta_data?.bloom_filter_length)).toEqual([
        expect.any(Number),
        undefined,
        expect.any(Number),
        undefined,
      ]);
  });

  it('is read as before', async () => {
    const read = await readWithHyparquet(file, columns);
    const expected = Array.from({ length: groups * rowsPerGroup }, (_, row) => textsOf(rowOf(row)));
    expect(JSON.stringify(read) === JSON.stringify(expected)).toBe(true);
  });

  it('has one row group with the rows of a time, by its statistics', async () => {
    const time = (row: number): string => `make_timestamp(${row})`;
    const [from, until] = [time(rowsPerGroup), time(2 * rowsPerGroup)];
    const matching = await rowsOf(
      `select row_group_id from parquet_metadata('${paths.without}') where path_in_schema = '_inserted_at'
         and stats_max_value::timestamp >= ${from} and stats_min_value::timestamp < ${until}`,
    );
    expect(matching.flat().map(Number)).toEqual([1]);
  });

  it('excludes row groups, and never one with the value', async () => {
    const rows = Array.from({ length: groups * 6 }, (_, index) => index * 1_000 + 1).filter(
      (row) => row % 7 > 0,
    );
    const filters = metadataOf(file).row_groups.map((group) => filterOf(group.columns[0]));
    const found = { uuids: 0, persons: 0 };
    for (const row of rows) {
      const group = Math.floor(row / rowsPerGroup);
      const hash = xxhash64(new Uint8Array(Buffer.from(uuidOf(row).replaceAll('-', ''), 'hex')));
      const contains = filters.map((filter) => sbbfContains(filter, hash));
      expect(contains[group]).toBe(true);
      found.uuids += contains.filter(Boolean).length;
      const groupsOfPerson = await candidates('distinct_id', `'${personOf(row)}'`);
      expect(groupsOfPerson.map(Number)).toContain(group);
      found.persons += groupsOfPerson.length;
    }
    // A false positive in a hundred: the same values make the same ones.
    expect(found).toEqual({ uuids: rows.length, persons: rows.length });
  });
});
