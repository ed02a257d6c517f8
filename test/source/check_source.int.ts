import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Model } from '../../src/domain/batch_export.ts';
import type { Pool } from '../../src/journal/database.ts';
import { checkSource } from '../../src/source/check/check_source.ts';
import { mapTable } from '../../src/source/check/draft_view.ts';
import type { SourceReport } from '../../src/source/check/report.ts';
import type { RelationSettings } from '../../src/source/relations.ts';
import { connectToSource, type SourceConnections } from '../../src/source/source_connection.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';
import { onServer } from '../setup/template_database.ts';

describe('the check of the source', () => {
  const reader = `check_reader_${randomUUID().slice(0, 8)}`;

  let database: TestDatabase;
  let owner: SourceConnections;
  beforeAll(async () => {
    database = await createTestDatabase();
    owner = connect(database.url);
    // The databases of tests have a closed catalogue: src/queries/query_role.
    await database.pool.query(
      `create role ${reader} login password 'reader'; grant exportd_other_roles to ${reader}`,
    );
  });
  afterAll(async () => {
    await owner.close();
    await database.drop();
    await onServer(fromSetUp('EXPORTD_TEST_DATABASE_URL'), `drop role ${reader}`);
  });

  const connect = (sourceUrl: string): SourceConnections =>
    connectToSource({
      sourceUrl,
      applicationName: 'exportd',
      maxConnections: 1,
      statementTimeoutMs: 30_000,
    });

  const own: RelationSettings = {
    EXPORTD_EVENTS_RELATION: 'public.events',
    EXPORTD_PERSONS_RELATION: 'public.persons',
    EXPORTD_PERSON_DISTINCT_IDS_RELATION: 'public.person_distinct_ids',
  };

  interface Check {
    readonly relations?: Partial<RelationSettings>;
    readonly model?: Model;
    readonly as?: SourceConnections;
    readonly table?: string;
    readonly teamId?: number;
  }

  const check = ({ relations = {}, as = owner, ...options }: Check = {}): Promise<SourceReport> =>
    checkSource(as, { ...own, ...relations }, options);

  const errorsOf = ({ findings }: SourceReport): string[] =>
    findings.filter(({ level }) => level === 'error').map(({ message }) => message);
  const warningsOf = ({ findings }: SourceReport): string[] =>
    findings.filter(({ level }) => level === 'warning').map(({ message }) => message);

  /** Runs the SQL that a report prints. */
  async function apply({ findings, views }: SourceReport): Promise<void> {
    const statements = [...findings.map(({ sql }) => sql), ...views.map(({ sql }) => sql)];
    for (const statement of statements)
      for (const single of (statement ?? '').split(/;\n/))
        if (single !== '') await database.pool.query(single);
  }

  /** A view over the events of exportd's own tables, with other columns. */
  async function viewOf(columns: Readonly<Record<string, string>>): Promise<string> {
    const name = `view_${randomUUID().replaceAll('-', '')}`;
    const all: Record<string, string> = {
      team_id: 'team_id',
      uuid: 'uuid',
      event: 'event',
      distinct_id: 'distinct_id',
      person_id: 'person_id',
      properties: 'properties',
      person_properties: 'person_properties',
      elements_chain: 'elements_chain',
      timestamp: '"timestamp"',
      created_at: 'created_at',
      inserted_at: 'inserted_at',
      ...columns,
    };
    const selected = Object.entries(all)
      .filter(([, expression]) => expression !== '')
      .map(([column, expression]) => `${expression} as "${column}"`);
    await database.pool.query(`create view ${name} as select ${selected.join(', ')} from public.events`);
    return name;
  }

  describe("exportd's own tables", () => {
    it('fit, with their indexes', async () => {
      const report = await check();
      expect(report).toMatchObject({ ok: true, findings: [], views: [] });
      expect(report.relations.map(({ relation, kind }) => [relation, kind])).toEqual([
        ['public.events', 'partitioned table'],
        ['public.persons', 'table'],
        ['public.person_distinct_ids', 'table'],
      ]);
    });

    it('lack an index: it is named with the SQL that creates it', async () => {
      await database.pool.query('drop index persons_team_updated, person_distinct_ids_team_updated');
      const report = await check({ model: 'persons' });
      expect(warningsOf(report)).toEqual([
        expect.stringMatching(
          /^No index finds rows by \(team_id, updated_at\), so that each page .* persons/,
        ),
        expect.stringContaining('(team_id, updated_at, distinct_id collate "C")'),
      ]);
      await apply(report);
      expect(await check({ model: 'persons' })).toMatchObject({ ok: true, findings: [] });
    });
  });

  describe('a view whose rows change with each reading', () => {
    it.each([
      ['uuid', 'gen_random_uuid()', /^Column uuid is gen_random_uuid\(\), which each reading computes anew/],
      ['inserted_at', 'now()', /^Column inserted_at is now\(\), which/],
      ['inserted_at', 'current_timestamp', /^Column inserted_at is CURRENT_TIMESTAMP, which/],
      [
        'inserted_at',
        `coalesce(inserted_at, clock_timestamp())`,
        /^Column inserted_at is clock_timestamp\(\), which/,
      ],
    ])('has an error for its key %s that is %s', async (column, expression, message) => {
      const name = await viewOf({ [column]: expression });
      const report = await check({ relations: { EXPORTD_EVENTS_RELATION: name }, model: 'events' });
      expect(errorsOf(report)).toEqual([expect.stringMatching(message)]);
    });

    it('has a warning for other values, and for rows that it hides', async () => {
      const name = await viewOf({ properties: `jsonb_build_object('age', age(timestamp))` });
      const report = await check({ relations: { EXPORTD_EVENTS_RELATION: name }, model: 'events' });
      expect(errorsOf(report)).toEqual([]);
      expect(warningsOf(report)).toContainEqual(
        expect.stringMatching(
          /^Its rows or values change .* its definition has age\(\): a row that it hides/,
        ),
      );
    });
  });

  describe('rows that no interval has', () => {
    it('are counted, and said to be lost or late', async () => {
      await database.pool.query(`create table stray (like public.events including defaults);
        insert into stray (team_id, uuid, event, distinct_id, timestamp, inserted_at)
        select 7, gen_random_uuid(), 'e', 'd', now(), time::timestamptz
        from unnest(array['infinity', '-infinity', '2050-01-01', now()::text]) as time;
        create index on stray (team_id, inserted_at, uuid)`);
      const report = await check({ relations: { EXPORTD_EVENTS_RELATION: 'stray' }, model: 'events' });
      expect(errorsOf(report)).toEqual([
        expect.stringMatching(
          /^Project 7 has 2 rows of "stray" with an infinite inserted_at: no interval has them/,
        ),
      ]);
      expect(warningsOf(report)).toContainEqual(
        expect.stringMatching(
          /^Project 7 has 1 row of "stray" with inserted_at more than a day ahead of the clock/,
        ),
      );
    });

    it('may be those of a column without a zone, on a server that is not in UTC', async () => {
      await database.pool.query(`alter role ${reader} set timezone = 'America/New_York'`);
      const name = await viewOf({ inserted_at: `inserted_at at time zone 'UTC'` });
      await database.pool.query(`grant select on ${name} to ${reader}`);
      const url = new URL(database.url);
      url.username = reader;
      url.password = 'reader';
      const as = connect(url.href);
      const report = await check({ relations: { EXPORTD_EVENTS_RELATION: name }, model: 'events', as });
      await as.close();
      await database.pool.query(`alter role ${reader} reset timezone`);
      expect(warningsOf(report)).toContainEqual(
        expect.stringMatching(
          /^Column inserted_at has no time zone and is read as UTC. Sessions have the zone America\/New_York.* only comparisons find them/,
        ),
      );
    });
  });

  describe('a table with other names', () => {
    beforeAll(async () => {
      await database.pool.query(`create schema app`);
      await database.pool.query(
        `create table app.clicks (id bigint generated always as identity primary key, name text not null, user_name text not null,
         details jsonb not null, happened_at timestamp not null, received_at timestamptz not null default clock_timestamp())`,
      );
      await database.pool.query(
        `insert into app.clicks (name, user_name, details, happened_at) select 'click', 'user', '{}', now() from generate_series(1, 20)`,
      );
    });

    it('is exported after the SQL of two checks: a view, then its index', async () => {
      const relations = { EXPORTD_EVENTS_RELATION: 'app.clicks' };
      const first = await check({ relations });
      expect(first.ok).toBe(false);
      expect(errorsOf(first)).toContain('Column inserted_at is missing.');
      expect(first.views).toMatchObject([{ setting: 'EXPORTD_EVENTS_RELATION', name: 'app.exportd_events' }]);
      expect(first.views[0]?.sql).toContain(`md5('clicks ' || source.id::text)::uuid as uuid`);
      expect(first.views[0]?.sql).toContain('source.received_at as inserted_at');
      await apply(first);

      const view = { EXPORTD_EVENTS_RELATION: first.views[0]?.name ?? '' };
      const second = await check({ relations: view });
      expect(second.ok).toBe(true);
      expect(second.findings.map(({ sql }) => sql)).toEqual([
        expect.stringMatching(
          /^create index concurrently on "app"\."clicks" \(received_at, \(.*\bid\b.*::uuid\)\);$/,
        ),
      ]);
      await apply(second);
      expect(await check({ relations: view })).toMatchObject({ ok: true, findings: [] });
    });

    it('says what a person has to choose', async () => {
      await database.pool.query('create table app.bare (amount numeric)');
      const { views } = await check({ relations: { EXPORTD_EVENTS_RELATION: 'app.bare' } });
      expect(views[0]?.to_choose).toEqual(['uuid', 'timestamp', 'inserted_at']);
      expect(views[0]?.sql).toContain('to_jsonb(source) as properties');
    });

    it('of which the check recognizes no column offers those whose type fits', async () => {
      await database.pool.query(
        'create table app.hits (code uuid, what text, visitor text, happened timestamptz, stored timestamptz)',
      );
      const { views } = await check({ relations: { EXPORTD_EVENTS_RELATION: 'app.hits' } });
      expect(views[0]?.sql).toMatch(/null::uuid as uuid, +-- CHOOSE source\.code: Identifies/);
      expect(views[0]?.sql).toMatch(/as inserted_at +-- CHOOSE source\.happened or source\.stored: When/);
      expect(views[0]?.sql).toMatch(/'' as distinct_id, +-- or source\.what or source\.visitor: Who/);
    });
  });

  describe('a source without the configured relation', () => {
    const relations = { EXPORTD_EVENTS_RELATION: 'app.my_events' };

    it('lists the tables that may have the events, and drafts a view of the configured name over one', async () => {
      const { ok, tables, views } = await check({ relations, model: 'events' });
      expect([ok, views]).toEqual([false, []]);
      expect(tables).toEqual(expect.arrayContaining(['app.clicks', 'public.events']));
      // No table without a time, no view of PostgreSQL, and no partition.
      for (const table of tables) expect(table).not.toMatch(/^app\.bare$|^pg_|^exportd\.|events_\d/);

      const drafted = await check({ relations, model: 'events', table: 'app.clicks', teamId: 7 });
      expect(drafted.views).toMatchObject([
        { name: 'app.my_events', sql: expect.stringContaining('\n  7 as team_id,') },
      ]);
      await apply(drafted);
      expect(await check({ relations, model: 'events' })).toMatchObject({ ok: true, tables: [] });
    });

    it('names no column so that its line break ends the comment', async () => {
      await database.pool.query(
        `create table app.hostile ("who\n; drop table app.clicks; --" text, "or\u2028\rwho" text, happened_at timestamptz not null)`,
      );
      const hostile = { EXPORTD_EVENTS_RELATION: 'app.no_events' };
      const { views } = await check({ relations: hostile, model: 'events', table: 'app.hostile' });
      expect(views).toHaveLength(1);
      const lines = (views[0]?.sql ?? '').split(/[\n\r\u2028]/);
      const named = lines.filter((line) => line.includes('drop table'));
      expect(named).not.toEqual([]);
      for (const line of named) expect(line).toMatch(/^ {2}.* -- /);
      await database.pool.query('drop table app.hostile');
    });

    it('names no relation so that its line break ends the comment', async () => {
      const name = 'app."odd\n; drop table app.clicks; --"';
      await database.pool.query(`create view ${name} as select * from app.clicks`);
      const { script } = await mapTable(
        async (text, values = []) => (await database.pool.query(text, [...values])).rows as never,
        name,
        { reader },
      );
      const comment = script.slice(script.indexOf('-- Index the tables'));
      expect(comment).toBe(`-- Index the tables below ${name.replace('\n', ' ')} by these columns.`);
      await database.pool.query(`drop view ${name}`);
    });

    it('drafts no view over a relation that it does not list', async () => {
      expect(
        await check({ relations: { EXPORTD_EVENTS_RELATION: 'app.no' }, table: 'pg_class' }),
      ).toMatchObject({ views: [] });
    });

    it('lets the role read the view that another role creates', async () => {
      await database.pool.query(
        `grant usage on schema app to ${reader}; grant select on app.clicks to ${reader}`,
      );
      const url = new URL(database.url);
      [url.username, url.password] = [reader, 'reader'];
      const as = connect(url.href);
      try {
        const options = {
          relations: { EXPORTD_EVENTS_RELATION: 'app.theirs' },
          as,
          model: 'events',
        } as const;
        const drafted = await check({ ...options, table: 'app.clicks' });
        expect(drafted.tables).toContain('app.clicks');
        for (const { sql } of drafted.views)
          for (const single of sql.split(/;\n/)) await database.pool.query(single);
        expect((await check(options)).ok).toBe(true);
      } finally {
        await as.close();
      }
    });
  });

  describe('a column', () => {
    it.each([
      [
        'uuid',
        '7::bigint',
        'Column uuid has type bigint, exports need uuid: cannot cast type bigint to uuid.',
      ],
      ['person_id', '7::bigint', 'Column person_id has type bigint, exports need uuid: cannot cast type'],
      ['inserted_at', 'inserted_at::text', 'has type text, exports need timestamp with time zone: operator'],
      ['team_id', 'team_id::text', 'Column team_id has type text, exports need integer: operator does not'],
      ['created_at', '7::bigint', 'Column created_at has type bigint, exports need timestamp with time zone'],
      ['properties', 'team_id', 'Column properties has type integer, exports need jsonb: cannot cast type'],
      ['event', '', 'Column event is missing.'],
    ])('%s as %s is an error that names it', async (name, expression, message) => {
      const report = await check({
        relations: { EXPORTD_EVENTS_RELATION: await viewOf({ [name]: expression }) },
      });
      expect(errorsOf(report)).toEqual([expect.stringContaining(message)]);
      expect(report.views[0]?.sql).toContain('create view public.exportd_events as');
    });

    it.each([
      ['person_id', 'person_id::text', 'is converted to uuid in each row'],
      ['inserted_at', `inserted_at at time zone 'UTC'`, 'has no time zone and is read as UTC'],
    ])('%s as %s works, with a warning', async (name, expression, message) => {
      const report = await check({
        relations: { EXPORTD_EVENTS_RELATION: await viewOf({ [name]: expression }) },
      });
      expect(report.ok).toBe(true);
      expect(warningsOf(report)).toContainEqual(expect.stringContaining(message));
    });

    it('of the key that may be null is a warning with its SQL, and one that is null an error', async () => {
      await database.pool.query(
        'create table nulls (like public.events including defaults); alter table nulls alter column inserted_at drop not null, alter column event drop not null',
      );
      await database.pool.query(
        "create index on nulls (team_id, inserted_at, uuid); insert into nulls (team_id, uuid, distinct_id, timestamp, inserted_at) values (1, gen_random_uuid(), '', now(), null)",
      );
      const relations = { EXPORTD_EVENTS_RELATION: 'nulls' };
      const report = await check({ relations });
      expect(errorsOf(report)).toEqual([expect.stringContaining('Column inserted_at is null in some rows')]);
      expect(warningsOf(report)).toEqual([
        expect.stringContaining('Column inserted_at may be null'),
        expect.stringContaining('Column event is null in some rows'),
      ]);
      await database.pool.query(`update nulls set inserted_at = now(), event = ''`);
      await apply(await check({ relations }));
      expect(await check({ relations })).toMatchObject({ ok: true, findings: [] });
    });

    it('with a value that cannot be converted is an error without the value', async () => {
      const name = await viewOf({ person_id: 'distinct_id' });
      await database.pool.query(
        `insert into events (team_id, uuid, event, distinct_id, timestamp) values (1, gen_random_uuid(), 'a', 'hunter2', now())`,
      );
      const report = await check({ relations: { EXPORTD_EVENTS_RELATION: name } });
      expect(errorsOf(report)).toEqual([
        'A value of column person_id cannot be read as uuid: invalid input syntax for type uuid. Correct it, or exclude its row with a view.',
      ]);
      expect(JSON.stringify(report)).not.toContain('hunter2');
    });
  });

  describe('a role', () => {
    it('without rights gets the SQL that grants them', async () => {
      const url = new URL(database.url);
      [url.username, url.password] = [reader, 'reader'];
      const as = connect(url.href);
      try {
        const report = await check({ as, model: 'events' });
        expect(errorsOf(report)).toEqual([`The role ${reader} may not read it.`]);
        expect(warningsOf(report)).toEqual([expect.stringContaining('does not see when transactions')]);
        await apply(report);
        expect(await check({ as, model: 'events' })).toMatchObject({ ok: true, findings: [] });

        await database.pool.query('create schema closed; create view closed.events as table public.events');
        const closed = {
          as,
          model: 'events',
          relations: { EXPORTD_EVENTS_RELATION: 'closed.events' },
        } as const;
        const forbidden = await check(closed);
        expect(errorsOf(forbidden)).toEqual([expect.stringContaining('may not use the schema "closed"')]);
        await apply(forbidden);
        expect((await check(closed)).ok).toBe(true);
      } finally {
        await as.close();
        await database.pool.query(`drop owned by ${reader}`);
      }
    });
  });

  describe('an installation without persons', () => {
    const relations = {
      EXPORTD_PERSONS_RELATION: 'no_persons',
      EXPORTD_PERSON_DISTINCT_IDS_RELATION: 'no_distinct_ids',
    };

    it('exports events that carry person_properties', async () => {
      const report = await check({ relations });
      expect(report).toMatchObject({ ok: true, findings: [] });
      expect(report.relations.map(({ kind }) => kind)).toEqual(['partitioned table', null, null]);
    });

    it('needs that column', async () => {
      const name = await viewOf({ person_properties: '' });
      const report = await check({ relations: { ...relations, EXPORTD_EVENTS_RELATION: name } });
      expect(errorsOf(report)).toEqual([expect.stringContaining('null::jsonb as person_properties')]);
      expect(report.views).toMatchObject([
        { name: 'public.exportd_events', sql: expect.stringContaining('null::jsonb as person_properties') },
      ]);
    });

    it('cannot export persons', async () => {
      const report = await check({ relations, model: 'persons' });
      expect(errorsOf(report)).toEqual([
        expect.stringContaining('Set EXPORTD_PERSONS_RELATION'),
        expect.stringContaining('Set EXPORTD_PERSON_DISTINCT_IDS_RELATION'),
      ]);
    });
  });
});

describe('event partitions of a new installation', () => {
  const dates = ['-infinity', '0033-04-03Z', '1999-12-31Z', 'now', '2026-11-01Z', '9999-01-01Z', 'infinity'];
  const insert = `insert into public.events (team_id, uuid, event, distinct_id, timestamp)
  select 1, gen_random_uuid(), 'e', 'd', t from unnest($1::timestamptz[]) as t`;

  const partitionsOf = async (pool: Pool): Promise<readonly string[]> => {
    const { rows } = await pool.query<{ name: string }>(
      `select relid::regclass::text as name from pg_partition_tree('public.events') where isleaf order by 1`,
    );
    return rows.map(({ name }) => name);
  };

  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  it('cover the previous, this and the next six months, with a default for any other date', async () => {
    expect(await partitionsOf(database.pool)).toHaveLength(9);
    await database.pool.query(insert, [dates]);
    const { rows } = await database.pool.query<{ of_month: string; count: number }>(
      `select tableoid::regclass = ('public.events_' || to_char(now() at time zone 'UTC', 'YYYY_MM'))::regclass
         as of_month, count(*) from public.events where timestamp = now() or timestamp::text like '%inf%' group by 1`,
    );
    expect(rows).toEqual([{ of_month: false, count: 2 }]);
    const all = await database.pool.query('select from public.events where team_id = 1');
    expect(all.rowCount).toBe(dates.length);
  });

  it('add only the missing months', async () => {
    const add = (ahead: number) =>
      database.pool.query<{ name: string }>('select public.exportd_add_event_months($1) as name', [ahead]);
    // A new month may have started since the database was created.
    await add(6);
    const before = await partitionsOf(database.pool);
    expect((await add(6)).rowCount).toBe(0);
    const { rows } = await add(8);
    expect(rows).toHaveLength(2);
    expect(await partitionsOf(database.pool)).toEqual(
      [...before, ...rows.map(({ name }) => name)].toSorted(),
    );
  });
});
