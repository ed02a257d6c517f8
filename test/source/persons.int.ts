import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import pg from 'pg';
import { readSettings, type Settings } from '../../src/config/settings.ts';
import { rowsOfFingerprint } from '../../src/domain/fingerprint.ts';
import { classifyError } from '../../src/failures/classify_error.ts';
import { personsQuery } from '../../src/source/persons_query.ts';
import { columnTypesOf, relationsOf } from '../../src/source/relations.ts';
import { allRows } from '../../src/source/row_selection.ts';
import type { RowRange, Source } from '../../src/source/source.ts';
import { SourceBusy } from '../../src/source/source_connection.ts';
import { randomCases } from '../setup/effort.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { explainPage } from './explain_page.ts';
import { blocksOf, hourOf, neverAborted, rowsOf, sourceOf, wholeRange } from './rows.ts';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';

describe('pages of persons', () => {
  const range = hourOf('persons');

  const database = useTestDatabase();
  beforeAll(async () => {
    // Persons and their distinct ids, changed between 09:00 and 12:00, many at the same time; distinct ids whose order
    // in a locale differs from C; a mapping without a person; another team.
    await database.pool.query(`
    create function public.id_of(n int) returns uuid language sql immutable as $$ select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
    create function public.time_of(n int) returns timestamptz language sql immutable
      as $$ select timestamptz '2026-11-01 09:00Z' + (n * 7 % 19) * interval '10 minutes' $$;
    insert into public.persons (team_id, id, properties, updated_at, version, is_deleted)
      select team, public.id_of(n), jsonb_build_object('n', n), public.time_of(n), 9007199254740993 + n, n % 13 = 0
      from generate_series(1, 120) n, generate_series(1, 2) team;
    insert into public.person_distinct_ids (team_id, distinct_id, person_id, updated_at, version, is_deleted)
      select team, (array['ä', 'Z', 'a', '_', 'B'])[1 + n % 5] || n, public.id_of(n / 3 + 1), public.time_of(n + 5), n, n % 17 = 0
      from generate_series(1, 300) n, generate_series(1, 2) team;
    insert into public.person_distinct_ids (team_id, distinct_id, person_id, updated_at)
      values (1, 'nobody', public.id_of(999), '2026-11-01 10:30Z')`);
  });

  const expectedRows = async () =>
    (
      await database.pool.query<{ row: Record<string, unknown> }>(
        `select jsonb_build_object('team_id', m.team_id, 'distinct_id', m.distinct_id, 'person_id', m.person_id,
         'properties', p.properties, 'person_distinct_id_version', m.version::text, 'person_version', p.version::text,
         'is_deleted', m.is_deleted or coalesce(p.is_deleted, false),
         '_inserted_at', to_char(greatest(m.updated_at, p.updated_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) as row
       from public.person_distinct_ids m left join public.persons p on p.team_id = m.team_id and p.id = m.person_id
       where m.team_id = 1 and greatest(m.updated_at, p.updated_at) >= $1 and greatest(m.updated_at, p.updated_at) < $2
       order by greatest(m.updated_at, p.updated_at), m.distinct_id collate "C"`,
        [range.interval.start, range.interval.end],
      )
    ).rows.map(({ row }) => row);

  it.each([
    { EXPORTD_SOURCE_PAGE_ROWS: 1 },
    { EXPORTD_SOURCE_PAGE_ROWS: 7 },
    { EXPORTD_SOURCE_PAGE_SIZE: 1_024 },
    {},
  ])('contain one row per distinct id whose newest change is in the interval: %j', async (settings) => {
    const source = sourceOf(database.url, settings);
    const pages = await blocksOf(source, range);
    const rows = pages.flatMap(rowsOf);
    const expected = await expectedRows();
    expect(expected.length).toBeGreaterThan(50);
    expect(rows.map((row) => row.distinct_id)).toEqual(expected.map((row) => row.distinct_id));
    expect(rows).toMatchObject(
      expected.map((row) => ({
        ...row,
        person_distinct_id_version: Number(row.person_distinct_id_version),
        // Parsed with JSON.parse; the file keeps all digits.
        person_version: row.person_version === null ? null : Number(row.person_version),
      })),
    );
    expect(await source.countRows(range)).toBe(expected.length);
    await source.close();
  });

  it('contain the rows between any two keys, in blocks of any size', async () => {
    const expected = await expectedRows();
    const keys = expected.map(({ _inserted_at, distinct_id }) => ({
      inserted_at: String(_inserted_at),
      id: String(distinct_id),
    }));
    const position = fc.option(fc.nat({ max: keys.length - 1 }));
    const bounds = fc.record({
      EXPORTD_SOURCE_PAGE_ROWS: fc.constantFrom(2, 9, 40, 100_000),
      EXPORTD_SOURCE_PAGE_SIZE: fc.constantFrom(1_024, 3_000, 33_554_432),
    });
    await fc.assert(
      fc.asyncProperty(
        bounds,
        fc.constantFrom(1, 400, 2_097_152),
        position,
        position,
        async (settings, blockBytes, from, to) => {
          const source = sourceOf(database.url, settings);
          const keyRange = { after: keys[from ?? -1] ?? null, until: keys[to ?? -1] ?? null };
          const blocks = await blocksOf(source, range, { ...keyRange, blockBytes });
          expect(blocks.flatMap(rowsOf).map(({ distinct_id }) => distinct_id)).toEqual(
            expected
              .slice(from === null ? 0 : from + 1, to === null ? undefined : Math.max(to, from ?? -1) + 1)
              .map(({ distinct_id }) => distinct_id),
          );
          expect(blocks.map(({ rows }) => rows)).toEqual(blocks.map((block) => rowsOf(block).length));
          await source.close();
        },
      ),
      { numRuns: randomCases(12) },
    );
  });

  it('can be split into key ranges of any size', async () => {
    const source = sourceOf(database.url, {});
    const expected = await expectedRows();
    for (const every of [1, 40, expected.length - 1, expected.length]) {
      const splitKeys = await source.splitKeys(range, every);
      expect(splitKeys.map(({ id }) => id)).toEqual(
        expected
          .slice(0, -1)
          .filter((_, index) => (index + 1) % every === 0)
          .map(({ distinct_id }) => distinct_id),
      );
      expect(splitKeys.map(({ inserted_at }) => inserted_at)).toEqual(
        splitKeys.map(({ id }) => expected.find(({ distinct_id }) => distinct_id === id)?._inserted_at),
      );
    }
    await source.close();
  });

  it('use the indexes on the times of change, so that no page sorts the remaining rows', async () => {
    await database.pool.query(`
      insert into public.persons (team_id, id, updated_at)
        select 3, public.id_of(n), timestamptz '2026-11-01 10:00Z' + n * interval '1 ms' from generate_series(1, 30000) n;
      insert into public.person_distinct_ids (team_id, distinct_id, person_id, updated_at)
        select 3, 'd' || n, public.id_of(n), timestamptz '2026-11-01 10:00Z' + (n * 7 % 30000) * interval '1 ms'
        from generate_series(1, 30000) n;
      analyze public.persons; analyze public.person_distinct_ids`);
    const relations = relationsOf(readSettings({ DATABASE_URL: database.url }));
    const after = { inserted_at: '2026-11-01T10:00:05.000000Z', id: 'd' };
    const plan = await explainPage(
      database.pool,
      async (connection) =>
        personsQuery(relations, await columnTypesOf(connection, relations.persons), {
          team_id: 1,
          selection: allRows,
        }),
      { range: { ...range, team_id: 3 }, after, rows: 500 },
    );
    expect(plan).toMatch(/using person_distinct_ids_team_updated/);
    expect(plan).toMatch(/using persons_team_updated/);
    expect(plan).toMatch(/Merge Append/);
    expect(plan).not.toMatch(/-> {2}Sort/);
  });

  it('read the persons of one UPDATE a few times, not again for each page', async () => {
    const persons = 20_000;
    await database.pool.query(`
      insert into public.persons (team_id, id, updated_at)
        select 4, public.id_of(n), '2026-11-01 08:00Z' from generate_series(1, ${persons}) n;
      insert into public.person_distinct_ids (team_id, distinct_id, person_id, updated_at)
        select 4, 'd' || n, public.id_of(n), '2026-11-01 08:00Z' from generate_series(1, ${persons}) n;
      analyze public.persons; analyze public.person_distinct_ids;
      update public.persons set updated_at = '2026-11-01 10:30Z' where team_id = 4`);
    const readSoFar = async (): Promise<number> =>
      (
        await database.pool.query<{ rows: number }>(
          `select (seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_user_tables where relid = 'public.persons'::regclass`,
        )
      ).rows[0]?.rows ?? 0;
    const before = await readSoFar();
    const source = sourceOf(database.url, { EXPORTD_SOURCE_PAGE_ROWS: persons / 100 });
    const ids = (await blocksOf(source, { ...range, team_id: 4 }))
      .flatMap(rowsOf)
      .map((row) => row.distinct_id);
    await source.close();
    expect(ids).toEqual(Array.from({ length: persons }, (_, n) => `d${n + 1}`).sort());
    // PostgreSQL counts the rows of a session when it ends.
    await waitFor(async () => (await readSoFar()) >= before + 2 * persons, 'the rows of the session');
    expect(await readSoFar()).toBeLessThan(before + 10 * persons);
  });

  it('continue after any key', async () => {
    const source = sourceOf(database.url, {});
    const expected = await expectedRows();
    const { _inserted_at, distinct_id } = expected[30] ?? {};
    const after = { inserted_at: String(_inserted_at), id: String(distinct_id) };
    const rows = (await blocksOf(source, range, { after })).flatMap(rowsOf);
    expect(rows.map((row) => row.distinct_id)).toEqual(expected.slice(31).map((row) => row.distinct_id));
    await source.close();
  });
});

describe('a slow project', () => {
  const database = useTestDatabase();
  const hourOfProject = (team_id: number): RowRange => ({ ...hourOf('events'), team_id });

  beforeAll(async () => {
    await database.pool.query(`
    insert into public.events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
    select team_id, gen_random_uuid(), 'event', 'user', t, t
    from generate_series(1, 4) team_id, lateral (select timestamptz '2026-11-01 10:30Z' as t) times;
    -- Statements of the gated projects wait until the gate opens, in steps of one hundredth of a second.
    create table public.gate (team_id integer primary key, counts_only boolean not null);
    create function public.pass_gate(project integer) returns boolean language plpgsql volatile as $$
      begin
        while exists (select from public.gate where team_id = project
            and not (counts_only and current_query() ilike 'copy%')) loop
          perform pg_sleep(0.01);
        end loop;
        return true;
      end $$;
    create view public.gated_events as select * from public.events where public.pass_gate(team_id);`);
  });

  let opened: Source[] = [];
  afterEach(async () => {
    await database.pool.query('delete from public.gate');
    await Promise.all(opened.map((source) => source.close()));
    opened = [];
  });

  function openSource(settings: Partial<Settings>): Source {
    const source = sourceOf(database.url, settings);
    opened.push(source);
    return source;
  }
  const gatedSource = () =>
    openSource({ EXPORTD_EVENTS_RELATION: 'public.gated_events', EXPORTD_SOURCE_CONNECTIONS: 6 });
  const closeGate = (teamIds: readonly number[], countsOnly: boolean) =>
    database.pool.query('insert into public.gate select team_id, $2 from unnest($1::int[]) team_id', [
      teamIds,
      countsOnly,
    ]);
  const waitUntilGated = (sessions: number) =>
    waitFor(async () => {
      const { rowCount } = await database.pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`,
      );
      return rowCount === sessions;
    }, `${sessions} statements that wait at the gate`);
  const rowsIn = async (source: Source, range: RowRange) =>
    (await blocksOf(source, range)).reduce((sum, { rows }) => sum + rows, 0);

  describe('slow statements of a project', () => {
    it('leave connections to other projects and to checks of the barrier', async () => {
      const source = gatedSource();
      await closeGate([1], false);
      const slow = Promise.allSettled(
        Array.from({ length: 5 }, () => [
          source.fingerprint(hourOfProject(1)),
          rowsIn(source, hourOfProject(1)),
        ]).flat(),
      );
      await waitUntilGated(3);
      expect(rowsOfFingerprint(await source.fingerprint(hourOfProject(2)))).toBe(1);
      expect(await rowsIn(source, hourOfProject(2))).toBe(1);
      expect(await source.checkBarrier('2026-11-01T11:00:00Z', { phase: 'settling' })).toMatchObject({
        state: { phase: 'open' },
      });
      await database.pool.query('delete from public.gate');
      // Those that waited too long for a connection are retried by their activities.
      const failures = (await slow).flatMap((read) =>
        read.status === 'rejected' ? [read.reason as unknown] : [],
      );
      expect(failures.filter((error) => !(error instanceof SourceBusy))).toEqual([]);
      expect(failures.length).toBeLessThan(10);
    });

    it('do not delay pages when all connections for counts are busy', async () => {
      const source = gatedSource();
      await closeGate([1, 2, 3], true);
      const counts = [1, 1, 2, 2, 3, 3].map((teamId) => source.fingerprint(hourOfProject(teamId)));
      await waitUntilGated(6);
      expect(await rowsIn(source, hourOfProject(1))).toBe(1);
      expect(await rowsIn(source, hourOfProject(4))).toBe(1);
      await database.pool.query('delete from public.gate');
      expect(await Promise.all(counts)).toHaveLength(6);
    });

    it('open no more connections than a worker may have, in however many threads', async () => {
      const source = openSource({
        EXPORTD_EVENTS_RELATION: 'public.gated_events',
        EXPORTD_SOURCE_CONNECTIONS: 2,
      });
      // Sessions of the sources of other tests may still be ending.
      const { rows: started } = await database.pool.query<{ at: Date }>('select clock_timestamp() as at');
      const encoders = createEncoderPool({ threads: 3 });
      const { pageThreads: threads } = encoders;
      const projects = [1, 2, 3, 4];
      await closeGate(projects, false);
      const reads = projects.map(async (teamId) => {
        const options = { blockBytes: 100_000, signal: neverAborted(), threads };
        for await (const block of source.heldBlocks(hourOfProject(teamId), wholeRange, options))
          threads.drop(block);
      });
      await waitUntilGated(2);
      await database.pool.query('delete from public.gate');
      await Promise.all(reads);
      const { rowCount } = await database.pool.query(
        `select from pg_stat_activity where datname = current_database() and application_name = 'exportd'
         and backend_start > $1`,
        [started[0]?.at],
      );
      await encoders.close();
      const forChecks = 2;
      expect(rowCount).toBeLessThanOrEqual(2 + forChecks);
    });
  });

  describe('a locked relation', () => {
    it('fails reads after two seconds, as a fault of the operator, until it is unlocked', async () => {
      const source = openSource({ EXPORTD_SOURCE_STATEMENT_TIMEOUT: 60_000 });
      const owner = new pg.Client({ connectionString: database.url });
      await owner.connect();
      try {
        await owner.query('begin');
        await owner.query('lock table public.events in access exclusive mode');
        const reads = [
          source.fingerprint(hourOfProject(1)),
          source.countRows(hourOfProject(2)),
          rowsIn(source, hourOfProject(3)),
        ];
        const errors = await Promise.all(reads.map((read) => read.catch((error: unknown) => error)));
        expect(errors.map(classifyError)).toEqual(
          errors.map(() =>
            expect.objectContaining({ type: 'RelationLocked', owner: 'operator', permanent: false }),
          ),
        );
      } finally {
        await owner.end();
      }
      expect(rowsOfFingerprint(await source.fingerprint(hourOfProject(1)))).toBe(1);
      expect(await rowsIn(source, hourOfProject(3))).toBe(1);
    });
  });
});
