import { beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { readSettings } from '../../src/config/settings.ts';
import { bucketsOf, rowsOfFingerprint } from '../../src/domain/fingerprint.ts';
import { inTransaction } from '../../src/journal/database.ts';
import { eventColumnTypes, eventsQuery } from '../../src/source/events_query.ts';
import {
  FingerprintHashDiffers,
  fingerprintSettings,
  statementSettings,
} from '../../src/source/model_query.ts';
import { connectToSource } from '../../src/source/source_connection.ts';
import { hashBytes } from '../../src/source/hash_bytes.ts';
import { relationsOf } from '../../src/source/relations.ts';
import type { PropertyFilter } from '../../src/filters/schema.ts';
import { allRows, type RowSelection } from '../../src/source/row_selection.ts';
import type { RowRange } from '../../src/source/source.ts';
import { randomCases } from '../setup/effort.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { hourOf, sourceOf } from './rows.ts';

const database = useTestDatabase();
beforeAll(async () => {
  // Rows in each minute, twins of one uuid, the first and the last instant of the hour, both neighbouring hours and
  // another project; persons and mappings that changed at random times.
  await database.pool.query(`
    insert into public.events (team_id, uuid, event, distinct_id, person_id, timestamp, inserted_at)
    select 1 + (n % 9 = 0)::int, md5((n / 2)::text)::uuid, 'event ' || n % 3, 'user ' || n % 7,
      md5('person ' || n % 7)::uuid, t, t
    from generate_series(1, 600) n,
      lateral (select timestamptz '2026-11-01 09:55Z' + n / 2 * interval '14.123456 seconds' as t) times;
    insert into public.events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
    select 1, gen_random_uuid(), 'edge', 'edge', t, t
    from unnest(array['2026-11-01 10:00Z', '2026-11-01 10:59:59.999999Z', '2026-11-01 11:00Z']::timestamptz[]) t;
    insert into public.persons (team_id, id, properties, updated_at)
    select 1, md5('person ' || n)::uuid, '{"plan": "pro"}', timestamptz '2026-11-01 09:30Z' + n * interval '17 minutes'
    from generate_series(0, 6) n;
    insert into public.person_distinct_ids (team_id, distinct_id, person_id, updated_at)
    select 1, repeat('ä', n % 30) || n, md5('person ' || n % 8)::uuid, timestamptz '2026-11-01 09:30Z' + n * interval '41 seconds'
    from generate_series(1, 200) n`);
});

const expectedBuckets = async ({ interval }: RowRange, width: number, rows: string): Promise<unknown> =>
  (
    await database.pool.query<{ index: number; rows: number; sum: string }>(
      `select floor(extract(epoch from at - $1::timestamptz) * 1000 / $3)::int as index, count(*)::int as rows,
         mod(mod(sum(hash::numeric), 18446744073709551616) + 18446744073709551616, 18446744073709551616)::text as sum
       from (${rows}) as row where at >= $1 and at < $2 group by 1 order by 1`,
      [interval.start, interval.end, width],
    )
  ).rows;

const events =
  'select inserted_at as at, uuid_hash_extended(uuid, 0) as hash from public.events where team_id = 1';
const persons = `select greatest(m.updated_at, p.updated_at) as at, hashtextextended(m.distinct_id, 0) as hash
  from public.person_distinct_ids m left join public.persons p on p.team_id = m.team_id and p.id = m.person_id
  where m.team_id = 1`;

describe('the fingerprint of a range', () => {
  it.each([
    ['events', events, {}],
    ['events', `${events} and event = 'event 1'`, { include_events: ['event 1'] }],
    ['persons', persons, {}],
  ] as const)('counts and hashes the selected rows by bucket: %s', async (model, rows, selection) => {
    const source = sourceOf(database.url);
    const range = { ...hourOf(model), selection: { ...allRows, ...selection } };
    const fingerprint = await source.fingerprint(range);
    const { width_ms } = fingerprint;
    expect(width_ms).toBe(3_600_000 / 64);
    expect(bucketsOf(fingerprint).length).toBeGreaterThan(40);
    expect(bucketsOf(fingerprint)).toEqual(await expectedBuckets(range, width_ms, rows));
    expect(rowsOfFingerprint(fingerprint)).toBe(await source.countRows(range));
    await source.close();
  });
});

describe('a fingerprint that is being read', () => {
  const slow = { EXPORTD_EVENTS_RELATION: 'public.slow_events' };
  /** A relation whose statements last this long for each row of the range. */
  const createSlowEvents = (seconds: number) =>
    database.pool.query(`
      create or replace function public.slowly(team int) returns boolean language plpgsql cost 1000000
        as 'begin perform pg_sleep(${seconds}); return true; end';
      create or replace view public.slow_events as select * from public.events where public.slowly(team_id)`);

  it('for too long is read in subintervals', async () => {
    await createSlowEvents(0.01);
    const plain = sourceOf(database.url);
    const source = sourceOf(database.url, { ...slow, EXPORTD_SOURCE_STATEMENT_TIMEOUT: 1_500 });
    const range = hourOf('events');
    await expect(source.countRows(range)).rejects.toMatchObject({ code: '57014' });
    expect(await source.fingerprint(range)).toEqual(await plain.fingerprint(range));
    await Promise.all([source.close(), plain.close()]);
  });

  it('survives a pause of the process that is longer than a statement may run', async () => {
    const connections = connectToSource({
      sourceUrl: database.url,
      applicationName: 'a test',
      maxConnections: 1,
      statementTimeoutMs: 100,
    });
    const result = await connections.read({}, undefined, async ({ connection }) => {
      await connection.query('select 1');
      // A process that gets no core for a while.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
      return (await connection.query<{ answer: number }>('select 2 as answer')).rows;
    });
    expect(result).toEqual([{ answer: 2 }]);
    await connections.close();
  });

  it('is cancelled in PostgreSQL by an abort, and not read in subintervals', async () => {
    await createSlowEvents(1);
    const statements = async () =>
      (
        await database.pool.query<{ state: string }>(
          `select state from pg_stat_activity where datname = current_database() and query like '%uuid_hash_extended%'
           and query not like '%pg_cancel%' and pid <> pg_backend_pid() and state <> 'idle'`,
        )
      ).rows.map(({ state }) => state);
    const source = sourceOf(database.url, slow);
    const reason = new Error('the run was cancelled');
    const abort = new AbortController();
    const reading = source.fingerprint(hourOf('events'), abort.signal).catch((error: unknown) => error);
    await waitFor(async () => (await statements()).includes('active'), 'its statement');
    abort.abort(reason);
    expect(await reading).toBe(reason);
    expect(await statements()).toEqual([]);
    await source.close();
  });
});

describe('the fingerprint of events that persons select', () => {
  // Without person properties, which are then those of the persons now.
  beforeAll(() =>
    database.pool
      .query(`create view public.plain_events as select team_id, uuid, event, distinct_id, person_id,
      properties, elements_chain, timestamp, created_at, inserted_at from public.events`),
  );
  const plain = { EXPORTD_EVENTS_RELATION: 'public.plain_events' };
  const isPro: PropertyFilter = { type: 'person', key: 'plan', operator: 'exact', value: 'pro' };
  const queryOf = (dialect_query: string): Pick<RowSelection, 'query'> => ({
    query: {
      dialect_query,
      timezone: 'UTC',
      week_start_day: 'sunday',
      fields: [{ name: 'event', type: 'text', expression: 'event' }],
      printed: '',
    },
  });

  it.each([
    ['a filter on persons', plain, { filters: [isPro] }],
    ['a filter on persons, of events of which some store no person properties', {}, { filters: [isPro] }],
    [
      'a query with a condition on persons',
      plain,
      queryOf(`select event from events where person.properties.plan = 'pro'`),
    ],
    [
      'the same, of events with person properties',
      {},
      queryOf(`select event from events where person.properties.plan = 'pro'`),
    ],
  ])('is that of all events of the project: %s', async (_, settings, selection) => {
    const source = sourceOf(database.url, settings);
    const range = hourOf('events');
    const all = await source.fingerprint(range);
    const selected = { ...range, selection: { ...allRows, include_events: ['event 1'], ...selection } };
    expect(await source.fingerprint(selected)).toEqual({ ...all, all_events: true });
    await source.close();
  });

  it.each([
    ['a filter on events', {}, { filters: [{ ...isPro, type: 'event' as const }] }],
    [
      'a query with a condition on events',
      plain,
      queryOf(`select event from events where event = 'event 1'`),
    ],
  ])('is that of the selected ones if nothing is read from persons: %s', async (_, settings, selection) => {
    const source = sourceOf(database.url, settings);
    const selected = { ...hourOf('events'), selection: { ...allRows, ...selection } };
    const fingerprint = await source.fingerprint(selected);
    expect(fingerprint.all_events).toBeUndefined();
    expect(rowsOfFingerprint(fingerprint)).toBe(await source.countRows(selected));
    await source.close();
  });
});

describe('the statement of a fingerprint', () => {
  it('reads only the index on the insertion time and does not sort, also in partitions', async () => {
    // VACUUM marks pages as visible to all only after the commit of their rows was flushed.
    await database.pool.query(`begin; set local synchronous_commit = on;
      insert into public.events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
      select 4, gen_random_uuid(), 'e', 'd', t, t from generate_series(1, 30000) n,
        lateral (select timestamptz '2026-11-01Z' + n * interval '3 seconds' as t) times;
      commit`);
    await database.pool.query('vacuum analyze public.events');
    const relations = relationsOf(readSettings({ DATABASE_URL: database.url }));
    const range = { ...hourOf('events'), team_id: 4 };
    const plan = await inTransaction(database.pool, async (connection) => {
      const query = eventsQuery(relations, await eventColumnTypes(connection, relations), range);
      const buckets = { origin: range.interval.start, width_ms: 56_250 };
      const settings = {
        ...statementSettings(query, range, { buckets }),
        ...fingerprintSettings[query.hash],
      };
      for (const [name, value] of Object.entries(settings))
        await connection.query('select set_config($1, $2, true)', [name, value]);
      const { rows } = await connection.query<{ 'QUERY PLAN': string }>(
        `explain ${query.fingerprint({ ofStates: false })}`,
      );
      return rows.map((row) => row['QUERY PLAN']).join('\n');
    });
    expect(plan).toMatch(/Index Only Scan using events_\w+inserted/);
    expect(plan).not.toMatch(/Sort|HashAggregate|Heap|Seq Scan on events_2026_11/);
  });

  it('fails clearly on a server that computes another hash', async () => {
    await database.pool.query(`create schema other;
      create function other.uuid_hash_extended(uuid, bigint) returns bigint language sql as 'select 1::bigint'`);
    const source = sourceOf(`${database.url}?options=-c%20search_path%3Dother,pg_catalog,public`);
    await expect(source.fingerprint(hourOf('events'))).rejects.toThrow(FingerprintHashDiffers);
    await source.close();
  });
});

describe('the hash', () => {
  it('is that of PostgreSQL, for uuids and for texts of any length', async () => {
    const hash = { high: 0, low: 0 };
    const signed = (): string => BigInt.asIntN(64, (BigInt(hash.high) << 32n) | BigInt(hash.low)).toString();
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uuid(), { minLength: 1, maxLength: 50 }),
        fc.array(
          fc.string({ unit: 'binary', maxLength: 60 }).filter((text) => !text.includes('\0')),
          {
            minLength: 1,
            maxLength: 50,
          },
        ),
        async (uuids, texts) => {
          const { rows } = await database.pool.query<{ hash: string }>(
            `select uuid_hash_extended(id, 0)::text as hash from unnest($1::uuid[]) id
             union all select hashtextextended(id collate "C", 0)::text from unnest($2::text[]) id`,
            [uuids, texts],
          );
          const ids = [
            ...uuids.map((uuid) => Buffer.from(uuid.replaceAll('-', ''), 'hex')),
            ...texts.map((text) => Buffer.from(text)),
          ];
          const hashes = ids.map((id) => {
            const surrounded = Buffer.concat([Buffer.of(1, 2, 3), id, Buffer.of(4, 5, 6)]);
            hashBytes(surrounded, 3, 3 + id.length, hash);
            return signed();
          });
          expect(hashes).toEqual(rows.map((row) => row.hash));
        },
      ),
      { numRuns: randomCases(8) },
    );
  });
});
