import { describe, expect, it } from '@jest/globals';
import { extensionsOf } from '../../../src/verify/files/read_rows.ts';

describe('the extensions of a key', () => {
  it.each([
    ['a.b/20261101T100000Z-20261101T110000Z.jsonl', 'jsonl', ''],
    ['20261101T100000Z-20261101T110000Z-3-g2.csv.zst', 'csv', 'zst'],
    ['20261101T100000Z-20261101T110000Z-0.3.jsonl.gz', 'jsonl', 'gz'],
    ['20261101T100000Z-20261101T110000Z-0.3-g2.parquet', 'parquet', ''],
    ['20261101T100000Z-20261101T110000Z.constructor', '', ''],
  ])('%s', (key, format, codec) => {
    expect(extensionsOf(key)).toEqual({ format, codec });
  });
});
