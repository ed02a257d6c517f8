import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { readSettings, type Settings } from '../../../src/config/settings.ts';
import { connectQueriesToSource, queryTransaction } from '../../../src/queries/query_source.ts';
import { checkQueryRole } from '../../../src/queries/query_role/check_query_role.ts';
import { queryRoleOf } from '../../../src/queries/query_role/query_role.ts';
import { setUpQueryRole } from '../../../src/queries/query_role/set_up_query_role.ts';
import {
  addWarehouseTable,
  listWarehouseTables,
  removeWarehouseTable,
} from '../../../src/queries/warehouse_tables.ts';
import { fromSetUp } from '../../setup/environment.ts';
import { prepareQueryRole, queryRoleSettings } from '../../setup/query_role.ts';
import { onServer } from '../../setup/template_database.ts';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { createProject } from '../../../src/http/accounts/projects.ts';

const database = useTestDatabase();
const analyst = 'exportd_test_analyst';
const owner = 'exportd_test_owner';
const limited = 'exportd_test_limited';

beforeAll(async () => {
  const { pool } = database;
  for (const name of ['one', 'two', 'three']) await createProject(pool, { name });
  await pool.query(`
    insert into public.events (team_id, uuid, event, distinct_id, timestamp)
      select team, gen_random_uuid(), 'event ' || team, 'd', now() from generate_series(1, 3) as team;
    create table public.charges (owner bigint, reseller smallint, id text);
    insert into public.charges values (1, 2, 'of one, sold by two'), (2, 3, 'of two, sold by three');
    create table public.notes as select 'of one' as id;
    create materialized view public.totals as select team_id, count(*) as events from public.events group by team_id;
    do $$ begin
      if not exists (select from pg_roles where rolname = '${analyst}') then create role ${analyst} noinherit; end if;
    end $$;
    grant select on public.events, public.charges to ${analyst}`);
  const add = (team_id: number, name: string, relation: string, team_column: string | null) =>
    addWarehouseTable(pool, { team_id, name, relation: { schema: 'public', name: relation, team_column } });
  await add(1, 'charges', 'charges', 'owner');
  await add(2, 'charges', 'charges', 'owner');
  await add(3, 'charges', 'charges', 'reseller');
  await add(1, 'notes', 'notes', null);
  await add(2, 'totals', 'totals', 'team_id');
  await prepareQueryRole(database.url);
});
// After the database, which depends on them.
afterAll(() =>
  onServer(fromSetUp('EXPORTD_TEST_DATABASE_URL'), `drop role if exists ${analyst}, ${limited}, ${owner}`),
);

const settings = () => readSettings({ DATABASE_URL: database.url, ...queryRoleSettings(database.url) });

/** The ids that the role reads in a relation for each of the three projects; the SQLSTATE where it may not. */
async function readBy(relation: string, column: string): Promise<readonly unknown[]> {
  const source = connectQueriesToSource(settings());
  const read = (team: number) =>
    source
      .read(queryTransaction(60_000, team), undefined, async ({ connection }) => {
        const { rows } = await connection.query<{ value: unknown }>(
          `select ${column} as value from ${relation}`,
        );
        return rows.map(({ value }) => value);
      })
      .catch((error: unknown) => (error as pg.DatabaseError).code);
  try {
    return [await read(1), await read(2), await read(3)];
  } finally {
    await source.close();
  }
}

const check = async () => checkQueryRole(database.pool, settings(), await listWarehouseTables(database.pool));

describe('the role of queries', () => {
  it.each([
    ['public.events', 'event', [['event 1'], ['event 2'], ['event 3']]],
    ['public.charges', 'id', [['of one, sold by two'], ['of two, sold by three'], ['of two, sold by three']]],
    ['public.notes', 'id', [['of one'], [], []]],
    ['exportd_query."public.totals"', 'events::integer', [[1], [1], [1]]],
    ['public.totals', 'team_id', ['42501', '42501', '42501']],
  ])('reads the rows of the project in %s', async (relation, column, expected) => {
    expect(await readBy(relation, column)).toEqual(expected);
  });

  it('is found in order by the check', async () => {
    expect(await check()).toMatchObject({ isCatalogClosed: true, limitsTemporaryFiles: true, problems: [] });
  });

  it('leaves other roles what they had', async () => {
    const connection = await database.pool.connect();
    try {
      await connection.query(`begin; set local role ${analyst}`);
      const { rows } = await connection.query(
        'select (select count(*) from public.events) as events, (select count(*) from public.charges) as charges',
      );
      expect(rows).toEqual([{ events: 3, charges: 2 }]);
    } finally {
      await connection.query('rollback');
      connection.release();
    }
  });
});

describe('a further setup', () => {
  it('withdraws a table that was removed', async () => {
    await removeWarehouseTable(database.pool, { team_id: 1, name: 'notes' });
    await prepareQueryRole(database.url);
    expect(await readBy('public.notes', 'id')).toEqual(['42501', '42501', '42501']);
    const { rows } = await database.pool.query(
      "select relrowsecurity from pg_class where oid = 'public.notes'::regclass",
    );
    expect(rows).toEqual([{ relrowsecurity: false }]);
  });

  it("keeps the operator's own row security", async () => {
    const { pool } = database;
    await pool.query(`alter table public.groups enable row level security;
      drop policy exportd_other_roles on public.groups;
      create policy analysts on public.groups to ${analyst} using (team_id = 3)`);
    await prepareQueryRole(database.url);
    const { rows } = await pool.query<{ policyname: string }>(
      "select policyname from pg_policies where tablename = 'groups' order by 1",
    );
    expect(rows.map(({ policyname }) => policyname)).toEqual([
      'analysts',
      'exportd_query_project',
      'exportd_query_reading',
    ]);
    expect((await check())?.problems).toEqual([]);
  });

  it('refuses a role that may do more than read', async () => {
    await database.pool.query('alter role exportd_query createdb');
    try {
      await expect(prepareQueryRole(database.url)).rejects.toThrow('may do more than read');
    } finally {
      await database.pool.query('alter role exportd_query nocreatedb');
    }
  });
});

describe('the check finds', () => {
  it.each([
    [
      'a right on another relation',
      'grant select on exportd.api_keys to exportd_query; grant usage on schema exportd to exportd_query',
      /also read exportd\.api_keys/,
    ],
    [
      'a right of everybody',
      'create table public.open as select 1; grant select on public.open to public',
      /also read public\.open/,
    ],
    [
      'a relation without row security',
      'alter table public.events disable row level security',
      /row security does not restrict public\.events/,
    ],
    [
      'a policy for all rows',
      'alter policy exportd_query_project on public.persons using (true)',
      /row security does not restrict public\.persons/,
    ],
    [
      'a lost policy',
      'drop policy exportd_query_project on public.persons',
      /row security does not restrict public\.persons/,
    ],
    [
      'a function with the rights of its owner',
      'create function public.all_events() returns setof public.events language sql security definer as $$ select * from public.events $$',
      /may call all_events\(\)|may call public\.all_events\(\)/,
    ],
    ['another key', 'update exportd_query.signing_keys set inner_key = outer_key', /EXPORTD_ENCRYPTION_KEYS/],
    [
      'a relation that was not set up',
      "delete from exportd_query.relations where name like '%groups%'",
      /cannot read "public"\."groups"/,
    ],
    [
      'a project that need not be signed',
      'create or replace function exportd_query.team_id() returns integer language sql stable as $$ select 1 $$',
      /can choose its project/,
    ],
  ])('%s', async (_, damage, problem) => {
    await database.pool.query(damage);
    expect((await check())?.problems.join()).toMatch(problem);
    await database.pool.query(`revoke all on all tables in schema exportd from exportd_query;
      revoke usage on schema exportd from exportd_query; drop table if exists public.open;
      drop function if exists public.all_events()`);
    await prepareQueryRole(database.url);
    expect((await check())?.problems).toEqual([]);
  });
});

describe('a setup by a role that is no superuser', () => {
  let limitedSettings: Settings;

  beforeAll(async () => {
    const { pool, url } = database;
    const name = new URL(url).pathname.slice(1);
    await pool.query(`drop schema exportd_query cascade;
      create role ${owner} login createrole password 'owner'; grant exportd_other_roles to ${owner};
      grant create on database ${name} to ${owner};
      alter table public.events owner to ${owner}; alter table public.persons owner to ${owner};
      alter table public.person_distinct_ids owner to ${owner}; alter table public.groups owner to ${owner};
      alter table public.session_replay_events owner to ${owner}; alter table public.cohort_people owner to ${owner};
      alter table public.charges owner to ${owner};
      alter materialized view public.totals owner to ${owner}`);
    const sourceUrl = new URL(url);
    sourceUrl.username = owner;
    sourceUrl.password = 'owner';
    const roleSettings = queryRoleSettings(url);
    const roleUrl = new URL(roleSettings.EXPORTD_QUERY_DATABASE_URL);
    roleUrl.username = limited;
    limitedSettings = readSettings({
      ...roleSettings,
      DATABASE_URL: url,
      SOURCE_DATABASE_URL: sourceUrl.href,
      EXPORTD_QUERY_DATABASE_URL: roleUrl.href,
    });
    const role = queryRoleOf(limitedSettings);
    if (!role) throw new Error('The settings name no role of queries.');
    await setUpQueryRole(pool, limitedSettings, role, { closeCatalog: true });
  });

  it('restricts rows', async () => {
    const source = connectQueriesToSource(limitedSettings);
    const { rows } = await source.read(queryTransaction(60_000, 2), undefined, ({ connection }) =>
      connection.query('select event from public.events'),
    );
    await source.close();
    expect(rows).toEqual([{ event: 'event 2' }]);
  });

  it('can cancel statements', async () => {
    const source = connectQueriesToSource(limitedSettings);
    const stop = new AbortController();
    const reading = source.read(queryTransaction(60_000, 2), stop.signal, ({ connection }) => {
      const counted = connection.query('select count(*) from generate_series(1, 10000000000)');
      stop.abort(new Error('stopped by the test'));
      return counted;
    });
    await expect(reading).rejects.toThrow('stopped by the test');
    await source.close();
    const report = await checkQueryRole(
      database.pool,
      limitedSettings,
      await listWarehouseTables(database.pool),
    );
    expect(report?.problems.filter((problem) => problem.includes('cancel'))).toEqual([]);
  });
});
