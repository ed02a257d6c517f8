import { setImmediate as nextTurn } from 'node:timers/promises';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { decompress } from '../../../src/verify/files/decompress.ts';
import { randomCases } from '../../setup/effort.ts';

/** Bytes in chunks of these sizes, repeatedly. */
async function* inChunks(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const size = sizes[index % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
    await nextTurn();
  }
}

/** Reads the output, slowly if `isSlow`. */
async function decompressed(chunks: AsyncIterable<Buffer>, codec: string, isSlow = false): Promise<Buffer> {
  const output: Buffer[] = [];
  for await (const chunk of decompress(chunks, codec)) {
    output.push(chunk);
    if (isSlow) await nextTurn();
  }
  return Buffer.concat(output);
}

/** Text that compresses moderately. */
const text = (length: number): Buffer =>
  Buffer.from(Array.from({ length }, (_, index) => String((index * 7_919) % 104_729)).join(','));

describe('decompress', () => {
  it('joins zstd frames, wherever chunks end and however slowly they are consumed', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 1, maxLength: 4 }),
        fc.array(fc.integer({ min: 100, max: 70_000 }), { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        async (lengths, sizes, isSlow) => {
          const parts = lengths.map(text);
          const frames = Buffer.concat(parts.map((part) => zstdCompressSync(part)));
          const whole = await decompressed(inChunks(frames, sizes), 'zst', isSlow);
          expect(whole.equals(Buffer.concat(parts))).toBe(true);
        },
      ),
      { numRuns: randomCases(50) },
    );
  });

  it.each([
    ['gz', gzipSync(text(50_000))],
    ['br', brotliCompressSync(text(5_000))],
    ['zst', zstdCompressSync(text(50_000))],
  ])('rejects truncated data, trailing data and other formats (%s)', async (codec, bytes) => {
    const read = (given: Buffer) => decompressed(inChunks(given, [1_000]), codec);
    const error = { name: 'FileUnreadable' };
    await expect(read(bytes.subarray(0, -3))).rejects.toMatchObject(error);
    await expect(read(Buffer.concat([bytes, Buffer.from('garbage')]))).rejects.toMatchObject(error);
    await expect(read(Buffer.from('something else'))).rejects.toMatchObject(error);
  });

  it('passes errors of chunks and uncompressed data through', async () => {
    const broken = async function* () {
      yield gzipSync('text').subarray(0, 5);
      await nextTurn();
      throw new RangeError('the connection');
    };
    await expect(decompressed(broken(), 'gz')).rejects.toThrow('the connection');
    expect((await decompressed(inChunks(Buffer.from('text'), [1]), '')).toString()).toBe('text');
  });
});
