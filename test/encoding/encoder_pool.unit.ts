import { gunzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from '@jest/globals';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import { EncoderThreadLost, startEncoderThreads } from '../../src/encoding/encoder_threads.ts';
import type { Page } from '../../src/source/source.ts';
import { columnsOf, copyBlock } from './copy_block.ts';

const columns = columnsOf('text');
const pageOf = (...texts: string[]): Page => ({
  columns,
  block: copyBlock(texts.map((text) => [Buffer.from(text)])),
  rows: texts.length,
  first: { inserted_at: 'a', id: texts[0] ?? '' },
  last: { inserted_at: 'b', id: texts.at(-1) ?? '' },
});

describe('the encoder pool', () => {
  const pool = createEncoderPool({ threads: 2 });
  afterAll(() => pool.close());

  it.each(['gzip', null] as const)('makes one file of many pages, compression %s', async (compression) => {
    const encoder = pool.fileEncoder({ file_format: 'JSONLines', compression }, columns);
    const pages = Array.from({ length: 9 }, (_, page) =>
      pageOf(`${page} first`, 'x'.repeat(page * 50_000), ''),
    );
    const expected = pages.flatMap(({ block }, page) => {
      expect(block.length).toBeGreaterThan(0);
      return [`${page} first`, 'x'.repeat(page * 50_000), ''];
    });
    const blocks = await Promise.all(pages.map((page) => encoder.encode(page)));
    const state = blocks.reduce((before, block) => encoder.advance(before, block), encoder.initialState);
    const file = Buffer.concat([
      encoder.header(),
      ...blocks.map(({ bytes }) => bytes),
      encoder.trailer(state),
    ]);
    const text = compression === 'gzip' ? gunzipSync(file) : file;
    expect(text.toString()).toBe(expected.map((value) => `{"c0":"${value}"}\n`).join(''));
    expect(state.length).toBe(text.length);
    expect(blocks[3]).toMatchObject({ rows: 3, first: pages[3]?.first, last: pages[3]?.last });
  });

  it('makes a valid file of no pages', () => {
    const encoder = pool.fileEncoder({ file_format: 'JSONLines', compression: 'gzip' }, columns);
    const file = Buffer.concat([encoder.header(), encoder.trailer(encoder.initialState)]);
    expect(gunzipSync(file)).toHaveLength(0);
  });

  it('takes the memory of a page, but never that which others share', async () => {
    const encoder = pool.fileEncoder({ file_format: 'JSONLines', compression: null }, columns);
    const own = pageOf('a');
    const shared = { ...own, block: Buffer.from(own.block) };
    await Promise.all([encoder.encode(own), encoder.encode(shared)]);
    expect(own.block).toHaveLength(0);
    expect(shared.block.length).toBeGreaterThan(0);
    await expect(encoder.encode(own)).rejects.toThrow();
    await expect(encoder.encode(pageOf('b'))).resolves.toMatchObject({ rows: 1 });
  });

  it('refuses a page whose block holds other rows than it says', async () => {
    const encoder = pool.fileEncoder({ file_format: 'JSONLines', compression: null }, columns);
    await expect(encoder.encode({ ...pageOf('a'), rows: 2 })).rejects.toThrow('1 rows where its page says 2');
  });

  it('ends what is under way when it is closed', async () => {
    const closing = createEncoderPool({ threads: 1 });
    const encoder = closing.fileEncoder({ file_format: 'JSONLines', compression: null }, columns);
    const encoded = Promise.allSettled([1, 2, 3, 4].map((number) => encoder.encode(pageOf(String(number)))));
    await closing.close();
    for (const outcome of await encoded)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'EncoderThreadLost' } });
    await expect(encoder.encode(pageOf('late'))).rejects.toThrow(EncoderThreadLost);
  });
});

describe('an encoder thread that dies', () => {
  const program = new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', (task) => {
        if (task.rows === 0) throw new Error('out of luck');
        parentPort.postMessage({ id: task.id, ok: true, bytes: new Uint8Array(1), text: { crc32: 0, length: 1 } });
      });`)}`,
  );

  it('fails its pages and is replaced for the rest', async () => {
    const threads = startEncoderThreads(1, program);
    const task = (rows: number) =>
      threads.run({
        options: { file_format: 'JSONLines', compression: null },
        columns,
        block: Buffer.alloc(0),
        rows,
      });
    const outcomes = await Promise.allSettled([task(0), task(1), task(2), task(3)]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled', 'fulfilled']);
    expect(outcomes[0]).toMatchObject({ reason: { name: 'EncoderThreadLost' } });
    await threads.close();
  });
});
