import { afterAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import { withoutInvalidText } from '../../src/encoding/rows.ts';
import type { ExportedColumn } from '../../src/source/row_selection.ts';
import { columnsOf, copyBlock, int64, keyedBlock, planOf } from './copy_block.ts';

describe('rows with text that is not UTF-8', () => {
  it('are removed, and no others', () => {
    const columns = columnsOf('text', 'uuid', 'json');
    const text = fc.oneof(
      fc.uint8Array({ maxLength: 12 }),
      fc.string({ unit: 'binary' }).map((value) => Buffer.from(value)),
    );
    // A uuid can contain any bytes.
    const row = fc.tuple(fc.option(text), fc.uint8Array({ minLength: 16, maxLength: 16 }), text);
    fc.assert(
      fc.property(fc.array(row), (given) => {
        const rows = given.map((values) => values.map((value) => value && Buffer.from(value)));
        const isValid = (value: Buffer | null | undefined): boolean =>
          !value || Buffer.from(value.toString()).equals(value);
        const good = rows.filter(([first, , third]) => isValid(first) && isValid(third));
        const bad: string[] = [];
        const left = withoutInvalidText(
          { block: copyBlock(rows), rows: rows.length, columns },
          ({ column }) => bad.push(column),
        );
        expect(left.rows).toBe(good.length);
        expect(left.block.equals(copyBlock(good))).toBe(true);
        expect(bad).toEqual(
          rows
            .filter(([first, , third]) => !isValid(first) || !isValid(third))
            .map(([first]) => (isValid(first) ? 'c2' : 'c0')),
        );
      }),
    );
  });

  const pool = createEncoderPool({ threads: 1 });
  afterAll(() => pool.close());
  const columns: ExportedColumn[] = [
    { name: 'distinct_id', type: 'text' },
    { name: 'event', type: 'text' },
  ];
  const broken = Buffer.from([0x61, 0xff, 0x62]);
  const block = () => ({
    ...keyedBlock(columns, [
      [Buffer.from('ann'), Buffer.from('good')],
      [Buffer.from('bob'), broken],
      [Buffer.from('cat'), null],
    ]),
    first: { inserted_at: 'a', id: 'ann' },
    last: { inserted_at: 'b', id: 'cat' },
  });

  it.each(['JSONLines', 'CSV', 'Parquet'] as const)('never reach a %s file', async (file_format) => {
    const rejecting = pool.fileEncoder({ file_format, compression: null, on_bad_row: 'reject' }, columns);
    const encoded = await rejecting.encode(block());
    expect(encoded).toMatchObject({
      rows: 2,
      rejected: [
        {
          id: 'bob',
          column: 'event',
          reason: 'contains bytes that are not UTF-8',
          row: '{"distinct_id":"bob","event":"a\ufffdb"}',
        },
      ],
    });
    expect(encoded.bytes.includes(broken)).toBe(false);
    const failing = pool.fileEncoder({ file_format, compression: null, on_bad_row: 'fail' }, columns);
    await expect(failing.encode(block())).rejects.toThrow(
      'Row bob cannot be exported: column event contains bytes that are not UTF-8.',
    );
  });

  it.each<[string, number]>([
    ['few', 2],
    // More than a dictionary has.
    ['many', 2_000],
  ])('are found where a character continues in the next of %s distinct values', async (_, values) => {
    const [start, end] = [Buffer.from([0x61, 0xc3]), Buffer.from([0xa9, 0x62])];
    const rows = Array.from({ length: values * 4 }, (__, row) => {
      const text = Buffer.from(`text ${row % values}`);
      if (row % values > 1) return [text, text];
      return [text, row % values === 0 ? Buffer.concat([text, start]) : Buffer.concat([end, text])];
    });
    const { rows: encoded, rejected } = await pool
      .fileEncoder({ file_format: 'Parquet', compression: null, on_bad_row: 'reject' }, columns)
      .encode({ ...block(), ...keyedBlock(columns, rows) });
    expect([encoded, rejected.length]).toEqual([rows.length - 8, 8]);
  });

  it.each(['JSONLines', 'CSV', 'Parquet'] as const)(
    'are rejected in the order of their keys, together with other rows that %s cannot represent',
    async (file_format) => {
      const good = Buffer.from('good');
      const [finite, infinity] = [int64(0n), int64(0x7fff_ffff_ffff_ffffn)];
      const rows = [
        [infinity, good, int64(1n), Buffer.from('z')],
        [finite, good, int64(2n), Buffer.from('y')],
        [finite, broken, int64(2n), Buffer.from('z')],
        [infinity, good, int64(3n), Buffer.from('a')],
        [finite, broken, int64(3n), Buffer.from('b')],
        [infinity, good, int64(3n), Buffer.from('c')],
      ];
      const keyed: ExportedColumn[] = [
        { name: 'timestamp', type: 'timestamp' },
        { name: 'event', type: 'text' },
        { name: '_inserted_at', type: 'timestamp' },
        { name: 'distinct_id', type: 'text' },
      ];
      const { rejected } = await pool
        .fileEncoder({ file_format, compression: null, on_bad_row: 'reject' }, keyed)
        .encode({
          columns: keyed,
          block: copyBlock(rows),
          rows: rows.length,
          fingerprint: planOf(2, 3),
          first: { inserted_at: 'a', id: 'z' },
          last: { inserted_at: 'c', id: 'c' },
        });
      expect(rejected.map(({ id, column }) => [id, column])).toEqual([
        ['z', 'timestamp'],
        ['z', 'event'],
        ['a', 'timestamp'],
        ['b', 'event'],
        ['c', 'timestamp'],
      ]);
    },
  );
});
