import { readFile, writeFile } from 'node:fs/promises';
import { brotliCompressSync, constants, createGzip, gzipSync, zstdCompressSync } from 'node:zlib';
import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { readRows } from '../../src/readers/read_rows.ts';
import { FileUnreadable, type RowShape } from '../../src/readers/row.ts';
import { collectGarbage } from '../setup/collect_garbage.ts';
import { casesOf } from '../setup/effort.ts';
import { parquetOf, varint, withFooter } from '../encoding/parquet/hostile_parquet.ts';

const mebibyte = 1_024 * 1_024;
const maxGrowthMiB = 300;
const shape: RowShape = { id: 'uuid', columns: [] };

/** Peak of the memory of this process above what it had before, in MiB. */
async function growthOf(work: () => Promise<unknown>): Promise<number> {
  const memory = async (field: string) =>
    Number(
      new RegExp(`^${field}:\\s*(\\d+) kB`, 'm').exec(await readFile('/proc/self/status', 'utf8'))?.[1],
    ) / 1_024;
  collectGarbage();
  await writeFile('/proc/self/clear_refs', '5');
  const before = await memory('VmRSS');
  await work();
  return Math.round((await memory('VmHWM')) - before);
}

/** Reads a file to its end. @returns the rows that were read, and the error */
async function read(key: string, bytes: Buffer, rows: number) {
  let count = 0;
  try {
    for await (const row of readRows({ key, rows, bytes: bytes.length }, chunksOf(bytes), shape))
      count += row.id === '' ? 0 : 1;
    return { count, error: null };
  } catch (error) {
    return { count, error };
  }
}

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 65_536)
    yield await Promise.resolve(bytes.subarray(at, at + 65_536));
}

async function expectUnreadable(key: string, bytes: Buffer, message: RegExp, rows = 1): Promise<void> {
  const outcome: { error: unknown } = { error: null };
  const grown = await growthOf(async () => {
    ({ error: outcome.error } = await read(key, bytes, rows));
  });
  expect(outcome.error).toBeInstanceOf(FileUnreadable);
  expect(String(outcome.error)).toMatch(message);
  expect(grown < maxGrowthMiB || grown).toBe(true);
}

/** Twice what a line may have, and more than the limit of memory. */
const bombBytes = 256 * mebibyte;

/** The same byte so many times, compressed with gzip. */
const createBomb = async (): Promise<Buffer> => {
  const chunk = Buffer.alloc(mebibyte, 'a');
  const chunks = Array.from({ length: bombBytes / mebibyte }, () => chunk);
  return buffer(Readable.from(chunks).pipe(createGzip({ level: 1 })));
};
let createdBomb: Promise<Buffer> | undefined;
const gzipBomb = (): Promise<Buffer> => (createdBomb ??= createBomb());

describe('a file whose manifest vouches for it', () => {
  const bombs: readonly [string, () => Promise<Buffer> | Buffer][] = [
    ['a.jsonl.gz', gzipBomb],
    ['a.jsonl.zst', () => zstdCompressSync(Buffer.alloc(bombBytes, 'a'))],
    [
      'a.csv.br',
      () =>
        brotliCompressSync(Buffer.alloc(bombBytes, 'a'), { params: { [constants.BROTLI_PARAM_QUALITY]: 0 } }),
    ],
  ];
  it.each(casesOf(bombs.slice(0, 1), bombs))(
    'that is one line of 256 MiB is unreadable (%s)',
    async (key, create) => {
      await expectUnreadable(key, await create(), /longer than/);
    },
  );

  it('that has more rows than it says is not read to its end', async () => {
    const line = '{"_inserted_at":"2026-01-01T10:00:00.000000Z","uuid":"u"}\n';
    const bytes = gzipSync(Buffer.from(line.repeat(2_000_000)));
    const { count, error } = await read('a.jsonl.gz', bytes, 1);
    expect(error).toBeInstanceOf(FileUnreadable);
    expect(count).toBeLessThan(100_000);
  });

  it('that is longer than it says is not stored to its end', async () => {
    const written = { bytes: 0 };
    async function* forever(): AsyncGenerator<Buffer> {
      for (; written.bytes < 64 * mebibyte; written.bytes += mebibyte)
        yield await Promise.resolve(Buffer.alloc(mebibyte));
    }
    const rows = readRows({ key: 'a.parquet', rows: 1, bytes: 10 }, forever(), shape);
    await expect(rows.next()).rejects.toThrow(FileUnreadable);
    expect(written.bytes).toBeLessThanOrEqual(mebibyte);
  });
});

/** Two values in PLAIN encoding. */
const plainValues = Buffer.concat(
  ['2026-01-01T10:00:00.000000Z', '2026-01-01T10:00:00.000001Z'].map((value) =>
    Buffer.concat([Buffer.from([value.length, 0, 0, 0]), Buffer.from(value)]),
  ),
);

describe('a Parquet file', () => {
  it('that is correct is read', async () => {
    const page = { body: plainValues, uncompressed: plainValues.length, values: 2 };
    expect(await read('a.parquet', parquetOf(page), 2)).toEqual({ count: 2, error: null });
    const compressed = { ...page, body: gzipSync(plainValues) };
    expect(await read('a.parquet', parquetOf(compressed, { codec: 2 }), 2)).toEqual({
      count: 2,
      error: null,
    });
  });

  it.each<[string, () => Promise<Buffer> | Buffer, RegExp]>([
    [
      'whose page unpacks to 256 MiB',
      async () => parquetOf({ body: await gzipBomb(), uncompressed: bombBytes, values: 2 }, { codec: 2 }),
      /page/,
    ],
    [
      'whose page unpacks to more than it says',
      async () => parquetOf({ body: await gzipBomb(), uncompressed: 100, values: 2 }, { codec: 2 }),
      /./,
    ],
    [
      'whose page has two billion values',
      () =>
        parquetOf(
          { body: plainValues, uncompressed: plainValues.length, values: 2 ** 31 - 1, encoding: 8 },
          { rows: 2 },
        ),
      /values/,
    ],
    [
      'whose row group has a trillion rows',
      () => parquetOf({ body: plainValues, uncompressed: plainValues.length, values: 2 }, { rows: 2 ** 40 }),
      /rows/,
    ],
    [
      'whose footer has a list of 30 million items',
      () => withFooter(Buffer.from('PAR1'), Buffer.from([0x29, 0xfc, ...varint(30_000_000), 0])),
      /footer/,
    ],
    [
      'whose footer nests lists of 30 million items',
      () =>
        withFooter(
          Buffer.from('PAR1'),
          Buffer.from([0x29, ...Array.from({ length: 20 }, () => [0xf9, ...varint(30_000_000)]).flat()]),
        ),
      /footer/,
    ],
    [
      'whose footer nests structs deeply',
      () => withFooter(Buffer.from('PAR1'), Buffer.alloc(500_000, 0x1c)),
      /footer/,
    ],
    [
      'whose footer has five million empty structs',
      () =>
        withFooter(
          Buffer.from('PAR1'),
          Buffer.concat([Buffer.from([0x29, 0xfc, ...varint(5_000_000)]), Buffer.alloc(5_000_001)]),
        ),
      /footer/,
    ],
    [
      'whose footer has 100 MiB',
      () => withFooter(Buffer.from('PAR1'), Buffer.alloc(100 * mebibyte)),
      /footer/,
    ],
  ])('%s is unreadable', async (_, create, message) => {
    await expectUnreadable('a.parquet', await create(), message, 2);
  });
});
