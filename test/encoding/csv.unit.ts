import { describe, expect, it } from '@jest/globals';
import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { csv } from '../../src/encoding/csv.ts';
import { columnsOf, int64 } from './copy_block.ts';
import { encodeRows } from './encode_rows.ts';

const textArb = fc.array(
  fc.oneof(
    fc.constantFrom('"', ',', '\r', '\n', ' ', '\t', 'a', 'é', '\u2028'),
    fc.string({ unit: 'binary' }),
  ),
  { maxLength: 20 },
);

describe('CSV', () => {
  it('preserves any string, and distinguishes null from an empty string', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.option(textArb), textArb)), (given) => {
        const rows = given.map(([first, second]) => [
          first === null ? null : first.join(''),
          second.join(''),
        ]);
        const { text } = encodeRows(
          csv,
          columnsOf('text', 'text'),
          ...rows.map((row) => row.map((value) => (value === null ? null : Buffer.from(value)))),
        );
        // The parser reports which fields were quoted.
        const read = parse(text, {
          record_delimiter: '\n',
          cast: (value, { quoting }) => (value === '' && !quoting ? null : value),
        });
        expect(read).toEqual(rows);
      }),
    );
  });

  it('quotes only if necessary', () => {
    const values = ['a b', ' a', 'a\t', '"', ',', '\r', '', "'", ';', '\\N', 'NULL'];
    const { text } = encodeRows(
      csv,
      columnsOf(...values.map(() => 'text' as const)),
      values.map((value) => Buffer.from(value)),
    );
    expect(text).toBe('a b," a","a\t","""",",","\r","",\',;,\\N,NULL\n');
  });

  it('writes numbers, booleans, uuids, times and null without quotes', () => {
    const columns = columnsOf('bigint', 'integer', 'boolean', 'boolean', 'uuid', 'timestamp', 'text');
    const { text } = encodeRows(csv, columns, [
      int64(2n ** 63n - 1n),
      Buffer.from([255, 255, 255, 254]),
      Buffer.from([1]),
      Buffer.from([0]),
      Buffer.from('0123456789abcdef0123456789abcdef', 'hex'),
      int64(-1n),
      null,
    ]);
    expect(text).toBe(
      '9223372036854775807,-2,true,false,01234567-89ab-cdef-0123-456789abcdef,1999-12-31T23:59:59.999999Z,\n',
    );
  });

  it('writes JSON without the version byte and line breaks', () => {
    const json = Buffer.from('{"a":\r\n [1,\n 1e400], "b": "\\n\\u0000"}\n');
    const { text } = encodeRows(csv, columnsOf('json', 'json', 'json'), [
      Buffer.from('\u0001{}'),
      Buffer.from('null'),
      json,
    ]);
    expect(text).toBe('{},null,"{""a"": [1, 1e400], ""b"": ""\\n\\u0000""}"\n');
  });

  it('starts with the column names', () => {
    const columns = ['plain', 'with "quotes"', 'a,b'].map((name) => ({ name, type: 'text' as const }));
    expect(csv.header(columns).toString()).toBe('plain,"with ""quotes""","a,b"\n');
  });

  it('leaves out a row with an unrepresentable time', () => {
    const { text, bad } = encodeRows(csv, columnsOf('timestamp', 'text'), [
      int64(-(2n ** 63n)),
      Buffer.from('never'),
    ]);
    expect(text).toBe('');
    expect(bad).toMatchObject([{ rowAt: 0, column: 'c0' }]);
  });
});
