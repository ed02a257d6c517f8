import { inflateRawSync } from 'node:zlib';
import { afterAll, describe, expect, it } from '@jest/globals';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import { EncoderThreadExited, startEncoderThreads } from '../../src/encoding/encoder_threads.ts';
import type { EncodingOptions, FileEncoder } from '../../src/encoding/encoder.ts';
import type { RowBlock } from '../../src/source/source.ts';
import { columnsOf, keyedBlock, planOf } from './copy_block.ts';
import { decompress, joinBlocks } from './join_blocks.ts';

const columns = columnsOf('text');
const jsonLines = { file_format: 'JSONLines', compression: null, on_bad_row: 'fail' } as const;
const blockOf = (...texts: string[]): RowBlock => ({
  ...keyedBlock(
    columns,
    texts.map((text) => [Buffer.from(text)]),
  ),
  first: { inserted_at: 'a', id: texts[0] ?? '' },
  last: { inserted_at: 'b', id: texts.at(-1) ?? '' },
});

describe('the encoder pool', () => {
  const pool = createEncoderPool({ threads: 2 });
  afterAll(() => pool.close());

  const compressions = [null, 'gzip', 'zstd', 'brotli'] as const;
  const encoderOf = (options: EncodingOptions): FileEncoder => pool.fileEncoder(options, columns);

  it.each(compressions)('joins many blocks to one file, compression %s', async (compression) => {
    const encoder = encoderOf({ ...jsonLines, compression });
    const texts = Array.from({ length: 9 }, (_, block) => [`${block} first`, 'x'.repeat(block * 5_000), '']);
    const blocks = await Promise.all(texts.map((values) => encoder.encode(blockOf(...values))));
    const text = decompress(await joinBlocks(encoder, blocks), compression);
    expect(text.toString()).toBe(
      texts
        .flat()
        .map((value) => `{"c0":"${value}"}\n`)
        .join(''),
    );
    expect(blocks[3]).toMatchObject({ rows: 3, first: blockOf('3 first').first, last: blockOf('').last });
  });

  it('writes a single gzip member, because some readers stop after the first', async () => {
    const encoder = encoderOf({ ...jsonLines, compression: 'gzip' });
    const blocks = await Promise.all(['a', 'b', 'c'].map((text) => encoder.encode(blockOf(text))));
    const file = await joinBlocks(encoder, blocks);
    const { engine } = inflateRawSync(file.subarray(10), { info: true }) as unknown as {
      engine: { bytesWritten: number };
    };
    expect(engine.bytesWritten).toBe(file.length - 18);
  });

  it.each(compressions)('writes a valid file without blocks, compression %s', async (compression) => {
    const ofJson = await joinBlocks(encoderOf({ ...jsonLines, compression }), []);
    expect(decompress(ofJson, compression)).toHaveLength(0);
    const ofCsv = await joinBlocks(encoderOf({ file_format: 'CSV', compression, on_bad_row: 'fail' }), []);
    expect(decompress(ofCsv, compression).toString()).toBe('c0\n');
  });

  it('transfers the buffer of a block, unless it is shared', async () => {
    const encoder = encoderOf(jsonLines);
    const own = blockOf('a');
    const shared = { ...own, block: Buffer.from(own.block) };
    await Promise.all([encoder.encode(own), encoder.encode(shared)]);
    expect(own.block).toHaveLength(0);
    expect(shared.block.length).toBeGreaterThan(0);
    await expect(encoder.encode(own)).rejects.toThrow();
    await expect(encoder.encode(blockOf('b'))).resolves.toMatchObject({ rows: 1 });
  });

  it('rejects a block with another number of rows than declared', async () => {
    const encoder = encoderOf(jsonLines);
    await expect(encoder.encode({ ...blockOf('a'), rows: 2 })).rejects.toThrow('1 rows, expected 2');
  });

  it('replaces a thread after an unexpected error', async () => {
    const column = { name: 'c0', type: 'unknown' as 'text' };
    const unknown = pool.fileEncoder(jsonLines, [column]);
    const block = blockOf('a');
    const read = [column, ...block.columns.slice(1)];
    await expect(unknown.encode({ ...block, columns: read })).rejects.toThrow(EncoderThreadExited);
    await expect(encoderOf(jsonLines).encode(blockOf('b'))).resolves.toMatchObject({ rows: 1 });
  });

  it('rejects pending blocks when it is closed', async () => {
    const closing = createEncoderPool({ threads: 1 });
    const encoder = closing.fileEncoder(jsonLines, columns);
    const encoded = Promise.allSettled([1, 2, 3, 4].map((number) => encoder.encode(blockOf(String(number)))));
    await closing.close();
    for (const outcome of await encoded)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'EncoderThreadExited' } });
    await expect(encoder.encode(blockOf('late'))).rejects.toThrow(EncoderThreadExited);
  });
});

describe('an encoder thread that exits', () => {
  const program = new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', (task) => {
        if (task.rows === 0) throw new Error('out of luck');
        if (task.rows === 1) process.exit();
        parentPort.postMessage({ id: task.id, outcome: 'encoded', bytes: new Uint8Array(1) });
      });`)}`,
  );

  const threads = startEncoderThreads({ count: 1, unusedBlockBytes: 0 }, program);
  afterAll(() => threads.close());

  it('fails its blocks and is replaced for the others', async () => {
    const encode = (rows: number) =>
      threads
        .run({ options: jsonLines, columns, block: Buffer.alloc(0), rows, fingerprint: planOf(0, 1) })
        .then(
          () => 'encoded',
          (error: unknown) => String(error),
        );
    // A thread has the current block and the next one.
    expect(await Promise.all([0, 2, 1, 2, 2, 2].map(encode))).toEqual([
      'EncoderThreadExited: An encoder thread exited: out of luck.',
      'EncoderThreadExited: An encoder thread exited: out of luck.',
      'EncoderThreadExited: An encoder thread exited: it was stopped.',
      'EncoderThreadExited: An encoder thread exited: it was stopped.',
      'encoded',
      'encoded',
    ]);
  });
});
