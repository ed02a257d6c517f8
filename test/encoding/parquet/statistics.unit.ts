import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parquetFooter, parquetHeader } from '../../../src/encoding/parquet/file.ts';
import { joinRowGroup } from '../../../src/encoding/parquet/join_row_group.ts';
import { encodeFragment } from '../../../src/encoding/parquet/row_group.ts';
import { MalformedBlock, UnencodableRow, type UnrepresentableValue } from '../../../src/encoding/rows.ts';
import type { ColumnType, ExportedColumn } from '../../../src/source/row_selection.ts';
import { randomCases } from '../../setup/effort.ts';
import { columnsOf, copyBlock, type FieldBytes, int64 } from '../copy_block.ts';
import {
  bytesOf,
  infinity,
  minusInfinity,
  type Sample,
  sampleOf,
  type SampleRow,
  samples,
  textsOf,
  times,
} from './samples.ts';
import {
  encodeRowGroup,
  fileOf,
  fragmentOf,
  metadataOf,
  readWithHyparquet,
  rowGroupOf,
} from './written_file.ts';

describe('statistics', () => {
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
        min_value,
        max_value,
        null_count: 1n,
        is_min_value_exact: true,
        is_max_value_exact: true,
      });
    });

    it('are those of the texts of uuids, cut like other texts', () => {
      expect(columnOf('uuid', samples.uuid)).toMatchObject({
        min_value: samples.uuid[0]?.text.slice(0, 16),
        max_value: 'ffffffff-ffff-fg',
        is_max_value_exact: false,
      });
    });

    it('of long texts are bounds of whole characters', () => {
      expect(
        columnOf('text', [sampleOf.text(`${'a'.repeat(15)}é`), sampleOf.text('b'.repeat(40))]),
      ).toMatchObject({
        min_value: 'a'.repeat(15),
        max_value: `${'b'.repeat(15)}c`,
        is_min_value_exact: false,
        is_max_value_exact: false,
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
});

describe('unrepresentable values', () => {
  const columns: ExportedColumn[] = [
    { name: 'uuid', type: 'uuid' },
    { name: 'event', type: 'text' },
    { name: 'timestamp', type: 'timestamp' },
    { name: 'properties', type: 'json' },
    { name: 'created_at', type: 'timestamp' },
    { name: 'is_deleted', type: 'boolean' },
  ];

  const goodRow = (number: number): SampleRow => [
    number % 3 === 0 ? null : sampleOf.uuid(`00000000-0000-4000-8000-${String(number).padStart(12, '0')}`),
    number % 4 === 0 ? null : sampleOf.text(`event ${number % 5}`),
    number % 5 === 0 ? null : sampleOf.timestamp(BigInt(number)),
    sampleOf.jsonb(`{"a": ${number}}`),
    sampleOf.timestamp(times.year1),
    number % 7 === 0 ? null : sampleOf.boolean(number % 2 === 0),
  ];

  /** The fields of a row with one value replaced. */
  const withField = (row: SampleRow, column: string, field: FieldBytes): FieldBytes[] =>
    bytesOf(row).map((bytes, index) => (columns[index]?.name === column ? field : bytes));

  describe('a time that Parquet cannot represent', () => {
    it.each([
      ['infinity', infinity],
      ['-infinity', minusInfinity],
      ['the end of the year 294276', int64(9_223_371_331_199_999_999n)],
      ['the first of the year 10000', sampleOf.timestamp(times.year9999 + 1n).bytes],
      ['the last of the year 1 BC', sampleOf.timestamp(times.year1 - 1n).bytes],
    ])('%s is reported with row, column and reason', (_, field) => {
      const rows = [bytesOf(goodRow(1)), withField(goodRow(2), 'created_at', field)];
      const block = copyBlock(rows);
      const encode = () =>
        encodeRowGroup(block, rows.length, columns, { compression: 'zstd' }, ({ rowAt, column, reason }) => {
          throw new UnencodableRow(`at ${rowAt}`, column, reason);
        });
      const rowAt = copyBlock(rows.slice(0, 1)).length;
      expect(encode).toThrow(
        `Row at ${rowAt} cannot be exported: column created_at contains a time that is infinite or outside the years 0001 to 9999.`,
      );
    });

    it('removes its row when rows are rejected, and no others', async () => {
      // Enough for several batches and pages, and a dictionary that is dropped.
      const count = 20_000;
      const isBad = (number: number): boolean => number % 11 === 0 || number % 101 < 3;
      const rows = Array.from({ length: count }, (_, number) =>
        isBad(number)
          ? withField(goodRow(number), number % 2 === 0 ? 'timestamp' : 'created_at', infinity)
          : bytesOf(goodRow(number)),
      );
      const bad: UnrepresentableValue[] = [];
      const group = encodeRowGroup(copyBlock(rows), count, columns, { compression: 'zstd' }, (value) =>
        bad.push(value),
      );
      const numbers = Array.from({ length: count }, (_, number) => number);
      const good = numbers.filter((number) => !isBad(number));
      expect(group.rowGroup.rows).toBe(good.length);
      const read = await readWithHyparquet(fileOf(columns, 'zstd', [group]), columns);
      // Compared as one value, because a diff of so many rows does not help.
      expect(JSON.stringify(read) === JSON.stringify(good.map((number) => textsOf(goodRow(number))))).toBe(
        true,
      );

      let rowAt = 0;
      const expected: Partial<UnrepresentableValue>[] = [];
      for (const [number, row] of rows.entries()) {
        if (isBad(number)) expected.push({ rowAt, column: number % 2 === 0 ? 'timestamp' : 'created_at' });
        rowAt += copyBlock([row]).length;
      }
      expect(bad.map(({ rowAt, column }) => ({ rowAt, column }))).toEqual(expected);
    });

    it('is reported once per row', () => {
      const row = withField(goodRow(1), 'timestamp', infinity).with(4, minusInfinity);
      const bad: UnrepresentableValue[] = [];
      encodeRowGroup(copyBlock([row]), 1, columns, { compression: null }, (value) => bad.push(value));
      expect(bad).toMatchObject([{ rowAt: 0, column: 'timestamp' }]);
    });

    it('in every row leaves an empty row group, and a valid file', async () => {
      const rows = [1, 2].map((number) => withField(goodRow(number), 'created_at', infinity));
      const bad: UnrepresentableValue[] = [];
      const nothing = encodeRowGroup(copyBlock(rows), 2, columns, { compression: 'zstd' }, (value) =>
        bad.push(value),
      );
      expect(bad).toHaveLength(2);
      expect(nothing.bytes).toHaveLength(0);
      expect(nothing.rowGroup.rows).toBe(0);
      const something = encodeRowGroup(
        copyBlock([bytesOf(goodRow(4))]),
        1,
        columns,
        { compression: 'zstd' },
        () => undefined,
      );
      const file = fileOf(columns, 'zstd', [nothing, something, nothing]);
      expect(await readWithHyparquet(file, columns)).toEqual([textsOf(goodRow(4))]);
    });
  });

  describe('a block', () => {
    const row = [Buffer.from('abc'), int64(1n)];
    const ofRow = columnsOf('text', 'bigint');
    it.each([
      ['with a missing field', copyBlock([row.slice(0, 1)]), 1],
      ['with a value of another size', copyBlock([row.toReversed()]), 1],
      ['that ends within a value', copyBlock([row]).subarray(0, -1), 1],
      ['that ends within a length', copyBlock([row]).subarray(0, -9), 1],
      ['that ends within a row’s number of fields', Buffer.concat([copyBlock([row]), Buffer.from([0])]), 2],
      ['of more rows than it says', copyBlock([row, row]), 1],
      ['of fewer rows than it says', copyBlock([row]), 2],
      ['of no rows where it says one', copyBlock([]), 1],
    ])('%s is rejected', (_, block, rows) => {
      expect(() => encodeRowGroup(block, rows, ofRow, { compression: 'zstd' }, () => undefined)).toThrow(
        MalformedBlock,
      );
    });

    it('without rows makes no row group', () => {
      const { bytes, rowGroup } = encodeRowGroup(
        copyBlock([]),
        0,
        ofRow,
        { compression: 'zstd' },
        () => undefined,
      );
      expect(bytes).toHaveLength(0);
      expect(rowGroup.rows).toBe(0);
    });

    it('that was rejected does not affect the next', () => {
      const encoded = () =>
        encodeRowGroup(copyBlock([row]), 1, ofRow, { compression: 'zstd' }, () => undefined);
      const before = encoded();
      const encode = () =>
        encodeRowGroup(
          copyBlock([row, row, row.slice(0, 1)]),
          3,
          ofRow,
          { compression: 'zstd' },
          () => undefined,
        );
      expect(encode).toThrow(MalformedBlock);
      expect(encoded()).toEqual(before);
    });
  });
});
