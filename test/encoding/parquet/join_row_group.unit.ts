import { describe, expect, it } from '@jest/globals';
import { parquetCompressions } from '../../../src/encoding/encoder.ts';
import { joinRowGroup } from '../../../src/encoding/parquet/join_row_group.ts';
import { columnsOf } from '../copy_block.ts';
import { sampleOf, textsOf, type Sample, type SampleRow } from './samples.ts';
import { fileOf, fragmentOf, readWithHyparquet, useDuckDb } from './written_file.ts';

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

describe('the blocks of a row group', () => {
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
