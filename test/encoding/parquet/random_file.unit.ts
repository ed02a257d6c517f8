import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parquetCompressions } from '../../../src/encoding/encoder.ts';
import type { ColumnType } from '../../../src/source/row_selection.ts';
import { columnsOf } from '../copy_block.ts';
import { sampleOf, textsOf, times, type Sample, type SampleRow } from './samples.ts';
import { fileOf, readWithHyparquet, rowGroupOf, useDuckDb } from './written_file.ts';
import { randomCases } from '../../setup/effort.ts';

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
  timestamp: fc.bigInt(times.year4714bc, times.last).map(sampleOf.timestamp),
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

describe('a random file', () => {
  it('reads back its rows', async () => {
    await fc.assert(
      fc.asyncProperty(fileArb, async ({ columns, compression, groups }) => {
        const encoded = groups.map((rows) => rowGroupOf(columns, compression, rows));
        const file = fileOf(columns, compression, encoded);
        const expected = groups.flat().map(textsOf);
        expect(await readWithHyparquet(file, columns)).toEqual(expected);
        expect(await readWithDuckDb(file, columns)).toEqual(expected);
      }),
      { numRuns: randomCases(40) },
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
      { numRuns: randomCases(6) },
    );
  });
});
