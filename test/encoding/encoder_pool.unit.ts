import { inflateRawSync } from 'node:zlib';
import { afterAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type EncodedBlock,
  type EncoderState,
  type EncodingOptions,
  type FileEncoder,
  parquetCompressions,
  textCompressions,
} from '../../src/encoding/encoder.ts';
import { createMemoryBudget, type MemoryReservation } from '../../src/encoding/memory.ts';
import type { RowBlock } from '../../src/source/source.ts';
import { randomCases } from '../setup/effort.ts';
import { columnsOf, int64, keyedBlock, planOf } from './copy_block.ts';
import { decompress, joinBlocks } from './join_blocks.ts';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import { EncoderThreadExited, startEncoderThreads } from '../../src/encoding/encoder_threads.ts';

describe('encoding in threads', () => {
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
      const texts = Array.from({ length: 9 }, (_, block) => [
        `${block} first`,
        'x'.repeat(block * 5_000),
        '',
      ]);
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

    it('encodes in each thread after what warms it up', async () => {
      const warmed = createEncoderPool({ threads: 2 });
      try {
        warmed.warmUp();
        const encoder = warmed.fileEncoder(jsonLines, columns);
        // A thread encodes in order, and one that fails while it warms up would lose its block.
        const blocks = ['one', 'two', 'three', 'four'].map((text) => encoder.encode(blockOf(text)));
        expect((await Promise.all(blocks)).map(({ rows }) => rows)).toEqual([1, 1, 1, 1]);
      } finally {
        await warmed.close();
      }
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
      const encoded = Promise.allSettled(
        [1, 2, 3, 4].map((number) => encoder.encode(blockOf(String(number)))),
      );
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
});

describe('a memory budget', () => {
  const neverAborted = new AbortController().signal;

  /** Whether a promise is settled after all pending work has run. */
  async function isSettled(promise: Promise<unknown>): Promise<boolean> {
    let settled = false;
    const settle = (): void => {
      settled = true;
    };
    promise.then(settle, settle);
    await new Promise((resolve) => setImmediate(resolve));
    return settled;
  }

  it('grants requests in order, and immediately to a reservation without rows', async () => {
    const budget = createMemoryBudget(100);
    const [one, other] = [budget.openReservation(), budget.openReservation()];
    await one.reserveRows(80, neverAborted);
    await other.reserveRows(90, neverAborted);
    expect(one.isOverBudget()).toBe(true);
    const large = one.reserveRows(60, neverAborted);
    const small = other.reserveRows(1, neverAborted);
    other.releaseRows(80);
    expect(await isSettled(large)).toBe(false);
    expect(await isSettled(small)).toBe(false);
    one.releaseRows(70);
    await Promise.all([large, small]);
    // Holds no rows, only encoded bytes.
    one.releaseRows(70);
    one.reserveEncoded(500);
    await one.reserveRows(10, neverAborted);
    expect(await isSettled(other.reserveRows(1, neverAborted))).toBe(false);
    one.releaseEncoded(500);
    expect(other.isOverBudget()).toBe(false);
  });

  it('releases everything when a reservation is closed', async () => {
    const budget = createMemoryBudget(100);
    const [one, other] = [budget.openReservation(), budget.openReservation()];
    await one.reserveRows(50, neverAborted);
    one.reserveEncoded(60);
    await other.reserveRows(10, neverAborted);
    const waiting = other.reserveRows(10, neverAborted);
    expect(await isSettled(waiting)).toBe(false);
    one.close();
    await waiting;
    one.reserveEncoded(1_000);
    one.releaseRows(-1_000);
    expect(other.isOverBudget()).toBe(false);
  });

  it('rejects an aborted request with the reason of its signal, and serves the others', async () => {
    const budget = createMemoryBudget(100);
    const [one, other] = [budget.openReservation(), budget.openReservation()];
    await one.reserveRows(50, neverAborted);
    await other.reserveRows(40, neverAborted);
    const abort = new AbortController();
    const reason = new Error('the run was cancelled');
    const large = one.reserveRows(90, abort.signal);
    const small = other.reserveRows(5, neverAborted);
    expect(await isSettled(small)).toBe(false);
    abort.abort(reason);
    await expect(large).rejects.toBe(reason);
    await small;
    await expect(one.reserveRows(1, abort.signal)).rejects.toBe(reason);
  });

  it('never deadlocks', async () => {
    const keyRangeArb = fc.array(fc.record({ rows: fc.integer({ min: 1, max: 80 }), part: fc.boolean() }), {
      minLength: 1,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(keyRangeArb, { minLength: 1, maxLength: 5 }), async (keyRanges) => {
        const budget = createMemoryBudget(100);
        const accounts: MemoryReservation[] = [];
        const run = async (pages: (typeof keyRanges)[number]): Promise<void> => {
          const account = budget.openReservation();
          accounts.push(account);
          let gathered = 0;
          for (const { rows, part } of pages) {
            await account.reserveRows(rows, neverAborted);
            await Promise.resolve();
            account.reserveEncoded(rows);
            account.releaseRows(rows);
            gathered += rows;
            if (!part) continue;
            account.releaseEncoded(gathered);
            gathered = 0;
          }
          account.close();
        };
        await Promise.all(keyRanges.map(run));
        expect(accounts.map((account) => account.isOverBudget())).not.toContain(true);
      }),
    );
  });
});

describe('resuming a file', () => {
  const pool = createEncoderPool({ threads: 2 });
  afterAll(() => pool.close());

  const columns = columnsOf('text', 'timestamp', 'json');
  const on_bad_row = 'reject' as const;
  const options: EncodingOptions[] = [
    ...(['JSONLines', 'CSV'] as const).flatMap((file_format) =>
      [null, ...textCompressions].map((compression) => ({ file_format, compression, on_bad_row })),
    ),
    ...[null, ...parquetCompressions].map((compression) => ({
      file_format: 'Parquet' as const,
      compression,
      on_bad_row,
    })),
  ];
  const encoders = options.map((given) => pool.fileEncoder(given, columns));

  /** Random blocks of rows, some unrepresentable, and whether a part ends after the block. */
  const blocks = fc.array(
    fc.record({
      rows: fc.array(fc.tuple(fc.option(fc.string({ unit: 'binary' })), fc.boolean()), { maxLength: 4 }),
      endsPart: fc.boolean(),
    }),
    { minLength: 1, maxLength: 8 },
  );
  type Blocks = typeof blocks extends fc.Arbitrary<infer Value> ? Value : never;

  const blockOf = (rows: Blocks[number]['rows']) => ({
    ...keyedBlock(
      columns,
      rows.map(([text, fits]) => [
        text === null ? null : Buffer.from(text),
        int64(fits ? 0n : 2n ** 63n - 1n),
        Buffer.from('\u0001{"a": 1}'),
      ]),
    ),
    first: { inserted_at: '2026-11-01T10:00:00.000000Z', id: 'a' },
    last: { inserted_at: '2026-11-01T10:00:00.000000Z', id: 'b' },
  });

  describe.each(encoders.filter(({ resumable }) => resumable))('a file of $identity', (encoder) => {
    it('has the same bytes wherever another process resumes it', async () => {
      await fc.assert(
        fc.asyncProperty(blocks, async (given) => {
          const encoded: EncodedBlock[] = [];
          for (const { rows } of given) encoded.push(await encoder.encode(blockOf(rows)));
          const whole = encoder.assemble([]);
          const chunks: Buffer[] = [];
          const states: EncoderState[] = [];
          const cuts: { blocks: number; parts: number }[] = [];
          for (const [index, block] of encoded.entries()) {
            chunks.push(await whole.append(block));
            if (!given[index]?.endsPart) continue;
            states.push(whole.takeState());
            cuts.push({ blocks: index + 1, parts: states.length });
          }
          const file = Buffer.concat([...chunks, await whole.finish()]);
          // As read from the journal.
          const journalled = JSON.parse(JSON.stringify(states)) as EncoderState[];
          expect(journalled).toEqual(states);
          for (const split of cuts) {
            const resumed = encoder.assemble(journalled.slice(0, split.parts));
            const rest: Buffer[] = [];
            for (const block of encoded.slice(split.blocks)) rest.push(await resumed.append(block));
            rest.push(await resumed.finish());
            expect(Buffer.concat([...chunks.slice(0, split.blocks), ...rest]).equals(file)).toBe(true);
          }
        }),
        { numRuns: randomCases(10) },
      );
    });

    it('is not resumed from the state of another encoder', () => {
      expect(() => encoder.assemble(['nothing of the kind'])).toThrow(TypeError);
    });
  });

  it('only brotli files are not resumable', () => {
    expect(encoders.filter(({ resumable }) => !resumable).map(({ identity }) => identity)).toEqual([
      `jsonlines+brotli-4/1 brotli/${process.versions.brotli}`,
      `csv+brotli-4/1 brotli/${process.versions.brotli}`,
    ]);
  });

  it('no two encoders share an identity', () => {
    expect(new Set(encoders.map(({ identity }) => identity)).size).toBe(options.length);
  });

  it('extensions consist of format and compression', () => {
    expect(new Set(encoders.map(({ extension }) => extension))).toEqual(
      new Set([
        'jsonl',
        'jsonl.gz',
        'jsonl.zst',
        'jsonl.br',
        'csv',
        'csv.gz',
        'csv.zst',
        'csv.br',
        'parquet',
      ]),
    );
  });
});
