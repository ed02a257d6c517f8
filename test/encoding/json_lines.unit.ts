import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createGrowingBuffer } from '../../src/encoding/growing_buffer.ts';
import { appendJsonLines } from '../../src/encoding/json_lines.ts';
import { MalformedBlock, RowNotEncodable } from '../../src/encoding/row_not_encodable.ts';
import type { ExportedColumn } from '../../src/source/source.ts';
import { columnsOf, copyBlock, int64, type FieldBytes } from './copy_block.ts';

function encode(columns: readonly ExportedColumn[], ...rows: FieldBytes[][]): string {
  // So small that it has to grow at every step.
  const target = createGrowingBuffer(1);
  expect(appendJsonLines(target, copyBlock(rows), columns)).toBe(rows.length);
  return target.bytes.toString('utf8', 0, target.length);
}

describe('JSON lines', () => {
  it('give any text back', () => {
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

  it('escape what JSON demands and nothing else', () => {
    const line = encode(columnsOf('text'), [Buffer.from('\u0001\b\t\n\f\r"\\/\u007f\u2028é😀')]);
    expect(line).toBe('{"c0":"\\u0001\\b\\t\\n\\f\\r\\"\\\\/\u007f\u2028é😀"}\n');
  });

  it('pass JSON on as it is, without its version and its line breaks', () => {
    const jsonb = Buffer.from('\u0001{"a": 12345678901234567890.10, "__proto__": 1}');
    const json = Buffer.from('{"a":\r\n [1,\n 1e400], "a": "\\n\\u0000"}\n');
    expect(encode(columnsOf('json', 'json'), [jsonb, json])).toBe(
      '{"c0":{"a": 12345678901234567890.10, "__proto__": 1},"c1":{"a": [1, 1e400], "a": "\\n\\u0000"}}\n',
    );
  });

  it('write whole numbers, booleans, uuids and null', () => {
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

  it('name the row and the column of a time that has no text', () => {
    const columns: ExportedColumn[] = [
      { name: 'distinct_id', type: 'text' },
      { name: 'created_at', type: 'timestamp' },
    ];
    const infinity = int64(2n ** 63n - 1n);
    const refused = () => encode(columns, [Buffer.from('ann'), int64(1n)], [Buffer.from('bob'), infinity]);
    expect(refused).toThrow(RowNotEncodable);
    expect(refused).toThrow('The row bob cannot be exported: its column created_at holds a time');
  });

  it.each([
    ['a missing field', columnsOf('text', 'text'), [[Buffer.from('a')]]],
    ['a value of another size', columnsOf('bigint'), [[Buffer.from('a')]]],
  ])('refuse a block with %s', (_, columns, rows) => {
    expect(() => encode(columns, ...rows)).toThrow(MalformedBlock);
  });

  it('refuse a block that ends too soon', () => {
    const block = copyBlock([[Buffer.from('abc')]]).subarray(0, -1);
    expect(() => appendJsonLines(createGrowingBuffer(1), block, columnsOf('text'))).toThrow(MalformedBlock);
  });
});
