import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { brotliDecompressSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { assembleBrotli } from '../../src/encoding/compression.ts';
import type { EncodedBlock } from '../../src/encoding/encoder.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';

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

describe('a brotli file', () => {
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
    await setImmediate();
    file.close();
    await expect(appending).rejects.toThrow('The file was abandoned.');
    await expect(file.append(blockOf(Buffer.from('late')))).rejects.toThrow();
    await expect(file.finish()).rejects.toThrow();
  });
});
