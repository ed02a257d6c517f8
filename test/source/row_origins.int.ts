import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import type { BarrierState } from '../../src/domain/barrier.ts';
import { checkRunBarrier } from '../../src/export/count.ts';
import { classifyError } from '../../src/failures/classify_error.ts';
import { checkRowOrigins } from '../../src/source/check/check_columns.ts';
import { relationsOf } from '../../src/source/relations.ts';
import type { Source } from '../../src/source/source.ts';
import { isWarning, readLog } from '../decisions/read_log.ts';
import { createExportHarness, type ExportHarness, interval } from '../export/export_harness.ts';
import { blocksOf, hourOf, rowsOf, sourceOf } from './rows.ts';
import { readRowOrigins } from '../../src/source/row_origins.ts';

const settling: BarrierState = { phase: 'settling' };
const role = `policies_${process.pid}`;

let harness: ExportHarness;
let source: Source;
const query = async (sql: string): Promise<void> => {
  await harness.database.pool.query(sql);
};
beforeAll(async () => {
  harness = await createExportHarness();
  await query(`create role ${role} login password 'reader' in role exportd_other_roles;
    grant select on events, persons, person_distinct_ids to ${role}`);
  // The tables have the policies of the role of queries.
  await query(`do $$ declare found record; begin
    for found in select policyname, tablename from pg_policies where schemaname = 'public' loop
      execute format('drop policy %I on public.%I', found.policyname, found.tablename);
      execute format('alter table public.%I disable row level security', found.tablename);
    end loop;
  end $$`);
  const url = new URL(harness.database.url);
  url.username = role;
  url.password = 'reader';
  source = sourceOf(url.href);
});
afterAll(async () => {
  await source.close();
  await query(`drop owned by ${role}; drop role ${role}`);
  await harness.close();
});

/** A cutoff that has settled. */
const cutoff = interval.end;

describe('policies of row security', () => {
  const range = { ...hourOf('events'), interval };
  beforeEach(async () => {
    await query(`drop policy if exists hiding on events; drop policy if exists everything on persons;
      alter table events disable row level security; alter table persons disable row level security;
      alter role ${role} nobypassrls; truncate events`);
    await harness.insertEvents(4);
  });
  const hideEvents = () =>
    query(`alter table events enable row level security;
      create policy hiding on events using (extract(minute from inserted_at) = 0)`);

  it('are an error of the operator, and not missing rows', async () => {
    await hideEvents();
    for (const read of [
      () => source.fingerprint(range),
      () => source.countRows(range),
      () => blocksOf(source, range),
    ]) {
      const error: unknown = await read().catch((caught: unknown) => caught);
      expect(classifyError(error)).toMatchObject({
        type: 'InsufficientPrivilege',
        owner: 'operator',
        message: expect.stringContaining('alter role … bypassrls'),
      });
    }
    await query(`alter role ${role} bypassrls`);
    expect((await blocksOf(source, range)).flatMap(rowsOf)).toHaveLength(4);
  });

  it('are no error if they show all rows, as those for the role of queries do', async () => {
    await query(`alter table events enable row level security; create policy hiding on events using (true)`);
    expect((await blocksOf(source, range)).flatMap(rowsOf)).toHaveLength(4);
    expect(await source.checkBarrier(cutoff, settling)).toMatchObject({ state: { phase: 'open' } });
  });

  it('that hide rows are found by the run if others show all', async () => {
    await query(
      `alter table persons enable row level security; create policy everything on persons using (true)`,
    );
    await hideEvents();
    const error: unknown = await source.checkBarrier(cutoff, settling).catch((caught: unknown) => caught);
    expect(classifyError(error)).toMatchObject({
      type: 'RowsHidden',
      owner: 'operator',
      message: expect.stringContaining('public.events'),
    });
  });

  it('are named by the check, with the right that the role needs', async () => {
    await hideEvents();
    const { ok, findings } = await source.check(1, { model: 'events' });
    expect(ok).toBe(false);
    expect(findings).toContainEqual(
      expect.objectContaining({
        level: 'error',
        subject: 'public.events',
        sql: `alter role ${role} bypassrls;`,
      }),
    );
  });
});

describe('a source with rows that no transaction of its server shows', () => {
  /** The relations of the source, by the setting that names it. */
  const relations = { events: 'origins.events', persons: 'origins.persons' };
  const withOrigins = async <Result>(work: (of: Source) => Promise<Result>): Promise<Result> => {
    const of = sourceOf(harness.database.url, {
      EXPORTD_EVENTS_RELATION: relations.events,
      EXPORTD_PERSONS_RELATION: relations.persons,
    });
    try {
      return await work(of);
    } finally {
      await of.close();
    }
  };
  beforeEach(() =>
    query(`drop schema if exists origins cascade; create schema origins;
      drop foreign data wrapper if exists elsewhere cascade;
      create foreign data wrapper elsewhere; create server other foreign data wrapper elsewhere`),
  );

  it.each([
    {
      title: 'a foreign table under a view of a view',
      sql: `create foreign table origins.remote (like public.events) server other;
        create view origins.inner as select * from origins.remote;
        create view origins.events as select * from origins.inner`,
      unseen: ['origins.remote is a foreign table'],
    },
    {
      title: 'a foreign partition',
      sql: `create table origins.events (like public.events) partition by range ("timestamp");
        create table origins.local partition of origins.events for values from (minvalue) to ('2026-01-01');
        create foreign table origins.remote partition of origins.events
          for values from ('2026-01-01') to (maxvalue) server other`,
      unseen: ['origins.remote is a foreign table'],
    },
    {
      title: 'a materialized view of persons',
      sql: `create materialized view origins.persons as select * from public.persons`,
      unseen: ['origins.persons is a materialized view'],
    },
    ...[
      ['hides fresh rows', `where inserted_at < now() - interval '2 hours'`, 'now()'],
      ['hides them by CURRENT_TIMESTAMP', `where inserted_at < current_timestamp`, 'current_timestamp'],
      ['hides rows by chance', 'where random() < 0.5', 'random()'],
      ['has a limit', 'order by inserted_at limit 100', 'limit'],
      ['reads a sample', 'tablesample system (10)', 'tablesample'],
      [
        'calls a function that is not immutable',
        'where origins.is_kept(event)',
        'origins.is_kept()',
        'create function origins.is_kept(name text) returns bool stable return name > current_user;',
      ],
    ].map(([title, rest, changes, before = '']) => ({
      title: `a view that ${title}`,
      sql: `${before} create view origins.events as select * from public.events ${rest}`,
      unseen: [`origins.events is a view that changes from one reading to the next (${changes})`],
      options: undefined,
    })),
    {
      title: 'values that change in a view below another',
      sql: `create view origins.inner as select team_id, gen_random_uuid() as uuid, clock_timestamp() as inserted_at from public.events;
        create view origins.events as select * from origins.inner`,
      unseen: [
        'origins."inner" is a view that changes from one reading to the next (clock_timestamp(), gen_random_uuid())',
      ],
    },
    {
      title: 'a table of Citus',
      sql: `create table origins.events (like public.events);
        create table origins.pg_dist_partition (logicalrelid regclass);
        insert into origins.pg_dist_partition values ('origins.events');
        set search_path = public`,
      unseen: ['origins.events is a distributed table'],
      options: '-c search_path=origins,public',
    },
  ])('knows that its barrier cannot see $title', async ({ sql, unseen, options }) => {
    await query(sql);
    const url = new URL(harness.database.url);
    if (options !== undefined) url.searchParams.set('options', options);
    const of = sourceOf(url.href, {
      EXPORTD_EVENTS_RELATION: relations.events,
      EXPORTD_PERSONS_RELATION: relations.persons,
    });
    const check = await of.checkBarrier(cutoff, settling);
    expect(check).toMatchObject({ state: { phase: 'open' }, unseen });
    const origins = await readRowOrigins(harness.database.pool, {
      ...relationsOf(readSettings({ DATABASE_URL: url.href })),
      events: '"origins"."events"',
      persons: '"origins"."persons"',
    });
    // This connection does not see the tables of Citus.
    const warned = checkRowOrigins(origins);
    expect(warned.map(({ subject }) => subject)).toEqual(
      options === undefined ? [unseen[0]?.split(' ')[0]] : [],
    );
    for (const { message } of warned) expect(message).toContain('found by comparisons only');
    await of.close();
  });

  it('has no rows that its barrier cannot see in a view whose functions depend on settings alone', async () => {
    await query(`create view origins.events as select team_id, md5(uuid::text)::uuid as uuid, upper(event) as event,
      jsonb_build_object('at', to_char(timestamp, 'YYYY'), 'day', date_trunc('day', timestamp), 'n', 1.5::text) as properties,
      format('%s', distinct_id) as distinct_id, inserted_at - interval '1 hour' as inserted_at from public.events
      where event <> current_setting('application_name') and row(1) = row(2)`);
    const origins = await withOrigins((of) => of.checkBarrier(cutoff, settling));
    expect(origins).not.toHaveProperty('unseen');
  });

  it('is noticed at once by a barrier that settles, and within a minute by the intervals of a backfill', async () => {
    const unseen = ['origins.events is a materialized view'];
    await query('create view origins.events as select * from public.events');
    await withOrigins(async (of) => {
      const open: BarrierState = { phase: 'open' };
      expect(await of.checkBarrier(cutoff, open)).not.toHaveProperty('unseen');
      await query(`drop view origins.events;
        create materialized view origins.events as select * from public.events`);
      expect(await of.checkBarrier(cutoff, open)).not.toHaveProperty('unseen');
      expect(await of.checkBarrier(cutoff, settling)).toMatchObject({ unseen });
    });
    await withOrigins(async (of) => {
      expect(await of.checkBarrier(cutoff, { phase: 'open' })).toMatchObject({ unseen });
    });
  });

  it('has manifests that are not settled, and runs that say why', async () => {
    await query(`create materialized view origins.events as select * from public.events`);
    const run = await harness.createRun();
    await withOrigins(async (of) => {
      const { findings } = await of.check(1, { model: 'events' });
      expect(findings).toContainEqual(
        expect.objectContaining({ level: 'warning', subject: 'origins.events' }),
      );
      const { counted } = await checkRunBarrier(
        { ...harness, source: of },
        { run_id: run.run_id, state: settling },
        new AbortController().signal,
      );
      expect(counted).toBeDefined();
    });
    expect(await harness.recorder.read(run.run_id)).toMatchObject({
      settled: false,
      unsettled_barrier: null,
    });
    const log = await readLog(harness.database.pool, { run_id: run.run_id });
    expect(log.join()).toContain('origins.events is a materialized view');
  });
});

describe('rows that no interval has', () => {
  it('are in the log of the first run of an export', async () => {
    const logged = async () => {
      const run = await harness.createRun();
      await checkRunBarrier(harness, { run_id: run.run_id, state: settling }, new AbortController().signal);
      return readLog(harness.database.pool, { run_id: run.run_id }, isWarning);
    };
    await query('truncate events');
    await harness.insertEvents(2);
    await query(
      `update events set inserted_at = 'infinity' where ctid = (select min(ctid) from events) and tableoid = (select min(tableoid::oid) from events)`,
    );
    expect(await logged()).toEqual([
      expect.stringMatching(/^The source has 1 row of "public"."events" with an infinite inserted_at/),
    ]);
  });
});
