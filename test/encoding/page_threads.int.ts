import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Settings } from '../../src/config/settings.ts';
import { formatPostgresqlTime } from '../../src/encoding/encode_block.ts';
import type { EncodedBlock, FileEncoder } from '../../src/encoding/encoder.ts';
import type { HeldBlock, ReadOptions, RowBlock, Source } from '../../src/source/source.ts';
import type { SourceMonitor } from '../../src/source/source_connection.ts';
import { openDatabaseProxy } from '../journal/database_proxy.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { hourOf, neverAborted, sourceOf, wholeRange } from '../source/rows.ts';
import { int64 } from './copy_block.ts';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import { EncoderThreadExited } from '../../src/encoding/encoder_threads.ts';

describe('pages that encoder threads read', () => {
  const database = useTestDatabase();
  const range = hourOf('events');
  const rowCount = 3_000;
  const pageSize = 200_000;

  beforeAll(async () => {
    await database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     select 1, gen_random_uuid(), 'e', 'd' || n, jsonb_build_object('text', repeat(md5(n::text), 6)), t, t
     from generate_series(1, $1::int) n, lateral (select timestamptz '2026-11-01 10:00Z' + n / 3 * interval '1 second' as t) times`,
      [rowCount],
    );
    await database.pool.query(
      `create view public.slow_events as select * from public.events where pg_sleep(60 + 0 * team_id) is not null;
     create view public.failing_events as select team_id, uuid, event, distinct_id, person_id, properties, elements_chain,
       "timestamp", created_at, inserted_at from public.events where 1 / (team_id - 1) > 0`,
    );
  });

  const pool = createEncoderPool({ threads: 2 });
  const { pageThreads: threads } = pool;
  const opened: (Source & SourceMonitor)[] = [];
  afterAll(async () => {
    await Promise.all([pool.close(), ...opened.map((source) => source.close())]);
  });

  function openSource(settings: Partial<Settings> = {}): Source & SourceMonitor {
    const source = sourceOf(database.url, { EXPORTD_SOURCE_PAGE_SIZE: pageSize, ...settings });
    opened.push(source);
    return source;
  }
  const optionsOf = (signal = neverAborted()) => ({ blockBytes: 50_000, signal, threads });
  const encoderOf = (source: Source, encoders = pool): FileEncoder =>
    encoders.fileEncoder(
      { file_format: 'JSONLines', compression: null, on_bad_row: 'fail' },
      source.columns('events'),
    );

  /** Encodes blocks one after the other. */
  async function encodeAll(
    encoder: FileEncoder,
    blocks: AsyncGenerator<RowBlock | HeldBlock>,
  ): Promise<EncodedBlock[]> {
    const encoded: EncodedBlock[] = [];
    for await (const block of blocks) encoded.push(await encoder.encode(block));
    return encoded;
  }

  /** Memory whose reservations are counted. */
  function countingMemory(): NonNullable<ReadOptions['memory']> & { readonly reserved: number } {
    let reserved = 0;
    return {
      get reserved() {
        return reserved;
      },
      reserveRows: (bytes) => {
        reserved += bytes;
        return Promise.resolve();
      },
      releaseRows: (bytes) => {
        reserved -= bytes;
      },
    };
  }

  const statements = async (): Promise<number[]> =>
    (
      await database.pool.query<{ pid: number }>(
        `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
       and backend_type = 'client backend' and (state <> 'idle' or xact_start is not null)`,
      )
    ).rows.map(({ pid }) => pid);
  const sleepingStatements = async (): Promise<{ pid: number }[]> =>
    (
      await database.pool.query<{ pid: number }>(
        `select pid from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`,
      )
    ).rows;
  const sleeping = () =>
    waitFor(async () => {
      const found = await sleepingStatements();
      return found.length > 0 && found;
    }, 'a statement that sleeps');
  const noStatement = () => waitFor(async () => (await statements()).length === 0, 'no statement runs');
  const outcome = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => 'done',
      (error: unknown) => error,
    );

  it('have the blocks that are read by the main thread, encoded as the same bytes', async () => {
    const source = openSource();
    const encoder = encoderOf(source);
    const held = await encodeAll(encoder, source.heldBlocks(range, wholeRange, optionsOf()));
    const local = await encodeAll(encoder, source.blocks(range, wholeRange, optionsOf()));
    expect(held.length).toBeGreaterThan(5);
    expect(held).toEqual(local);
    expect(held.reduce((sum, { rows }) => sum + rows, 0)).toBe(rowCount);
  });

  it('are released where no thread encodes them, and their blocks are lost', async () => {
    const source = openSource();
    const memory = countingMemory();
    const blocks = source.heldBlocks(range, wholeRange, { ...optionsOf(), memory });
    expect((await blocks.next()).done).toBe(false);
    expect(memory.reserved).toBeGreaterThan(0);
    const { value } = (await blocks.next()) as { value: HeldBlock };
    await blocks.return(undefined);
    // Of the pages that were read, all blocks that were not received are released.
    memory.releaseRows(2 * value.bytes);
    expect(Math.abs(memory.reserved)).toBeLessThan(value.bytes);
    threads.drop(value);
    await expect(encoderOf(source).encode({ ...value, thread: 99 })).rejects.toThrow(EncoderThreadExited);
    await noStatement();
  });

  it('are cancelled in PostgreSQL by an abort, and the thread reads on', async () => {
    const slow = openSource({ EXPORTD_EVENTS_RELATION: 'public.slow_events' });
    const reason = new Error('the run was cancelled');
    const abort = new AbortController();
    const reading = outcome(slow.heldBlocks(range, wholeRange, optionsOf(abort.signal)).next());
    await sleeping();
    abort.abort(reason);
    expect(await reading).toBe(reason);
    await noStatement();
    const source = openSource();
    expect(
      await encodeAll(encoderOf(source), source.heldBlocks(range, wholeRange, optionsOf())),
    ).not.toHaveLength(0);
  });

  it('fail with the error of PostgreSQL, its class and its fields', async () => {
    const failing = openSource({ EXPORTD_EVENTS_RELATION: 'public.failing_events' });
    const error = await outcome(failing.heldBlocks(range, wholeRange, optionsOf()).next());
    // The view fails for all exports, which is read from the class of the error.
    expect(error).toMatchObject({
      name: 'InvalidSourceValue',
      message: expect.stringContaining('SQLSTATE 22012'),
    });
  });

  it('fail when the connection is lost', async () => {
    const slow = openSource({ EXPORTD_EVENTS_RELATION: 'public.slow_events' });
    const reading = outcome(slow.heldBlocks(range, wholeRange, optionsOf()).next());
    for (const { pid } of await sleeping())
      await database.pool.query('select pg_terminate_backend($1)', [pid]);
    expect(await reading).toMatchObject({ code: '57P01' });
  });

  it('are ended by an abort while PostgreSQL is silent, and their connection is closed', async () => {
    const blackhole = await openDatabaseProxy(database.url);
    const silent = sourceOf(blackhole.url, { EXPORTD_EVENTS_RELATION: 'public.slow_events' });
    opened.push(silent);
    try {
      const abort = new AbortController();
      const reason = new Error('the run was cancelled');
      let ended: unknown;
      const reading = outcome(silent.heldBlocks(range, wholeRange, optionsOf(abort.signal)).next());
      void reading.then((error) => (ended = error));
      await sleeping();
      blackhole.dropTraffic();
      abort.abort(reason);
      await waitFor(() => ended !== undefined, 'the read ends');
      expect(ended).toBe(reason);
      const { totalCount, idleCount } = silent.pools.pages;
      expect(totalCount - idleCount).toBe(0);
      // The cancellation went over another connection.
      expect(await sleepingStatements()).toEqual([]);
    } finally {
      await blackhole.close();
    }
    await noStatement();
  });

  it('fail when their thread ends, and another thread reads them again', async () => {
    const encoders = createEncoderPool({ threads: 1 });
    try {
      const source = openSource();
      const encoder = encoderOf(source, encoders);
      const options = { ...optionsOf(), threads: encoders.pageThreads };
      const blocks = source.heldBlocks(range, wholeRange, options);
      const { value } = (await blocks.next()) as { value: HeldBlock };
      // A column of a type that no encoder knows ends the thread.
      const columns = value.columns.map((column) => ({ ...column, type: 'unknown' as 'text' }));
      const slow = openSource({ EXPORTD_EVENTS_RELATION: 'public.slow_events' });
      const reading = outcome(slow.heldBlocks(range, wholeRange, options).next());
      const interrupted = await sleeping();
      await expect(encoder.encode({ ...value, columns })).rejects.toThrow(EncoderThreadExited);
      await expect(encoder.encode(value)).rejects.toThrow(EncoderThreadExited);
      expect(await reading).toBeInstanceOf(EncoderThreadExited);
      const { totalCount, idleCount } = slow.pools.pages;
      expect(totalCount - idleCount).toBe(0);
      // As after the death of a process, PostgreSQL would end it when it sends a row, or at its timeout.
      for (const { pid } of interrupted) await database.pool.query('select pg_terminate_backend($1)', [pid]);
      await outcome(blocks.return(undefined));
      expect(await encodeAll(encoder, source.heldBlocks(range, wholeRange, options))).not.toHaveLength(0);
      // PostgreSQL ends the statements of connections that were lost with the thread.
      await noStatement();
    } finally {
      await encoders.close();
    }
  });
});

describe('formatTimestamp', () => {
  const database = useTestDatabase();

  const earliest = -211_813_488_000_000_000n; // 4714-11-24 BC
  const latest = 9_223_371_331_199_999_999n; // 294276-12-31 23:59:59.999999
  const dayBounds = fc
    .bigInt({ min: earliest / 86_400_000_000n, max: latest / 86_400_000_000n })
    .map((day) => day * 86_400_000_000n);

  it('formats any time like PostgreSQL', async () => {
    const times = fc.sample(fc.oneof(fc.bigInt({ min: earliest, max: latest }), dayBounds), 2_000);
    const given = [earliest, latest, 0n, -1n, ...times.filter((time) => time >= earliest)];
    const { rows } = await database.pool.query<{ text: string }>(
      `select (timestamp '2000-01-01' + (given || ' microseconds')::interval)::text || '+00' as text
     from unnest($1::bigint[]) with ordinality as times (given, position) order by position`,
      [given.map(String)],
    );
    const printed = rows.map(({ text }) => text.replace(' BC+00', '+00 BC'));
    expect(given.map((time) => formatPostgresqlTime(int64(time), 0))).toEqual(printed);
  });
});
