import { describe, expect, it } from '@jest/globals';
import type { ColumnType } from '../../../src/source/row_selection.ts';
import { columnsOf } from '../copy_block.ts';
import { sampleOf, textsOf, type Sample, type SampleRow } from './samples.ts';
import { fileOf, readWithHyparquet, rowGroupOf, useDuckDb } from './written_file.ts';

const readWithDuckDb = useDuckDb();

/** Writes columns of random rows and reads them back with two readers. Returns whether each column has a dictionary. */
async function writeAndRead(
  rows: number,
  columns: readonly { type: ColumnType; value: (row: number) => Sample | null }[],
): Promise<boolean[]> {
  const exported = columnsOf(...columns.map(({ type }) => type));
  const written = Array.from({ length: rows }, (_, row): SampleRow => columns.map(({ value }) => value(row)));
  const group = rowGroupOf(exported, 'zstd', written);
  const file = fileOf(exported, 'zstd', [group]);
  const expected = JSON.stringify(written.map(textsOf));
  // Compared as one value, because a diff of so many rows does not help.
  expect(JSON.stringify(await readWithHyparquet(file, exported)) === expected).toBe(true);
  expect(JSON.stringify(await readWithDuckDb(file, exported)) === expected).toBe(true);
  return group.rowGroup.columns.map(({ dictionary }) => dictionary !== undefined);
}

const uuidOf = (number: number): Sample =>
  sampleOf.uuid(`00000000-0000-4000-8000-${String(number).padStart(12, '0')}`);

describe('a column', () => {
  it('with repeated values has a dictionary, whatever its nulls', async () => {
    const hasDictionary = await writeAndRead(10_000, [
      { type: 'text', value: (row) => sampleOf.text(`text ${row % 1_000}`) },
      { type: 'text', value: () => sampleOf.text('') },
      { type: 'json', value: (row) => (row % 3 === 0 ? null : sampleOf.jsonb(`{"a": ${row % 7}}`)) },
      { type: 'uuid', value: (row) => (row < 9_000 ? null : uuidOf(row % 2)) },
      { type: 'text', value: (row) => (row === 5_000 ? sampleOf.text('once and again') : null) },
      { type: 'text', value: () => null },
    ]);
    expect(hasDictionary).toEqual([true, true, true, true, false, false]);
  });

  it('with many distinct values has no dictionary', async () => {
    const hasDictionary = await writeAndRead(50_000, [
      { type: 'uuid', value: uuidOf },
      // Too many distinct values, detected late in the middle of a batch.
      { type: 'text', value: (row) => sampleOf.text(row < 30_000 ? 'same' : `text ${row}`) },
      // Too many bytes.
      {
        type: 'json',
        value: (row) => sampleOf.jsonb(row < 40_000 ? '{}' : `{"a": ${'1'.repeat(200)}${row}}`),
      },
      // Too many in the sample.
      { type: 'text', value: (row) => (row % 2 === 0 ? null : sampleOf.text(`text ${row % 9_000}`)) },
      // Few values, one too large.
      {
        type: 'text',
        value: (row) => sampleOf.text(row === 45_000 ? 'x'.repeat(1_048_573) : `text ${row % 2}`),
      },
    ]);
    expect(hasDictionary).toEqual([false, false, false, false, false]);
  });

  it('distinguishes values with equal hashes', async () => {
    // Pairs with the same hash that start and end alike.
    const alike = ['01234567-89ab-cdef-0123-456789abcdef', '01234567-89ab-ceef-0123-456743cbc6df'].map(
      sampleOf.uuid,
    );
    const texts = ['ab', 'abc', 'abcd', 'abcde', 'abcdf', ''].map(sampleOf.text);
    const hasDictionary = await writeAndRead(30, [
      { type: 'uuid', value: (row) => alike[row % 2] ?? null },
      { type: 'text', value: (row) => texts[row % 6] ?? null },
    ]);
    expect(hasDictionary).toEqual([true, true]);
  });

  it('supports a dictionary entry of the maximum size', async () => {
    const large = sampleOf.text('x'.repeat(1_048_572));
    const hasDictionary = await writeAndRead(4, [{ type: 'text', value: () => large }]);
    expect(hasDictionary).toEqual([true]);
  });

  it('of numbers, strings and times fills many pages, with nulls in between and at the end', async () => {
    const rows = 140_000;
    const unlessNull = (row: number, sample: Sample): Sample | null =>
      row % 20 === 0 || row > rows - 100 ? null : sample;
    const hasDictionary = await writeAndRead(rows, [
      { type: 'bigint', value: (row) => unlessNull(row, sampleOf.bigint(BigInt(row) ** 3n)) },
      {
        type: 'timestamp',
        value: (row) => sampleOf.timestamp(1_700_000_000_000_000n + BigInt(row) * 1_001n),
      },
      { type: 'integer', value: (row) => unlessNull(row, sampleOf.integer(row * 5_000)) },
      { type: 'boolean', value: (row) => unlessNull(row, sampleOf.boolean(row % 3 === 0)) },
    ]);
    expect(hasDictionary).toEqual([false, false, false, false]);
  });

  it('with a dictionary can fill many pages', async () => {
    // 14 bits per value.
    const value = (row: number): Sample | null =>
      row % 7 === 0 || row > 619_900
        ? null
        : sampleOf.integer(row < 5_000 ? row % 1_000 : (row * 7_919) % 9_001);
    const hasDictionary = await writeAndRead(620_000, [{ type: 'text', value: (row) => textOf(value(row)) }]);
    expect(hasDictionary).toEqual([true]);
  });
});

const textOf = (sample: Sample | null): Sample | null => (sample ? sampleOf.text(sample.text) : null);
