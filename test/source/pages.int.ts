import { beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { SortKey } from '../../src/domain/sort_key.ts';
import { connectToSource } from '../../src/source/source_connection.ts';
import { eventColumnTypes, eventsQuery } from '../../src/source/events_query.ts';
import { RelationNotFound, relationsOf } from '../../src/source/relations.ts';
import { isConnectionLost } from '../../src/journal/database.ts';
import { readSettings } from '../../src/config/settings.ts';
import { allRows } from '../../src/source/row_selection.ts';
import type { RowRange } from '../../src/source/source.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { explainPage } from './explain_page.ts';
import { blocksOf, hourOf, neverAborted, rowsOf, sourceOf, wholeRange } from './rows.ts';
import { casesOf, randomCases } from '../setup/effort.ts';
import { readKeys } from '../../src/source/read_keys.ts';

const range = hourOf('events');

const database = useTestDatabase();
beforeAll(async () => {
  // One row per second, three groups with the same time (one at the start of the interval), another team, and rows on
  // both sides of the interval.
  await database.pool.query(`
    insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
    select 1 + (n % 10 = 0)::int, gen_random_uuid(), 'event ' || n, 'user ' || n % 7,
      jsonb_build_object('n', n, 'text', repeat('x', n % 60)), t, t
    from generate_series(1, 500) n, lateral (select case
      when n % 5 = 0 then timestamptz '2026-11-01 10:00Z' + (n % 3) * interval '20 minutes'
      else timestamptz '2026-11-01 09:59:30.123456Z' + n * interval '8 seconds' end as t) times;
    insert into public.events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
    select 1, ('00000000-0000-4000-8000-00000000000' || n % 2)::uuid, 'twin ' || n, 'twins', t, t
    from generate_series(1, 12) n, lateral (select timestamptz '2026-11-01 10:20Z' as t) times`);
});

const expectedKeys = async () =>
  (
    await database.pool.query<{ key: string }>(
      `select to_char(inserted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' ' || uuid as key
       from public.events where team_id = $1 and inserted_at >= $2 and inserted_at < $3 order by inserted_at, uuid`,
      [range.team_id, range.interval.start, range.interval.end],
    )
  ).rows.map(({ key }) => key);

const sortKeyOf = (text: string): SortKey => {
  const [inserted_at = '', id = ''] = text.split(' ');
  return { inserted_at, id };
};
const textOf = ({ inserted_at, id }: SortKey): string => `${inserted_at} ${id}`;
const keyOf = (row: Record<string, unknown>) => `${String(row._inserted_at)} ${String(row.uuid)}`;

describe('keys of events', () => {
  it.each([1, 2, 7, 100])('are those of the rows in order, in pages of %i', async (pageRows) => {
    const connections = connectToSource({
      sourceUrl: database.url,
      applicationName: 'a test',
      maxConnections: 1,
      statementTimeoutMs: 60_000,
    });
    const relations = relationsOf(readSettings({ DATABASE_URL: database.url }));
    try {
      const query = await connections.read({}, undefined, async ({ connection }) =>
        eventsQuery(relations, await eventColumnTypes(connection, relations), range),
      );
      const keys: string[] = [];
      for await (const key of readKeys(connections, query, range, neverAborted(), pageRows))
        keys.push(textOf(key));
      expect(keys).toEqual(await expectedKeys());
    } finally {
      await connections.close();
    }
  });
});

describe('pages of events', () => {
  const pageLimits = [
    { EXPORTD_SOURCE_PAGE_ROWS: 2 },
    { EXPORTD_SOURCE_PAGE_ROWS: 7 },
    { EXPORTD_SOURCE_PAGE_ROWS: 100 },
    { EXPORTD_SOURCE_PAGE_SIZE: 1_024 },
    { EXPORTD_SOURCE_PAGE_SIZE: 5_000, EXPORTD_SOURCE_PAGE_ROWS: 20 },
    {},
  ];
  // Five hundred pages of one row take seconds; a page has one row here too, where one is larger than a page.
  it.each(casesOf(pageLimits, [{ EXPORTD_SOURCE_PAGE_ROWS: 1 }, ...pageLimits]))(
    'contain the rows of a SELECT in order, never split between equal keys: %j',
    async (settings) => {
      const source = sourceOf(database.url, settings);
      const pages = await blocksOf(source, range);
      const rows = pages.map(rowsOf);
      const expected = await expectedKeys();
      expect(rows.flat().map(keyOf)).toEqual(expected);
      expect(await source.countRows(range)).toBe(expected.length);
      pages.forEach((page, index) => {
        const keys = rows[index]?.map(keyOf) ?? [];
        expect(page.rows).toBe(keys.length);
        expect([page.first, page.last].map((key) => `${key.inserted_at} ${key.id}`)).toEqual([
          keys[0],
          keys.at(-1),
        ]);
        expect(page.last).not.toEqual(pages[index + 1]?.first);
        const bytes = settings.EXPORTD_SOURCE_PAGE_SIZE ?? Infinity;
        // All rows with the last key are included.
        expect(page.block.length <= bytes || keys.length === 1 || keys.at(-1) === keys.at(-2)).toBe(true);
      });
      await source.close();
    },
  );

  it('continue after any key', async () => {
    const source = sourceOf(database.url, { EXPORTD_SOURCE_PAGE_ROWS: 40 });
    const expected = await expectedKeys();
    for (const position of [0, 13, 133, expected.length - 1]) {
      const [inserted_at = '', id = ''] = expected[position]?.split(' ') ?? [];
      const pages = await blocksOf(source, range, { after: { inserted_at, id } });
      expect(pages.flatMap(rowsOf).map(keyOf)).toEqual(
        expected.slice(position + 1).filter((key) => key !== expected[position]),
      );
    }
    await source.close();
  });

  it('contain the rows between any two keys, in blocks of any size', async () => {
    const expected = await expectedKeys();
    const key = fc.oneof(
      fc.constant(null),
      fc
        .constantFrom(...expected, '2026-11-01T10:13:00.000001Z 80000000-0000-4000-8000-000000000000')
        .map(sortKeyOf),
    );
    const bounds = fc.record({
      EXPORTD_SOURCE_PAGE_ROWS: fc.constantFrom(4, 25, 90, 100_000),
      EXPORTD_SOURCE_PAGE_SIZE: fc.constantFrom(1_024, 4_000, 20_000, 33_554_432),
    });
    const blockSize = fc.constantFrom(1, 300, 1_000, 3_500, 2_097_152);
    await fc.assert(
      fc.asyncProperty(bounds, blockSize, key, key, async (settings, blockBytes, after, until) => {
        const source = sourceOf(database.url, settings);
        const blocks = await blocksOf(source, range, { after, until, blockBytes });
        const rows = blocks.map(rowsOf);
        expect(rows.flat().map(keyOf)).toEqual(
          expected.filter((one) => (!after || one > textOf(after)) && (!until || one <= textOf(until))),
        );
        blocks.forEach(({ block, first, last, rows: count }, index) => {
          const keys = rows[index]?.map(keyOf) ?? [];
          expect([keys.length, keys[0], keys.at(-1)]).toEqual([count, textOf(first), textOf(last)]);
          expect(textOf(last)).not.toBe(blocks[index + 1] && textOf(blocks[index + 1]?.first ?? last));
          // Rows with the same key stay together.
          expect(block.length <= blockBytes || new Set(keys).size === 1 || keys.at(-1) === keys.at(-2)).toBe(
            true,
          );
          expect(block.byteOffset).toBe(0);
        });
        expect(new Set(blocks.map(({ block }) => block.buffer)).size).toBe(blocks.length);
        await source.close();
      }),
      { numRuns: randomCases(15) },
    );
  });

  it('can be split into key ranges of any size, never between equal keys', async () => {
    const source = sourceOf(database.url, { EXPORTD_SOURCE_PAGE_ROWS: 30 });
    const expected = await expectedKeys();
    const endOf = (position: number): number => expected.lastIndexOf(expected[position - 1] ?? '') + 1;
    for (const every of [1, 2, 7, 100, expected.length - 1, expected.length, expected.length + 1]) {
      const splitKeys = await source.splitKeys(range, every);
      const multiples = expected.map((_, index) => index + 1).filter((position) => position % every === 0);
      const splitPositions = [...new Set(multiples.map(endOf))].filter(
        (position) => position < expected.length,
      );
      expect(splitKeys.map(textOf)).toEqual(splitPositions.map((position) => expected[position - 1]));
      for (const [index, until] of [...splitKeys.slice(0, 10), null].entries()) {
        const keyRange = { after: splitKeys[index - 1] ?? null, until };
        const rows = (await blocksOf(source, range, keyRange)).flatMap(rowsOf).map(keyOf);
        expect(rows).toEqual(
          expected.slice(splitPositions[index - 1] ?? 0, until ? splitPositions[index] : undefined),
        );
      }
    }
    await source.close();
  });

  it('contain a row that is larger than a page, and end before one that does not fit', async () => {
    const large: RowRange = { ...range, team_id: 3 };
    await database.pool.query(`
      insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
      select 3, gen_random_uuid(), 'e', 'd', jsonb_build_object('text', repeat('y', case n when 4 then 5000000 else 300000 end)),
        t, t from generate_series(1, 8) n, lateral (select timestamptz '2026-11-01 10:30Z' + n * interval '1 s' as t) times`);
    const source = sourceOf(database.url, { EXPORTD_SOURCE_PAGE_SIZE: 1_000_000 });
    const pages = await blocksOf(source, large);
    expect(pages[0]?.rows).toBe(3);
    expect(pages[1]?.rows).toBe(1);
    expect(pages[1]?.block.length).toBeGreaterThan(5_000_000);
    expect(pages.flatMap(rowsOf)).toHaveLength(8);
    for (const { block, rows } of pages) expect(rows === 1 || block.length <= 1_000_000).toBe(true);
    await source.close();
  });

  it('use the index on the insertion time', async () => {
    await database.pool.query(`
      insert into public.events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
      select 4, gen_random_uuid(), 'e', 'd', t, t from generate_series(1, 30000) n,
        lateral (select timestamptz '2026-11-01Z' + n * interval '3 seconds' as t) times;
      analyze public.events`);
    const relations = relationsOf(readSettings({ DATABASE_URL: database.url }));
    const after = { inserted_at: '2026-11-01T10:30:00.000000Z', id: '00000000-0000-0000-0000-000000000000' };
    const plan = await explainPage(
      database.pool,
      async (connection) =>
        eventsQuery(relations, await eventColumnTypes(connection, relations), {
          team_id: 1,
          selection: allRows,
        }),
      { range: { ...range, team_id: 4 }, after, rows: 100 },
    );
    expect(plan).toMatch(/Merge Append .*\n.*\n.*Index Scan using events_\w+_inserted/);
    expect(plan).not.toMatch(/Sort {2}\(|Seq Scan/);
  });

  it('read person properties from the person if events do not store them, and json columns', async () => {
    await database.pool.query(`
      create view public.plain_events as select team_id, uuid, event, distinct_id, person_id,
        ('{"a": "\\u0000",' || chr(10) || ' "n": ' || (properties->>'n') || '}')::json as properties,
        elements_chain, timestamp, created_at, inserted_at from public.events;
      insert into public.persons (team_id, id, properties) values
        (1, '00000000-0000-4000-8000-0000000000aa', '{"plan": "free"}'), (2, '00000000-0000-4000-8000-0000000000aa', '{"plan": "other"}');
      insert into public.person_distinct_ids (team_id, distinct_id, person_id)
        values (1, 'user 1', '00000000-0000-4000-8000-0000000000aa')`);
    const source = sourceOf(database.url, { EXPORTD_EVENTS_RELATION: 'public.plain_events' });
    const rows = (await blocksOf(source, range)).flatMap(rowsOf);
    expect(rows.map(keyOf)).toEqual(await expectedKeys());
    for (const { distinct_id, person_properties, properties, event } of rows) {
      const number = /^event (\d+)$/.exec(String(event))?.[1];
      expect(person_properties).toEqual(distinct_id === 'user 1' ? { plan: 'free' } : null);
      expect(properties).toEqual(number === undefined ? null : { a: '\0', n: Number(number) });
    }
    await source.close();
  });

  it('of a missing relation fail with its name', async () => {
    const source = sourceOf(database.url, { EXPORTD_EVENTS_RELATION: 'nowhere.events' });
    await expect(blocksOf(source, range)).rejects.toThrow(RelationNotFound);
    await source.close();
  });
});

describe('a page that is being read', () => {
  const activity = async () =>
    (
      await database.pool.query<{ pid: number; state: string }>(
        `select pid, state from pg_stat_activity where datname = current_database() and query like '%slow_events%' and query not like '%pg_cancel%'
         and pid <> pg_backend_pid() and state <> 'idle' and backend_type = 'client backend'`,
      )
    ).rows;
  const outcome = (reading: Promise<unknown>): Promise<unknown> => reading.catch((error: unknown) => error);
  const underWay = () =>
    waitFor(
      async () => (await activity()).some(({ state }) => state === 'active'),
      'a statement on slow_events',
    );

  beforeAll(async () => {
    await database.pool.query(
      `create view public.slow_events as select * from public.events where pg_sleep(60 + 0 * team_id) is not null`,
    );
  });

  it('is cancelled in PostgreSQL by an abort, without open transactions', async () => {
    const source = sourceOf(database.url, { EXPORTD_EVENTS_RELATION: 'public.slow_events' });
    const reason = new Error('the run was cancelled');
    const abort = new AbortController();
    const reading = outcome(blocksOf(source, range, { signal: abort.signal }));
    await underWay();
    abort.abort(reason);
    expect(await reading).toBe(reason);
    expect(await activity()).toEqual([]);
    await expect(source.countRows(range, abort.signal)).rejects.toBe(reason);
    await source.close();
  });

  it('ahead of the caller is cancelled in PostgreSQL by an abort, and when the caller stops', async () => {
    const [middle] = (await expectedKeys()).slice(100).map(sortKeyOf);
    await database.pool.query(
      `create view public.half_slow_events as select * from public.events
       where inserted_at < '${String(middle?.inserted_at)}' or (select pg_sleep(60) from public.slow_events limit 0) is null
         and pg_sleep(60 + 0 * team_id) is not null`,
    );
    const source = sourceOf(database.url, {
      EXPORTD_EVENTS_RELATION: 'public.half_slow_events',
      EXPORTD_SOURCE_PAGE_ROWS: 90,
    });
    const reason = new Error('the run was cancelled');
    const readAhead = async (signal: AbortSignal) => {
      const blocks = source.blocks(range, wholeRange, { blockBytes: 1_000_000, signal });
      expect((await blocks.next()).done).toBe(false);
      await underWay();
      return blocks;
    };
    const abort = new AbortController();
    const aborted = await readAhead(abort.signal);
    abort.abort(reason);
    await waitFor(async () => (await activity()).length === 0, 'the statement is gone');
    await expect(aborted.next()).rejects.toBe(reason);
    expect(await activity()).toEqual([]);
    const left = await readAhead(neverAborted());
    await left.return(undefined);
    expect(await activity()).toEqual([]);
    await source.close();
  });

  it('fails when its connection is lost, and the next one works', async () => {
    const source = sourceOf(database.url, { EXPORTD_EVENTS_RELATION: 'public.slow_events' });
    const reading = outcome(blocksOf(source, range));
    await underWay();
    for (const { pid } of await activity())
      await database.pool.query('select pg_terminate_backend($1)', [pid]);
    expect(await reading).toMatchObject({ code: '57P01' });
    const { wait_ms } = await source.checkBarrier('2999-01-01T00:00:00Z', { phase: 'settling' });
    expect(wait_ms).toBeGreaterThan(0);
    await source.close();
  });

  it('ends at the statement timeout', async () => {
    const source = sourceOf(database.url, {
      EXPORTD_EVENTS_RELATION: 'public.slow_events',
      EXPORTD_SOURCE_STATEMENT_TIMEOUT: 200,
    });
    // It is also the idle-in-transaction timeout: the session ends if this process stalled between two statements.
    const failure = await waitFor(async () => {
      const error = await outcome(blocksOf(source, range));
      return isConnectionLost(error) ? undefined : error;
    }, 'a page that nothing but its statement holds up');
    expect(failure).toMatchObject({ code: '57014' });
    await source.close();
  });
});
