import { describe, expect, it } from '@jest/globals';
import { createMemoryBudget } from '../../src/encoding/memory.ts';
import { encodeBlocks } from '../../src/encoding/encode_blocks.ts';
import type { EncodedBlock } from '../../src/encoding/encoder.ts';
import type { RowBlock } from '../../src/source/source.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { planOf } from './copy_block.ts';

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
const turn = () => new Promise((resolve) => setImmediate(resolve));
const createReservation = () => createMemoryBudget(1_000).openReservation();

describe('encodeBlocks', () => {
  it('yields blocks in order, and reads at most the allowed number ahead', async () => {
    const { told: progress, blocks } = createBlocks(5);
    const encoder = createEncoder();
    const encoded = encodeBlocks(blocks, { encoder, memory: createReservation(), blocksInFlight: 3 });
    const first = encoded.next();
    await turn();
    expect([progress.yielded, encoder.waiting.length]).toEqual([3, 3]);
    encoder.waiting[2]?.ready();
    encoder.waiting[1]?.ready();
    await turn();
    expect(progress.yielded).toBe(3);
    encoder.waiting[0]?.ready();
    expect((await first).value).toMatchObject({ block: { rows: 0 } });
    await turn();
    expect(progress.yielded).toBe(4);
    expect((await encoded.next()).value).toMatchObject({ block: { rows: 1 } });
    expect((await encoded.next()).value).toMatchObject({ block: { rows: 2 } });
    await turn();
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
    await turn();
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
    await turn();
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
    await turn();
    const error = new Error('no year 10000');
    encoder.waiting[1]?.ready(error);
    encoder.waiting[0]?.ready();
    await first;
    const second = encoded.next();
    await turn();
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
