import { afterAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { appendRows, textFormats } from '../../src/encoding/text_formats.ts';
import { createGrowingBuffer } from '../../src/encoding/memory.ts';
import { MalformedBlock, withoutInvalidText } from '../../src/encoding/rows.ts';
import type { ExportedColumn } from '../../src/source/row_selection.ts';
import { columnsOf, copyBlock, type FieldBytes, int32, int64, keyedBlock, planOf } from './copy_block.ts';
import { encodeRows } from './encode_rows.ts';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';

describe('JSON lines', () => {
  const doubles = [0.1, -0, 1e300, 5e-324, -12_345_678.5] as const;

  const encode = (columns: readonly ExportedColumn[], ...rows: FieldBytes[][]): string =>
    encodeRows(textFormats.JSONLines, columns, ...rows).text;

  it('preserve any string', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 100 })), (texts) => {
        const lines = encode(columnsOf('text'), ...texts.map((text) => [Buffer.from(text)]));
        expect(
          lines
            .split('\n')
            .slice(0, -1)
            .map((line) => (JSON.parse(line) as { c0: string }).c0),
        ).toEqual(texts);
      }),
    );
  });

  it('escape only what JSON requires', () => {
    const line = encode(columnsOf('text'), [Buffer.from('\u0001\b\t\n\f\r"\\/\u007f\u2028é😀')]);
    expect(line).toBe('{"c0":"\\u0001\\b\\t\\n\\f\\r\\"\\\\/\u007f\u2028é😀"}\n');
  });

  it('keep JSON unchanged, without the version byte and line breaks', () => {
    const jsonb = Buffer.from('\u0001{"a": 12345678901234567890.10, "__proto__": 1}');
    const json = Buffer.from('{"a":\r\n [1,\n 1e400], "a": "\\n\\u0000"}\n');
    expect(encode(columnsOf('json', 'json'), [jsonb, json])).toBe(
      '{"c0":{"a": 12345678901234567890.10, "__proto__": 1},"c1":{"a": [1, 1e400], "a": "\\n\\u0000"}}\n',
    );
  });

  it('write integers, booleans, uuids and null', () => {
    const columns = columnsOf('bigint', 'integer', 'boolean', 'boolean', 'uuid', 'timestamp', 'text');
    const uuid = Buffer.from('0123456789abcdef0123456789abcdef', 'hex');
    const line = encode(columns, [
      int64(-(2n ** 63n)),
      Buffer.from([255, 255, 255, 254]),
      Buffer.from([1]),
      Buffer.from([0]),
      uuid,
      int64(0n),
      null,
    ]);
    expect(line).toBe(
      '{"c0":-9223372036854775808,"c1":-2,"c2":true,"c3":false,' +
        '"c4":"01234567-89ab-cdef-0123-456789abcdef","c5":"2000-01-01T00:00:00.000000Z","c6":null}\n',
    );
  });

  it('write doubles and dates; infinities and NaN are texts', () => {
    const rows = ([...doubles, NaN, Infinity] as const).map((value) => {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleBE(value);
      return [bytes, int32(-10_957)];
    });
    const lines = encode(columnsOf('double', 'date'), ...rows)
      .trim()
      .split('\n');
    expect(lines).toEqual(
      ['0.1', '-0', '1e+300', '5e-324', '-12345678.5', '"NaN"', '"Infinity"'].map(
        (text) => `{"c0":${text},"c1":"1970-01-01"}`,
      ),
    );
  });

  it('leave out hidden columns', () => {
    const [first, second, third] = columnsOf('text', 'text', 'bigint');
    const columns = [{ ...first, hidden: true }, second, { ...third, hidden: true }] as ExportedColumn[];
    expect(encode(columns, [Buffer.from('a'), Buffer.from('b'), int64(1n)])).toBe('{"c1":"b"}\n');
  });

  it('leave out a row with an unrepresentable time, and report its position', () => {
    const infinity = int64(2n ** 63n - 1n);
    const good = [Buffer.from('ann'), int64(1n), Buffer.from('x')];
    const { text, bad } = encodeRows(
      textFormats.JSONLines,
      columnsOf('text', 'timestamp', 'text'),
      good,
      [Buffer.from('bob'), infinity, null],
      good,
    );
    const line = '{"c0":"ann","c1":"2000-01-01T00:00:00.000001Z","c2":"x"}\n';
    expect(text).toBe(line + line);
    expect(bad).toEqual([{ rowAt: copyBlock([good]).length, column: 'c1', reason: expect.any(String) }]);
  });

  it.each([
    ['a missing field', columnsOf('text', 'text'), [[Buffer.from('a')]]],
    ['a value of another size', columnsOf('bigint'), [[Buffer.from('a')]]],
  ])('reject a block with %s', (_, columns, rows) => {
    expect(() => encode(columns, ...rows)).toThrow(MalformedBlock);
  });

  it.each([
    ['ends too soon', copyBlock([[Buffer.from('abc')]]).subarray(0, -1), 1],
    ['holds other rows than announced', copyBlock([[null]]), 2],
  ])('reject a block that %s', (_, block, rows) => {
    const appending = () =>
      appendRows(
        createGrowingBuffer(1),
        { block, rows, columns: columnsOf('text') },
        textFormats.JSONLines,
        () => undefined,
      );
    expect(appending).toThrow(MalformedBlock);
  });
});

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
