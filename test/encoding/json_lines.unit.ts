import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createGrowingBuffer } from '../../src/encoding/memory.ts';
import { jsonLines } from '../../src/encoding/json_lines.ts';
import { MalformedBlock } from '../../src/encoding/rows.ts';
import { appendRows } from '../../src/encoding/text_format.ts';
import type { ExportedColumn } from '../../src/source/row_selection.ts';
import { columnsOf, copyBlock, int32, int64, type FieldBytes } from './copy_block.ts';
import { encodeRows } from './encode_rows.ts';

const doubles = [0.1, -0, 1e300, 5e-324, -12_345_678.5] as const;

const encode = (columns: readonly ExportedColumn[], ...rows: FieldBytes[][]): string =>
  encodeRows(jsonLines, columns, ...rows).text;

describe('JSON lines', () => {
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

  it('write doubles and dates; infinities and NaN are null', () => {
    const rows = ([...doubles, NaN, Infinity] as const).map((value) => {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleBE(value);
      return [bytes, int32(-10_957)];
    });
    const lines = encode(columnsOf('double', 'date'), ...rows)
      .trim()
      .split('\n');
    expect(lines).toEqual(
      ['0.1', '-0', '1e+300', '5e-324', '-12345678.5', 'null', 'null'].map(
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
      jsonLines,
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
        jsonLines,
        () => undefined,
      );
    expect(appending).toThrow(MalformedBlock);
  });
});
