import { describe, expect, it } from '@jest/globals';
import type { JsonValue } from '../../../src/domain/event.ts';
import { parquetCompressions } from '../../../src/encoding/encoder.ts';
import { parquetFooter, parquetHeader, parquetIdentity } from '../../../src/encoding/parquet/file.ts';
import { parseRowGroup as stateOf } from '../../../src/encoding/parquet/row_group_state.ts';
import type { ExportedColumn } from '../../../src/source/row_selection.ts';
import { columnsOf } from '../copy_block.ts';
import { sampleOf, type SampleRow } from './samples.ts';
import { fileOf, metadataOf, readWithHyparquet, rowGroupOf } from './written_file.ts';

const columns = columnsOf('uuid', 'text', 'timestamp', 'json', 'bigint', 'integer', 'boolean');

describe('a file', () => {
  it('describes its columns', () => {
    const { schema, created_by } = metadataOf(fileOf(columns, 'zstd', []));
    expect(created_by).toBe('exportd');
    expect(schema.slice(1)).toMatchObject([
      { name: 'c0', type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' } },
      { name: 'c1', type: 'BYTE_ARRAY', logical_type: { type: 'STRING' } },
      {
        name: 'c2',
        type: 'INT64',
        logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
      },
      { name: 'c3', type: 'BYTE_ARRAY', logical_type: { type: 'JSON' } },
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
      expect(bigint?.meta_data).toMatchObject({ data_page_offset: BigInt(at), encodings: ['PLAIN', 'RLE'] });
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
      'parquet/2',
      'parquet+zstd-1/2',
      'parquet+snappy/2',
      'parquet+gzip-5/2',
      'parquet+brotli-4/2',
      'parquet+lz4/2',
    ]);
    expect(parquetIdentity({ compression: 'zstd', compression_level: 9, bloom_filters: true })).toBe(
      'parquet+zstd-9/2 bloom filters',
    );
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
