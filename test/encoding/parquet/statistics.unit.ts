import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { joinRowGroup } from '../../../src/encoding/parquet/join_row_group.ts';
import { parquetFooter, parquetHeader } from '../../../src/encoding/parquet/file.ts';
import { encodeFragment } from '../../../src/encoding/parquet/row_group.ts';
import type { ColumnType } from '../../../src/source/row_selection.ts';
import { randomCases } from '../../setup/effort.ts';
import { columnsOf, copyBlock } from '../copy_block.ts';
import { bytesOf, sampleOf, samples, type Sample, type SampleRow } from './samples.ts';
import { fileOf, fragmentOf, metadataOf, rowGroupOf } from './written_file.ts';

/** The statistics of the columns of a file's first row group. */
const statisticsOf = (file: Buffer<ArrayBuffer>) =>
  metadataOf(file).row_groups[0]?.columns.map((column) => column.meta_data?.statistics) ?? [];

const columnOf = (type: ColumnType, values: readonly (Sample | null)[]) => {
  const columns = columnsOf(type);
  const rows: SampleRow[] = values.map((value) => [value]);
  return statisticsOf(fileOf(columns, 'zstd', [rowGroupOf(columns, 'zstd', rows)]))[0];
};

describe('the statistics of a column', () => {
  it.each<[ColumnType, readonly (Sample | null)[], unknown, unknown]>([
    ['bigint', samples.bigint, -(2n ** 63n), 2n ** 63n - 1n],
    ['bigint', [2n ** 53n + 1n, 2n ** 53n].map(sampleOf.bigint), 2n ** 53n, 2n ** 53n + 1n],
    ['integer', samples.integer, -(2 ** 31), 2 ** 31 - 1],
    ['double', samples.double, -Infinity, Infinity],
    ['double', [NaN, 0].map(sampleOf.double), -0, 0],
    ['boolean', samples.boolean, false, true],
    ['text', ['b', '', 'abcd', 'c', 'bbbbb'].map(sampleOf.text), '', 'c'],
    ['text', ['é', 'z', 'zz'].map(sampleOf.text), 'z', 'é'],
  ])('%s are its minimum and maximum', (type, values, min_value, max_value) => {
    expect(columnOf(type, [...values, null])).toMatchObject({
      ...{ min_value, max_value, null_count: 1n },
      ...{ is_min_value_exact: true, is_max_value_exact: true },
    });
  });

  it('are those of uuids', () => {
    expect(columnOf('uuid', samples.uuid)).toMatchObject({
      min_value: samples.uuid[0]?.text,
      max_value: samples.uuid[1]?.text,
    });
  });

  it('of long texts are bounds of whole characters', () => {
    expect(
      columnOf('text', [sampleOf.text(`${'a'.repeat(15)}é`), sampleOf.text('b'.repeat(40))]),
    ).toMatchObject({
      min_value: 'a'.repeat(15),
      max_value: `${'b'.repeat(15)}c`,
      ...{ is_min_value_exact: false, is_max_value_exact: false },
    });
    // No character can be increased.
    expect(columnOf('text', [sampleOf.text('😀'.repeat(10))])).not.toMatchObject({
      max_value: expect.anything(),
    });
  });

  it.each<[ColumnType, readonly (Sample | null)[]]>([
    ['text', [null]],
    ['double', [sampleOf.double(NaN)]],
    // The range of JSON texts excludes nothing.
    ['json', [sampleOf.json('{}')]],
  ])('of %s without a range are the number of nulls', (type, values) => {
    const statistics = columnOf(type, values);
    expect(statistics?.null_count).toBe(BigInt(values.filter((value) => value === null).length));
    expect(statistics?.min_value).toBeUndefined();
    expect(statistics?.max_value).toBeUndefined();
  });

  it('bound random texts in the order of their bytes', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '😀', '~', '\u007f'), maxLength: 40 });
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 30 }), (texts) => {
        const range = fragmentRange(texts);
        const sorted = texts
          .map((each) => Buffer.from(each))
          .sort((one, other) => Buffer.compare(one, other));
        const [first, last] = [sorted[0], sorted.at(-1)];
        if (!range || !first || !last) return;
        expect(Buffer.compare(Buffer.from(range.min, 'base64'), first)).toBeLessThanOrEqual(0);
        expect(Buffer.compare(Buffer.from(range.max, 'base64'), last)).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: randomCases(200) },
    );
  });
});

function fragmentRange(texts: readonly string[]) {
  const columns = columnsOf('text');
  const rows = texts.map((text): SampleRow => [sampleOf.text(text)]);
  return rowGroupOf(columns, null, rows).rowGroup.columns[0]?.range;
}

describe('the page index', () => {
  it('has the rows and range of each page', () => {
    const columns = columnsOf('timestamp', 'text');
    const blocks = [0, 1, 2].map((block) =>
      fragmentOf(
        columns,
        'zstd',
        [0, 1, 2, 3].map((row): SampleRow => [
          sampleOf.timestamp(BigInt(10 * block + row)),
          sampleOf.text('same'),
        ]),
      ),
    );
    const { bytes, rowGroup } = joinRowGroup(blocks, columns, { compression: 'zstd' });
    expect(rowGroup.columns[0]?.pages.map(({ rows }) => rows)).toEqual([4, 4, 4]);
    const file = fileOf(columns, 'zstd', [{ bytes, rowGroup }]);
    for (const chunk of metadataOf(file).row_groups[0]?.columns ?? []) {
      const [from, length] = [Number(chunk.offset_index_offset), chunk.offset_index_length ?? 0];
      expect(from).toBeGreaterThanOrEqual(parquetHeader().length + bytes.length);
      expect(from + length).toBeLessThan(file.length);
      expect(Number(chunk.column_index_offset)).toBeLessThan(from);
    }
  });

  it('follows from the journaled states alone', () => {
    const columns = columnsOf('timestamp', 'uuid');
    const group = rowGroupOf(columns, 'zstd', [[sampleOf.timestamp(1n), samples.uuid[1] ?? null]]);
    const journaled = JSON.parse(JSON.stringify([group.rowGroup])) as (typeof group.rowGroup)[];
    expect(parquetFooter(columns, 'zstd', journaled)).toEqual(
      parquetFooter(columns, 'zstd', [group.rowGroup]),
    );
  });
});

it('the columns by which rows are sorted are declared', () => {
  const columns = columnsOf('uuid', 'timestamp');
  const row: SampleRow = [samples.uuid[0] ?? null, sampleOf.timestamp(1n)];
  const throwAny = (): never => {
    throw new Error('A value cannot be represented.');
  };
  const fragment = encodeFragment(copyBlock([bytesOf(row)]), 1, columns, { compression: null }, throwAny, {
    sorted: [1, 0],
  });
  const file = fileOf(columns, null, [joinRowGroup([fragment], columns, { compression: null })]);
  expect(metadataOf(file).row_groups[0]?.sorting_columns).toEqual([
    { column_idx: 1, descending: false, nulls_first: false },
    { column_idx: 0, descending: false, nulls_first: false },
  ]);
});
