import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { brotliDecompressSync, crc32 } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { assembleBrotli, combineCrc32 } from '../../src/encoding/compression.ts';
import { textFormats } from '../../src/encoding/text_formats.ts';
import { encodeBlocks } from '../../src/encoding/encode_blocks.ts';
import type { EncodedBlock } from '../../src/encoding/encoder.ts';
import { createMemoryBudget } from '../../src/encoding/memory.ts';
import type { RowBlock } from '../../src/source/source.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { columnsOf, int64, planOf } from './copy_block.ts';
import { encodeRows } from './encode_rows.ts';

describe('encodeBlocks', () => {
  const key = { inserted_at: '2026-11-01T10:00:00.000000Z', id: 'a' };
  const blockOf = (index: number): RowBlock => ({
    columns: [],
    block: Buffer.alloc(10, index),
    rows: index,
    fingerprint: planOf(0, 1),
    first: key,
    last: key,
  });
  const encodedOf = ({ rows }: RowBlock): EncodedBlock => ({
    bytes: Buffer.alloc(4),
    rows,
    fingerprint: fingerprintOf(rows),
    rejected_fingerprint: fingerprintOf(0),
    rejected: [],
    first: key,
    last: key,
    state: null,
  });

  /** Blocks that count how many were read, and record when the caller stops. */
  function createBlocks(count: number, failure?: Error) {
    const progress = { yielded: 0, ended: false };
    async function* blocks(): AsyncGenerator<RowBlock> {
      try {
        for (let index = 0; index < count; index += 1) {
          progress.yielded += 1;
          yield await Promise.resolve(blockOf(index));
        }
        if (failure) throw failure;
      } finally {
        progress.ended = true;
      }
    }
    return { told: progress, blocks: blocks() };
  }

  /** An encoder whose blocks a test completes. */
  function createEncoder() {
    const waiting: { rows: RowBlock; ready: (error?: Error) => void }[] = [];
    const encode = (rows: RowBlock): Promise<EncodedBlock> =>
      new Promise((resolve, reject) => {
        const ready = (error?: Error): void => {
          if (error) reject(error);
          else resolve(encodedOf(rows));
        };
        waiting.push({ rows, ready });
      });
    return { waiting, encode };
  }

  const immediately = { encode: (rows: RowBlock) => Promise.resolve(encodedOf(rows)) };
  const createReservation = () => createMemoryBudget(1_000).openReservation();

  it('yields blocks in order, and reads at most the allowed number ahead', async () => {
    const { told: progress, blocks } = createBlocks(5);
    const encoder = createEncoder();
    const encoded = encodeBlocks(blocks, { encoder, memory: createReservation(), blocksInFlight: 3 });
    const first = encoded.next();
    await nextTurn();
    expect([progress.yielded, encoder.waiting.length]).toEqual([3, 3]);
    encoder.waiting[2]?.ready();
    encoder.waiting[1]?.ready();
    await nextTurn();
    expect(progress.yielded).toBe(3);
    encoder.waiting[0]?.ready();
    expect((await first).value).toMatchObject({ block: { rows: 0 } });
    await nextTurn();
    expect(progress.yielded).toBe(4);
    expect((await encoded.next()).value).toMatchObject({ block: { rows: 1 } });
    expect((await encoded.next()).value).toMatchObject({ block: { rows: 2 } });
    await nextTurn();
    for (const { ready } of encoder.waiting) ready();
    expect((await encoded.next()).value).toMatchObject({ block: { rows: 3 } });
    expect((await encoded.next()).value).toMatchObject({ block: { rows: 4 } });
    expect((await encoded.next()).done).toBe(true);
    expect(progress.ended).toBe(true);
  });

  it('reports whether the caller waited for rows or for the encoder', async () => {
    const { blocks } = createBlocks(1);
    const encoder = createEncoder();
    const waits: string[] = [];
    const encoded = encodeBlocks(blocks, {
      encoder,
      memory: createReservation(),
      blocksInFlight: 1,
      onWait: (waitedFor) => waits.push(waitedFor),
    });
    const first = encoded.next();
    await nextTurn();
    encoder.waiting[0]?.ready();
    await first;
    expect(waits).toEqual(['read', 'encode']);
  });

  it('releases rows when they are encoded, and encoded bytes when the caller releases them', async () => {
    const budget = createMemoryBudget(25);
    const memory = budget.openReservation();
    const encoder = createEncoder();
    const { blocks } = createBlocks(2);
    await memory.reserveRows(20, new AbortController().signal);
    memory.reserveEncoded(10);
    expect(memory.isOverBudget()).toBe(true);
    const encoded = encodeBlocks(blocks, { encoder, memory, blocksInFlight: 2 });
    const first = encoded.next();
    await nextTurn();
    encoder.waiting[0]?.ready();
    const yielded = await first;
    // 10 bytes of rows, 4 and 10 bytes encoded.
    expect(memory.isOverBudget()).toBe(false);
    memory.reserveEncoded(5);
    expect(memory.isOverBudget()).toBe(true);
    if (!yielded.done) yielded.value.release();
    expect(memory.isOverBudget()).toBe(false);
    encoder.waiting[1]?.ready();
    await encoded.next();
    await encoded.return(undefined);
  });

  it('throws the error of a block in order, after all others have ended', async () => {
    const { told: progress, blocks } = createBlocks(10);
    const encoder = createEncoder();
    const encoded = encodeBlocks(blocks, { encoder, memory: createReservation(), blocksInFlight: 3 });
    const first = encoded.next();
    await nextTurn();
    const error = new Error('no year 10000');
    encoder.waiting[1]?.ready(error);
    encoder.waiting[0]?.ready();
    await first;
    const second = encoded.next();
    await nextTurn();
    for (const { ready } of encoder.waiting) ready();
    await expect(second).rejects.toBe(error);
    expect(progress.ended).toBe(true);
    expect(progress.yielded).toBeLessThan(10);
  });

  it('throws a read error after the blocks before it', async () => {
    const failure = new Error('the connection broke');
    const { blocks } = createBlocks(2, failure);
    const rows: number[] = [];
    const reading = (async () => {
      const work = { encoder: immediately, memory: createReservation(), blocksInFlight: 4 };
      for await (const { block } of encodeBlocks(blocks, work)) rows.push(block.rows);
    })();
    await expect(reading).rejects.toBe(failure);
    expect(rows).toEqual([0, 1]);
  });

  it('reads no more blocks when the caller stops', async () => {
    const { told: progress, blocks } = createBlocks(1_000);
    const work = { encoder: immediately, memory: createReservation(), blocksInFlight: 4 };
    for await (const { block } of encodeBlocks(blocks, work)) if (block.rows === 3) break;
    expect(progress.ended).toBe(true);
    expect(progress.yielded).toBeLessThan(15);
  });
});

describe('a brotli file', () => {
  const key = { inserted_at: '2026-11-01T10:00:00.000000Z', id: 'a' };
  const blockOf = (bytes: Buffer): EncodedBlock => ({
    bytes,
    rows: 1,
    fingerprint: fingerprintOf(1),
    rejected_fingerprint: fingerprintOf(0),
    rejected: [],
    first: key,
    last: key,
    state: null,
  });
  const head = Buffer.from('head\n');

  it('is one stream of its header and all blocks, returned incrementally', async () => {
    const texts = Array.from({ length: 6 }, () => randomBytes(500_000).toString('hex'));
    const file = assembleBrotli(head);
    const chunks: Buffer[] = [];
    for (const text of texts) chunks.push(await file.append(blockOf(Buffer.from(text))));
    // Output is returned before the end, and never twice.
    expect(Buffer.concat(chunks).length).toBeGreaterThan(1_000_000);
    expect(file.takeState()).toBeNull();
    chunks.push(await file.finish());
    file.close();
    // The decoder stops after the first of several streams.
    expect(brotliDecompressSync(Buffer.concat(chunks)).toString()).toBe(head.toString() + texts.join(''));
  });

  it('rejects a pending append when it is closed', async () => {
    const file = assembleBrotli(head);
    await file.append(blockOf(Buffer.from('first')));
    const appending = file.append(blockOf(randomBytes(8_000_000)));
    // The compressor is working on it by now.
    await nextTurn();
    file.close();
    await expect(appending).rejects.toThrow('The file was abandoned.');
    await expect(file.append(blockOf(Buffer.from('late')))).rejects.toThrow();
    await expect(file.finish()).rejects.toThrow();
  });
});

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
    // Node's crc32 of 8192 times a megabyte of zeros, which takes three seconds.
    expect(crc).toBe(0x41d9_12ff);
  });
});

describe('CSV', () => {
  const textArb = fc.array(
    fc.oneof(
      fc.constantFrom('"', ',', '\r', '\n', ' ', '\t', 'a', 'é', '\u2028'),
      fc.string({ unit: 'binary' }),
    ),
    { maxLength: 20 },
  );

  it('preserves any string, and distinguishes null from an empty string', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.option(textArb), textArb)), (given) => {
        const rows = given.map(([first, second]) => [
          first === null ? null : first.join(''),
          second.join(''),
        ]);
        const { text } = encodeRows(
          textFormats.CSV,
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
      textFormats.CSV,
      columnsOf(...values.map(() => 'text' as const)),
      values.map((value) => Buffer.from(value)),
    );
    expect(text).toBe('a b," a","a\t","""",",","\r","",\',;,\\N,NULL\n');
  });

  it('writes numbers, booleans, uuids, times and null without quotes', () => {
    const columns = columnsOf('bigint', 'integer', 'boolean', 'boolean', 'uuid', 'timestamp', 'text');
    const { text } = encodeRows(textFormats.CSV, columns, [
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
    const { text } = encodeRows(textFormats.CSV, columnsOf('json', 'json', 'json'), [
      Buffer.from('\u0001{}'),
      Buffer.from('null'),
      json,
    ]);
    expect(text).toBe('{},null,"{""a"": [1, 1e400], ""b"": ""\\n\\u0000""}"\n');
  });

  it('starts with the column names', () => {
    const columns = ['plain', 'with "quotes"', 'a,b'].map((name) => ({ name, type: 'text' as const }));
    expect(textFormats.CSV.header(columns).toString()).toBe('plain,"with ""quotes""","a,b"\n');
  });

  it('leaves out a row with an unrepresentable time', () => {
    const { text, bad } = encodeRows(textFormats.CSV, columnsOf('timestamp', 'text'), [
      int64(-(2n ** 63n)),
      Buffer.from('never'),
    ]);
    expect(text).toBe('');
    expect(bad).toMatchObject([{ rowAt: 0, column: 'c0' }]);
  });
});
