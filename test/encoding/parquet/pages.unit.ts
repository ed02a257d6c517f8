import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parquetCompressions } from '../../../src/encoding/encoder.ts';
import { joinRowGroup } from '../../../src/encoding/parquet/join_row_group.ts';
import { type ColumnType, fileColumns } from '../../../src/source/row_selection.ts';
import { casesOf, randomCases } from '../../setup/effort.ts';
import { columnsOf } from '../copy_block.ts';
import { type Sample, sampleOf, type SampleRow, samples, textsOf, times } from './samples.ts';
import { fileOf, fragmentOf, readWithHyparquet, rowGroupOf, useDuckDb } from './written_file.ts';

describe('a column', () => {
  const readWithDuckDb = useDuckDb();

  /**
   * Writes columns of rows and reads them back with two readers.
   * @param blocks in which the rows arrive
   * @returns whether each column has a dictionary
   */
  async function writeAndRead(
    rows: number,
    columns: readonly { type: ColumnType; value: (row: number) => Sample | null }[],
    blocks = 1,
  ): Promise<boolean[]> {
    const exported = columnsOf(...columns.map(({ type }) => type));
    const written = Array.from({ length: rows }, (_, row): SampleRow =>
      columns.map(({ value }) => value(row)),
    );
    const fragments = Array.from({ length: blocks }, (_, block) =>
      fragmentOf(exported, 'zstd', written.slice((block * rows) / blocks, ((block + 1) * rows) / blocks)),
    );
    const group = joinRowGroup(fragments, exported, { compression: 'zstd' });
    const file = fileOf(exported, 'zstd', [group]);
    const expected = JSON.stringify(written.map(textsOf));
    // Compared as one value, because a diff of so many rows does not help.
    expect(JSON.stringify(await readWithHyparquet(file, exported)) === expected).toBe(true);
    expect(JSON.stringify(await readWithDuckDb(file, exported)) === expected).toBe(true);
    return group.rowGroup.columns.map(({ dictionary }) => dictionary !== undefined);
  }

  const uuidOf = (number: number): Sample =>
    sampleOf.uuid(`00000000-0000-4000-8000-${String(number).padStart(12, '0')}`);

  const textOf = (sample: Sample | null): Sample | null => (sample ? sampleOf.text(sample.text) : null);

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
    const late = await writeAndRead(25_000, [
      // Too many distinct values, detected late in the middle of a batch.
      { type: 'text', value: (row) => sampleOf.text(row < 6_000 ? 'same' : `text ${row}`) },
    ]);
    const others = await writeAndRead(9_000, [
      { type: 'uuid', value: uuidOf },
      // Too many bytes.
      {
        type: 'json',
        value: (row) => sampleOf.jsonb(row < 6_000 ? '{}' : `{"a": ${'1'.repeat(500)}${row}}`),
      },
      // Too many in the sample.
      { type: 'text', value: (row) => (row % 2 === 0 ? null : sampleOf.text(`text ${row % 9_000}`)) },
      // Few values, one too large.
      {
        type: 'text',
        value: (row) => sampleOf.text(row === 7_000 ? 'x'.repeat(1_048_573) : `text ${row % 2}`),
      },
    ]);
    expect([...late, ...others]).toEqual([false, false, false, false, false]);
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
    const unlessNull = (row: number, rows: number, sample: Sample): Sample | null =>
      row % 20 === 0 || row > rows - 100 ? null : sample;
    // More than a page of 8 bytes each.
    const rows = 140_000;
    const eightBytes = await writeAndRead(rows, [
      { type: 'bigint', value: (row) => unlessNull(row, rows, sampleOf.bigint(BigInt(row) ** 3n)) },
      {
        type: 'timestamp',
        value: (row) => sampleOf.timestamp(1_700_000_000_000_000n + BigInt(row) * 1_001n),
      },
    ]);
    // A page for each block.
    const fewRows = 8_000;
    const smaller = await writeAndRead(
      fewRows,
      [
        { type: 'integer', value: (row) => unlessNull(row, fewRows, sampleOf.integer(row * 5_000)) },
        { type: 'boolean', value: (row) => unlessNull(row, fewRows, sampleOf.boolean(row % 3 === 0)) },
      ],
      4,
    );
    expect([...eightBytes, ...smaller]).toEqual([false, false, false, false]);
  });

  it('with a dictionary can fill many pages', async () => {
    // A page for each block, with 14 bits per value; the last blocks end with nulls, or have nothing else.
    const rows = 80_000;
    const blocks = 8;
    const value = (row: number): Sample | null => {
      const inBlock = row % (rows / blocks);
      if (row % 7 === 0 || row > rows - 15_000) return null;
      return sampleOf.integer(inBlock < 5_000 ? inBlock % 1_000 : (row * 7_919) % 9_001);
    };
    const columns = [{ type: 'text', value: (row: number) => textOf(value(row)) }] as const;
    expect(await writeAndRead(rows, columns, blocks)).toEqual([true]);
  });
});

describe('a random file', () => {
  const readWithDuckDb = useDuckDb();

  const types: ColumnType[] = [
    'uuid',
    'text',
    'timestamp',
    'date',
    'json',
    'bigint',
    'integer',
    'double',
    'boolean',
  ];

  /** A random value of each type. Times are within the calendar. */
  const sampleArb: Record<ColumnType, fc.Arbitrary<Sample>> = {
    uuid: fc.uuid().map(sampleOf.uuid),
    text: fc.string({ unit: 'binary', maxLength: 30 }).map(sampleOf.text),
    json: fc.json().chain((json) => fc.constantFrom(sampleOf.json(json), sampleOf.jsonb(json))),
    timestamp: fc.bigInt(times.year1, times.year9999).map(sampleOf.timestamp),
    bigint: fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n).map(sampleOf.bigint),
    integer: fc.integer().map(sampleOf.integer),
    date: fc.integer({ min: -719_162, max: 2_932_896 }).map(sampleOf.date),
    double: fc.double().map((value) => sampleOf.double(Object.is(value, -0) ? 0 : value)),
    boolean: fc.boolean().map(sampleOf.boolean),
  };

  /** Random columns and row groups with repeated values, nulls and runs. */
  const fileArb = fc.array(fc.constantFrom(...types), { minLength: 1, maxLength: 6 }).chain((chosen) =>
    fc.record({
      columns: fc.constant(columnsOf(...chosen)),
      compression: fc.constantFrom(null, ...parquetCompressions),
      groups: fc.array(
        fc
          .array(
            fc.tuple(
              fc.tuple(...chosen.map((type) => fc.option(sampleArb[type], { freq: 3 }))),
              fc.constantFrom(1, 1, 1, 2, 9, 40),
            ),
            { minLength: 1, maxLength: 20 },
          )
          .map((runs) => runs.flatMap(([row, times]) => Array.from({ length: times }, () => row))),
        { minLength: 1, maxLength: 3 },
      ),
    }),
  );

  it('reads back its rows', async () => {
    await fc.assert(
      fc.asyncProperty(fileArb, async ({ columns, compression, groups }) => {
        const encoded = groups.map((rows) => rowGroupOf(columns, compression, rows));
        const file = fileOf(columns, compression, encoded);
        const expected = groups.flat().map(textsOf);
        expect(await readWithHyparquet(file, columns)).toEqual(expected);
        expect(await readWithDuckDb(file, columns)).toEqual(expected);
      }),
      { numRuns: randomCases(20) },
    );
  });

  it('reads back its rows wherever pages end', async () => {
    const columns = columnsOf('text', 'boolean');
    // Around the page limit, including the length prefix of each value.
    const lengths = [0, 1, 400_000, 1_048_571, 1_048_572, 1_048_573, 1_500_000];
    const anyRow = fc.tuple(
      fc.option(fc.constantFrom(...lengths)),
      fc.option(fc.boolean().map(sampleOf.boolean)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(anyRow, { minLength: 1, maxLength: 12 }), async (drawn) => {
        const rows = drawn.map(([length, boolean], index): SampleRow => [
          length === null ? null : sampleOf.text(String.fromCharCode(97 + index).repeat(length)),
          boolean,
        ]);
        const file = fileOf(columns, null, [rowGroupOf(columns, null, rows)]);
        const read = await readWithHyparquet(file, columns);
        expect(read.map(([text]) => text?.length ?? null)).toEqual(drawn.map(([length]) => length));
        expect(JSON.stringify(read) === JSON.stringify(rows.map(textsOf))).toBe(true);
      }),
      { numRuns: randomCases(3) },
    );
  });
});

describe('row group', () => {
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
  });

  // Pages are cut before they are compressed.
  it.each(casesOf([null, 'zstd'] as const, [null, ...parquetCompressions]))(
    'supports values larger than a page, compression %s',
    async (compression) => {
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
    },
  );

  describe('a row group', () => {
    it('distinguishes empty strings from null', async () => {
      const columns = columnsOf('text');
      const rows: SampleRow[] = [[sampleOf.text('')], [null], [sampleOf.text('')], [null]];
      const file = fileOf(columns, 'zstd', [rowGroupOf(columns, 'zstd', rows)]);
      expect(await readWithDuckDb(file, columns)).toEqual([[''], [null], [''], [null]]);
      expect(await readWithHyparquet(file, columns)).toEqual([[''], [null], [''], [null]]);
    });

    it.each(casesOf([5], [50]))('supports a value of %i MB', async (megabytes) => {
      const columns = columnsOf('uuid', 'json');
      const json = JSON.stringify({ large: 'z"\n\u2028'.repeat(126_000 * megabytes) });
      const rows: SampleRow[] = [
        [samples.uuid[0] ?? null, sampleOf.jsonb('{"small": true}')],
        [samples.uuid[1] ?? null, sampleOf.jsonb(json)],
      ];
      const file = fileOf(columns, 'zstd', [rowGroupOf(columns, 'zstd', rows)]);
      const read = await readWithHyparquet(file, columns);
      expect(read.map(([uuid]) => uuid)).toEqual(samples.uuid.slice(0, 2).map(({ text }) => text));
      expect(read[0]?.[1]).toBe('{"small": true}');
      // Compared as one value, because a diff of so much does not help.
      expect(read[1]?.[1] === json).toBe(true);
    });

    it('is the same for the same rows, whatever was encoded before', () => {
      const first = rowGroupOf(everyType, 'zstd', rowsWithNulls);
      const others = columnsOf('text');
      rowGroupOf(others, 'gzip', [[sampleOf.text('x'.repeat(2_000_000))], [null]]);
      expect(rowGroupOf(everyType, 'zstd', rowsWithNulls)).toEqual(first);
    });

    it('has a separate buffer that can be transferred', () => {
      for (const rows of [rowsOfNulls, rowsWithNulls]) {
        const { bytes } = rowGroupOf(everyType, null, rows);
        expect(bytes.buffer.byteLength).toBe(bytes.length);
      }
    });
  });
});
