import { describe, expect, it } from '@jest/globals';
import { MalformedBlock, UnencodableRow, type UnrepresentableValue } from '../../../src/encoding/rows.ts';
import type { ExportedColumn } from '../../../src/source/row_selection.ts';
import { columnsOf, copyBlock, int64, type FieldBytes } from '../copy_block.ts';
import { bytesOf, infinity, minusInfinity, sampleOf, textsOf, times, type SampleRow } from './samples.ts';
import { encodeRowGroup, fileOf, readWithHyparquet } from './written_file.ts';

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
    ['the first after the last', sampleOf.timestamp(times.last + 1n).bytes],
  ])('%s is reported with row, column and reason', (_, field) => {
    const rows = [bytesOf(goodRow(1)), withField(goodRow(2), 'created_at', field)];
    const block = copyBlock(rows);
    const encode = () =>
      encodeRowGroup(block, rows.length, columns, { compression: 'zstd' }, ({ rowAt, column, reason }) => {
        throw new UnencodableRow(`at ${rowAt}`, column, reason);
      });
    const rowAt = copyBlock(rows.slice(0, 1)).length;
    expect(encode).toThrow(
      `Row at ${rowAt} cannot be exported: column created_at contains a time that is infinite or after the year 294246.`,
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
