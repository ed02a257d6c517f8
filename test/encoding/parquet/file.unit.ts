import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { ColumnChunk } from 'hyparquet';
import { readBloomFilter, sbbfContains } from 'hyparquet/src/bloom.js';
import { xxhash64 } from 'hyparquet/src/xxhash.js';
import type { JsonValue } from '../../../src/domain/event.ts';
import { parquetCompressions } from '../../../src/encoding/encoder.ts';
import { xxHash64 } from '../../../src/encoding/parquet/bloom_filter.ts';
import {
  parquetFooter,
  parquetHeader,
  parquetIdentity,
  writesParquet,
} from '../../../src/encoding/parquet/file.ts';
import { joinRowGroup } from '../../../src/encoding/parquet/join_row_group.ts';
import { encodeFragment } from '../../../src/encoding/parquet/row_group.ts';
import { parseRowGroup as stateOf } from '../../../src/encoding/parquet/row_group_state.ts';
import type { ExportedColumn } from '../../../src/source/row_selection.ts';
import { randomCases } from '../../setup/effort.ts';
import { columnsOf, copyBlock } from '../copy_block.ts';
import { bytesOf, type Sample, sampleOf, type SampleRow, textsOf } from './samples.ts';
import { fileOf, fragmentOf, metadataOf, readWithHyparquet, rowGroupOf, useDuckDb } from './written_file.ts';

describe('bloom filters', () => {
  it('hash values with xxHash64', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), fc.nat({ max: 8 }), (bytes, start) => {
        const value = bytes.subarray(Math.min(start, bytes.length));
        const hash = { high: 0, low: 0 };
        const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
        xxHash64(view, bytes.length - value.length, bytes.length, hash);
        expect((BigInt(hash.high) << 32n) | BigInt(hash.low)).toBe(xxhash64(value));
      }),
      { numRuns: randomCases(200) },
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
        const hash = xxhash64(new Uint8Array(Buffer.from(uuidOf(row))));
        const contains = filters.map((filter) => sbbfContains(filter, hash));
        expect(contains[group]).toBe(true);
        found.uuids += contains.filter(Boolean).length;
        const groupsOfPerson = await candidates('distinct_id', `'${personOf(row)}'`);
        expect(groupsOfPerson.map(Number)).toContain(group);
        found.persons += groupsOfPerson.length;
      }
      // A false positive in a hundred: the same values make the same ones, one of the texts of these uuids.
      expect(found).toEqual({ uuids: rows.length + 1, persons: rows.length });
    });
  });
});

describe('files', () => {
  const columns = columnsOf('uuid', 'text', 'timestamp', 'json', 'bigint', 'integer', 'boolean');

  describe('a file', () => {
    it('describes its columns', () => {
      const { schema, created_by } = metadataOf(fileOf(columns, 'zstd', []));
      expect(created_by).toBe('exportd');
      expect(schema.slice(1)).toMatchObject([
        { name: 'c0', type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
        { name: 'c1', type: 'BYTE_ARRAY', logical_type: { type: 'STRING' } },
        {
          name: 'c2',
          type: 'INT64',
          logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
        },
        { name: 'c3', type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
        { name: 'c4', type: 'INT64' },
        { name: 'c5', type: 'INT32' },
        { name: 'c6', type: 'BOOLEAN' },
      ]);
      expect(new Set(schema.slice(1).map(({ repetition_type }) => repetition_type))).toEqual(
        new Set(['OPTIONAL']),
      );
    });

    it('without rows is valid', async () => {
      expect(await readWithHyparquet(fileOf(columns, null, []), columns)).toEqual([]);
    });

    it('supports any column name', async () => {
      const named: ExportedColumn[] = ['constructor', 'ä "quoted"', 'a.b'].map((name) => ({
        name,
        type: 'text',
      }));
      const rows: SampleRow[] = [named.map(({ name }) => sampleOf.text(name))];
      const file = fileOf(named, 'zstd', [rowGroupOf(named, 'zstd', rows)]);
      expect(await readWithHyparquet(file, named)).toEqual([named.map(({ name }) => name)]);
    });

    it('contains the offset of each column chunk', () => {
      const chosen = columnsOf('text', 'bigint');
      const rows: SampleRow[] = [1n, 2n, 3n, 4n].map((number) => [
        sampleOf.text('same'),
        sampleOf.bigint(number),
      ]);
      const groups = [rows, rows.slice(1)].map((some) => rowGroupOf(chosen, 'zstd', some));
      const file = fileOf(chosen, 'zstd', groups);
      let at = parquetHeader().length;
      for (const [index, { bytes, rowGroup }] of groups.entries()) {
        expect(rowGroup.columns.reduce((sum, { compressed }) => sum + compressed, 0)).toBe(bytes.length);
        const [text, bigint] = metadataOf(file).row_groups[index]?.columns ?? [];
        expect(text?.meta_data).toMatchObject({ dictionary_page_offset: BigInt(at), codec: 'ZSTD' });
        at += rowGroup.columns[0]?.compressed ?? 0;
        expect(bigint?.meta_data).toMatchObject({
          data_page_offset: BigInt(at),
          encodings: ['PLAIN', 'RLE'],
        });
        at += rowGroup.columns[1]?.compressed ?? 0;
      }
      expect(metadataOf(file).num_rows).toBe(7n);
    });

    it('rejects row groups with other columns', () => {
      const { rowGroup } = rowGroupOf(columnsOf('text'), 'zstd', [[null]]);
      expect(() => parquetFooter(columns, 'zstd', [rowGroup])).toThrow(TypeError);
    });

    it('has an identity of format, compression and version', () => {
      expect([null, ...parquetCompressions].map((compression) => parquetIdentity({ compression }))).toEqual([
        'parquet/3',
        'parquet+zstd-1/3',
        'parquet+snappy/3',
        'parquet+gzip-5/3',
        'parquet+brotli-4/3',
        'parquet+lz4/3',
      ]);
      expect(parquetIdentity({ compression: 'zstd', compression_level: 9, bloom_filters: true })).toBe(
        'parquet+zstd-9/3 bloom filters',
      );
    });

    it('that tells it from those of text formats', () => {
      const identities = [parquetIdentity({ compression: null }), parquetIdentity({ compression: 'gzip' })];
      expect([...identities, 'jsonlines+gzip-6/1', 'csv/1'].map(writesParquet)).toEqual([
        true,
        true,
        false,
        false,
      ]);
    });
  });

  describe('a file with uuids and JSON', () => {
    const readWithDuckDb = useDuckDb();
    const [, ...others] = columnsOf('uuid', 'json', 'timestamp', 'text');
    const ofTable: ExportedColumn[] = [{ name: 'uuid', type: 'uuid' }, ...others];
    const shown = ofTable.map((column) => (column.type === 'uuid' ? { ...column, type: 'text' } : column));
    const idOf = (row: number): string =>
      `0F${String(row).padStart(6, '0')}-aBcd-4000-8000-${String(row).padStart(12, '0')}`.toLowerCase();
    const rowOf = (id: string | null, row: number): SampleRow => [
      id === null ? null : sampleOf.uuid(id),
      sampleOf.json(`{"row": ${row}}`),
      sampleOf.timestamp(BigInt(row)),
      sampleOf.text('event'),
    ];
    const options = { compression: 'zstd', bloom_filters: true } as const;
    const groupOf = (blocks: readonly (readonly SampleRow[])[]) =>
      joinRowGroup(
        blocks.map((rows) =>
          encodeFragment(copyBlock(rows.map(bytesOf)), rows.length, ofTable, options, () => undefined),
        ),
        ofTable,
        options,
      );
    const fileWith = (...groups: readonly ReturnType<typeof groupOf>[]): Buffer<ArrayBuffer> =>
      Buffer.concat([
        parquetHeader(),
        ...groups.map(({ bytes }) => bytes),
        parquetFooter(
          ofTable,
          'zstd',
          groups.map(({ rowGroup }) => rowGroup),
        ),
      ]);

    it('has uuids and JSON as strings with the ids of their columns, and the rows of a plain one', async () => {
      const distinct = Array.from({ length: 3_000 }, (_, row) =>
        rowOf(row % 7 === 0 ? null : idOf(row), row),
      );
      const repeated = Array.from({ length: 3_000 }, (_, row) =>
        rowOf(row % 5 === 0 ? null : idOf(row % 9), row),
      );
      const none = [rowOf(null, 1), rowOf(null, 2)];
      const written = [[distinct, repeated], [none], [repeated]];
      const file = fileWith(...written.map(groupOf));
      const expected = written.flat(2).map(textsOf);
      expect(await readWithHyparquet(file, shown as ExportedColumn[])).toEqual(expected);
      expect(await readWithDuckDb(file, shown as ExportedColumn[])).toEqual(expected);
      expect(metadataOf(file).schema.slice(1)).toMatchObject(
        ['UTF8', 'UTF8', 'TIMESTAMP_MICROS', 'UTF8'].map((converted_type) => ({
          converted_type,
          repetition_type: 'OPTIONAL',
        })),
      );
      const [ids] = metadataOf(file).row_groups[0]?.columns ?? [];
      // Cut like those of other texts.
      expect(ids?.meta_data?.statistics).toMatchObject({
        min_value: '0f000000-abcd-40',
        max_value: '0f002999-abcd-41',
      });
      expect(ids?.meta_data?.bloom_filter_offset).toBeGreaterThan(0n);
    });
  });

  describe('the journaled state of a row group', () => {
    const { rowGroup } = rowGroupOf(columns, 'zstd', [columns.map(() => null)]);

    it('survives as JSON', () => {
      expect(stateOf(JSON.parse(JSON.stringify(rowGroup)) as JsonValue)).toEqual(rowGroup);
    });

    it.each([null, 1, [], {}, { rows: 1 }, { rows: 1, columns: [{}] }, { rows: 1, columns: [1] }])(
      'is not %j',
      (value) => {
        expect(() => stateOf(value)).toThrow(TypeError);
      },
    );
  });
});

describe('the blocks of a row group', () => {
  const readWithDuckDb = useDuckDb();
  const columns = columnsOf('text', 'uuid', 'json', 'bigint', 'boolean');

  const uuidOf = (number: number): Sample =>
    sampleOf.uuid(`00000000-0000-4000-8000-${String(number).padStart(12, '0')}`);

  /** A row of a block: its columns have a dictionary in all blocks, in some, or in none. */
  const rowOf = (block: number, row: number): SampleRow => [
    row % 5 === 0 ? null : sampleOf.text(`text ${(row % 9) + block * 4}`),
    block === 1 ? uuidOf(row + 1_000) : uuidOf(row % 3),
    sampleOf.jsonb(block === 2 ? `{"row": ${row}}` : '{}'),
    sampleOf.bigint(BigInt(block * 1_000 + row)),
    sampleOf.boolean(row % 3 === 0),
  ];
  const blocks = [60, 41, 1, 77].map((rows, block) =>
    Array.from({ length: rows }, (_, row) => rowOf(block, row)),
  );

  it.each([null, ...parquetCompressions])('read back, compression %s', async (compression) => {
    const fragments = [...blocks, []].map((rows) => fragmentOf(columns, compression, rows));
    const group = joinRowGroup(fragments, columns, { compression });
    const file = fileOf(columns, compression, [group, group]);
    const expected = [...blocks, ...blocks].flat().map(textsOf);
    expect(await readWithHyparquet(file, columns)).toEqual(expected);
    expect(await readWithDuckDb(file, columns)).toEqual(expected);
    expect(group.bytes.buffer.byteLength).toBe(group.bytes.length);
  });

  it('share a dictionary until it is full', async () => {
    const large = columnsOf('text');
    // 900 kB of distinct values in each block, so that the third dictionary does not fit.
    const rows = [0, 1, 2, 0].map((block) =>
      Array.from({ length: 30 }, (_, row): SampleRow => [
        sampleOf.text(`${block}${'x'.repeat(89_990)}${row % 10}`),
      ]),
    );
    const fragments = rows.map((each) => fragmentOf(large, 'zstd', each));
    const group = joinRowGroup(fragments, large, { compression: 'zstd' });
    const file = fileOf(large, 'zstd', [group]);
    expect(
      JSON.stringify(await readWithHyparquet(file, large)) === JSON.stringify(rows.flat().map(textsOf)),
    ).toBe(true);
    expect(
      JSON.stringify(await readWithDuckDb(file, large)) === JSON.stringify(rows.flat().map(textsOf)),
    ).toBe(true);
    expect(group.rowGroup.columns[0]?.dictionary).toBeLessThan(2 * 1024 * 1024);
  });

  it('without rows make none', () => {
    const { bytes, rowGroup } = joinRowGroup([fragmentOf(columns, 'zstd', [])], columns, {
      compression: 'zstd',
    });
    expect(bytes.length).toBe(0);
    expect(rowGroup).toEqual({ rows: 0, columns: [], sorted: [] });
  });
});
