import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createMemoryBudget, type MemoryReservation } from '../../src/encoding/memory.ts';
import { encodeBlocks, type ReservedBlock } from '../../src/encoding/encode_blocks.ts';
import type { Source } from '../../src/source/source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { hourOf, sourceOf, wholeRange } from '../source/rows.ts';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';

const rowCount = 12_000;
const pageBytes = 100_000;
const limit = 300_000;
const blocksInFlight = 4;
const range = hourOf('events');

let database: TestDatabase;
let source: Source;
const pool = createEncoderPool({ threads: 2 });
const { pageThreads: threads } = pool;
beforeAll(async () => {
  database = await createTestDatabase();
  await database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     select 1, gen_random_uuid(), 'e', 'd' || n, jsonb_build_object('text', repeat(md5(n::text), 6)), t, t
     from generate_series(1, $1::int) n, lateral (select timestamptz '2026-11-01 10:00Z' + n * interval '0.2 seconds' as t) times`,
    [rowCount],
  );
  source = sourceOf(database.url, { EXPORTD_SOURCE_PAGE_SIZE: pageBytes });
});
afterAll(async () => {
  await Promise.all([pool.close(), source.close()]);
  await database.drop();
});

/** Tracks the peak memory of several reservations. */
function withPeakTracking(
  reservation: MemoryReservation,
  peak: { held: number; max: number },
): MemoryReservation {
  const add = (bytes: number): void => {
    peak.held += bytes;
    peak.max = Math.max(peak.max, peak.held);
  };
  return {
    ...reservation,
    reserveRows: async (bytes, signal) => {
      await reservation.reserveRows(bytes, signal);
      add(bytes);
    },
    releaseRows: (bytes) => {
      add(-bytes);
      reservation.releaseRows(bytes);
    },
    reserveEncoded: (bytes) => {
      add(bytes);
      reservation.reserveEncoded(bytes);
    },
    releaseEncoded: (bytes) => {
      add(-bytes);
      reservation.releaseEncoded(bytes);
    },
  };
}

/** Number of sessions of the source that are active or in a transaction. */
const busySessions = async (): Promise<number> =>
  (
    await database.pool.query(
      `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
       and (state <> 'idle' or xact_start is not null)`,
    )
  ).rows.length;

describe('a slow consumer', () => {
  it('keeps several exports within the memory budget, without open transactions', async () => {
    const budget = createMemoryBudget(limit);
    const peak = { held: 0, max: 0 };
    const columns = source.columns('events');
    const keyRanges = Array.from({ length: 3 }, () => {
      const encoder = pool.fileEncoder(
        { file_format: 'JSONLines', compression: null, on_bad_row: 'fail' },
        columns,
      );
      const memory = withPeakTracking(budget.openReservation(), peak);
      const options = { blockBytes: 20_000, signal: new AbortController().signal, memory, threads };
      const blocks = source.heldBlocks(range, wholeRange, options);
      return { memory, encoded: encodeBlocks(blocks, { encoder, memory, blocksInFlight }), rows: 0 };
    });
    const held: ReservedBlock[] = [];
    let unfinished = keyRanges;
    while (unfinished.length > 0) {
      for (const keyRange of unfinished) {
        const next = await keyRange.encoded.next();
        if (next.done) continue;
        keyRange.rows += next.value.block.rows;
        held.push(next.value);
      }
      unfinished = unfinished.filter(({ rows }) => rows < rowCount);
      // The store rarely accepts data.
      if (held.length < 30 && unfinished.length > 0) continue;
      await waitFor(async () => (await busySessions()) === 0, 'every transaction has ended');
      for (const { release } of held.splice(0)) release();
    }
    expect(keyRanges.map(({ rows }) => rows)).toEqual([rowCount, rowCount, rowCount]);
    for (const { encoded, memory } of keyRanges) {
      expect((await encoded.next()).done).toBe(true);
      memory.close();
    }
    expect(peak.held).toBe(0);
    // Collected and encoded bytes exceed the budget, and each export may have one page.
    const encodedBlocks = 30 + keyRanges.length * blocksInFlight;
    expect(peak.max).toBeLessThan(limit + encodedBlocks * 25_000 + keyRanges.length * pageBytes);
  });

  it('that never consumes anything causes a bounded number of rows to be read', async () => {
    const peak = { held: 0, max: 0 };
    const columns = source.columns('events');
    const encoder = pool.fileEncoder(
      { file_format: 'JSONLines', compression: 'gzip', on_bad_row: 'fail' },
      columns,
    );
    const abort = new AbortController();
    const reason = new Error('the run was cancelled');
    const memory = withPeakTracking(createMemoryBudget(limit).openReservation(), peak);
    const options = { blockBytes: 20_000, signal: abort.signal, memory, threads };
    const encoded = encodeBlocks(source.heldBlocks(range, wholeRange, options), {
      encoder,
      memory,
      blocksInFlight,
    });
    expect((await encoded.next()).done).toBe(false);
    await waitFor(async () => (await busySessions()) === 0, 'nothing is read any more');
    expect(peak.max).toBeLessThanOrEqual(limit + pageBytes);
    abort.abort(reason);
    await expect(
      (async () => {
        for await (const { release } of encoded) release();
      })(),
    ).rejects.toBe(reason);
    // PostgreSQL's statistics show the end of a transaction slightly after the client sees it.
    await waitFor(async () => (await busySessions()) === 0, 'every transaction has ended');
  });
});
