import { describe, expect, it } from '@jest/globals';
import { parquetCompressions } from '../../../src/encoding/encoder.ts';
import { type ColumnType, fileColumns } from '../../../src/source/row_selection.ts';
import { columnsOf } from '../copy_block.ts';
import { sampleOf, samples, textsOf, type SampleRow } from './samples.ts';
import { fileOf, readWithHyparquet, rowGroupOf, useDuckDb } from './written_file.ts';

const readWithDuckDb = useDuckDb();

const types: ColumnType[] = [
  ...(['uuid', 'text', 'timestamp', 'date', 'json', 'bigint', 'integer', 'double', 'boolean'] as const),
];
const everyType = columnsOf(...types);

/** As many rows as the type with the most values has, and more so that values repeat. */
const rowsWithoutNull: SampleRow[] = Array.from({ length: 40 }, (_, row) =>
  types.map((type) => samples[type][row % samples[type].length] ?? null),
);
const rowsWithNulls = rowsWithoutNull.map((row, index) =>
  row.map((sample, column) => ((index + column) % 3 === 0 ? null : sample)),
);
const rowsOfNulls = rowsWithoutNull.slice(0, 5).map((row) => row.map(() => null));

describe.each([null, ...parquetCompressions])('a file, compression %s', (compression) => {
  it('of several row groups reads back every type, with nulls, without, and with nulls only', async () => {
    const groups = [rowsWithoutNull, rowsWithNulls, rowsOfNulls, rowsWithNulls.slice(0, 1)];
    const file = fileOf(
      everyType,
      compression,
      groups.map((rows) => rowGroupOf(everyType, compression, rows)),
    );
    const expected = groups.flat().map(textsOf);
    expect(await readWithHyparquet(file, everyType)).toEqual(expected);
    expect(await readWithDuckDb(file, everyType)).toEqual(expected);
  });

  it('does not contain hidden columns', async () => {
    const columns = columnsOf('timestamp', 'text', 'uuid', 'double');
    const hidden = columns.map((column, index) =>
      index % 2 === 0 ? { ...column, hidden: true as const } : column,
    );
    const rows: SampleRow[] = [sampleOf.text('a'), null, sampleOf.text('b')].map((text, row) => [
      null,
      text,
      samples.uuid[row] ?? null,
      sampleOf.double(row / 2),
    ]);
    const shown = fileColumns(hidden);
    const file = fileOf(shown, compression, [rowGroupOf(hidden, compression, rows)]);
    const expected = rows.map((row) => textsOf([row[1] ?? null, row[3] ?? null]));
    expect(await readWithHyparquet(file, shown)).toEqual(expected);
    expect(await readWithDuckDb(file, shown)).toEqual(expected);
  });

  it('supports values larger than a page', async () => {
    const columns = columnsOf('text', 'json');
    const large = 'ä"\n'.repeat(500_000);
    const rows: SampleRow[] = [
      [sampleOf.text('before'), sampleOf.jsonb('1')],
      [sampleOf.text(large), sampleOf.jsonb(JSON.stringify({ large }))],
      [null, null],
      [sampleOf.text(''), sampleOf.json('{}')],
    ];
    const file = fileOf(columns, compression, [rowGroupOf(columns, compression, rows)]);
    expect(await readWithHyparquet(file, columns)).toEqual(rows.map(textsOf));
    expect(await readWithDuckDb(file, columns)).toEqual(rows.map(textsOf));
  });
});

describe('a row group', () => {
  it('distinguishes empty strings from null', async () => {
    const columns = columnsOf('text');
    const rows: SampleRow[] = [[sampleOf.text('')], [null], [sampleOf.text('')], [null]];
    const file = fileOf(columns, 'zstd', [rowGroupOf(columns, 'zstd', rows)]);
    expect(await readWithDuckDb(file, columns)).toEqual([[''], [null], [''], [null]]);
    expect(await readWithHyparquet(file, columns)).toEqual([[''], [null], [''], [null]]);
  });

  it('supports a value of 50 MB', async () => {
    const columns = columnsOf('uuid', 'json');
    const json = JSON.stringify({ large: 'z"\n\u2028'.repeat(8_000_000) });
    const rows: SampleRow[] = [
      [samples.uuid[0] ?? null, sampleOf.jsonb('{"small": true}')],
      [samples.uuid[1] ?? null, sampleOf.jsonb(json)],
    ];
    const file = fileOf(columns, 'zstd', [rowGroupOf(columns, 'zstd', rows)]);
    const read = await readWithHyparquet(file, columns);
    expect(read.map(([uuid]) => uuid)).toEqual(samples.uuid.slice(0, 2).map(({ text }) => text));
    expect(read[0]?.[1]).toBe('{"small": true}');
    // Compared as one value, because a diff of 50 MB does not help.
    expect(read[1]?.[1] === json).toBe(true);
  });

  it('is the same for the same rows, whatever was encoded before', () => {
    const first = rowGroupOf(everyType, 'zstd', rowsWithNulls);
    const others = columnsOf('text');
    rowGroupOf(others, 'gzip', [[sampleOf.text('x'.repeat(70_000_000))], [null]]);
    expect(rowGroupOf(everyType, 'zstd', rowsWithNulls)).toEqual(first);
  });

  it('has a separate buffer that can be transferred', () => {
    for (const rows of [rowsOfNulls, rowsWithNulls]) {
      const { bytes } = rowGroupOf(everyType, null, rows);
      expect(bytes.buffer.byteLength).toBe(bytes.length);
    }
  });
});
