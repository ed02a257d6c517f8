import { crc32 } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { combineCrc32 } from '../../src/encoding/compression.ts';

describe('combineCrc32', () => {
  it('is the CRC-32 of the concatenated texts', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ maxLength: 300 }), (left, right) => {
        expect(combineCrc32(crc32(left), crc32(right), right.length)).toBe(
          crc32(Buffer.concat([left, right])),
        );
      }),
    );
  });

  it('supports texts longer than 4 GiB', () => {
    // 2^33 zero bytes, by doubling.
    let crc = crc32(Buffer.alloc(1));
    for (let length = 1; length < 2 ** 33; length *= 2) crc = combineCrc32(crc, crc, length);
    const megabyte = Buffer.alloc(1024 * 1024);
    let expected = 0;
    for (let index = 0; index < 8192; index += 1) expected = crc32(megabyte, expected);
    expect(crc).toBe(expected);
  });
});
