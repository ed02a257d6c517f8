import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';
import {
  defineProperty,
  type PropertyDefinition,
  removeProperty,
} from '../../src/queries/property_definitions.ts';
import { findRegistrableRelation } from '../../src/queries/registrable_relation.ts';
import { addWarehouseTable, removeWarehouseTable } from '../../src/queries/warehouse_tables.ts';
import { relationsOf } from '../../src/source/relations.ts';
import { readSettings } from '../../src/config/settings.ts';
import { prepareQueryRole } from '../setup/query_role.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
  await api.database.pool.query(
    `create type mood as enum ('good', 'bad');
     create table public.stripe_charges (id bigint, small smallint, whole integer, share real, ratio double precision,
       amount numeric(10, 2), paid boolean, on_day date, at timestamptz, naive timestamp, ref uuid, memo varchar(20),
       feeling mood, tags text[], counts integer[], raw json, document jsonb);
     insert into public.stripe_charges values
       (1, 2, 2000000000, 0.1, 0.25, 12.50, true, '2026-11-20', '2026-11-20 10:00Z', '2026-11-20 10:00', gen_random_uuid(),
        'first', 'good', '{a,b}', '{1,2}', '{"k": "\\u0000v"}', '{"k": [1]}');
     create table public.shared (project_id integer, note text);
     insert into public.shared values (${api.projectId}, 'ours'), (${api.otherProjectId}, 'theirs');
     create table public."Odd ""Name" (x integer);
     create table public.hidden (x integer);
     create table public.no_ids (project_id text)`,
  );
  await api.database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, person_properties, timestamp)
     select $1, gen_random_uuid(), 'bought', 'd', properties::jsonb, properties::jsonb, '2026-11-20Z'
     from unnest($2::text[]) as properties`,
    [
      api.projectId,
      [
        '{"price": 5, "vip": "true", "since": "2026-11-01"}',
        '{"price": "dear", "vip": "perhaps", "since": "once"}',
      ],
    ],
  );
});
afterAll(() => api.close());

const messageOf = (error: unknown): string => (error as Error).message;
const project = () => api.projectId;
const other = () => api.otherProjectId;
const add = async (team_id: number, name: string, relation: string, team_column: string | null = null) => {
  const { pool, url } = api.database;
  const relations = relationsOf(readSettings({ DATABASE_URL: url }));
  return findRegistrableRelation(pool, relations, { name, relation, team_column })
    .then(async (found) => {
      const added = await addWarehouseTable(pool, { team_id, name, relation: found });
      await prepareQueryRole(url);
      return added;
    })
    .catch(messageOf);
};
const runQuery = async (query: string, of = project()) => {
  const key = of === project() ? api.key : (await api.newKey(api.otherProjectId)).key;
  const { status, body } = await api.call(
    'POST',
    `/api/projects/${of}/query/`,
    { query: { kind: 'DialectQuery', query } },
    { authorization: `Bearer ${key}` },
  );
  return status === 200 ? body : String(body.detail);
};

describe('warehouse tables', () => {
  it('are read under their names with the types of their columns, only by their project', async () => {
    expect(await add(project(), 'stripe.charges', 'public.stripe_charges')).toMatchObject({
      team_id: api.projectId,
      name: 'stripe.charges',
      relation_schema: 'public',
      relation_name: 'stripe_charges',
      team_column: null,
    });
    expect(await add(project(), 'odd', 'public."Odd ""Name"')).toMatchObject({ relation_name: 'Odd "Name' });
    expect(
      await runQuery(
        `select id, small, whole * whole, share, ratio, amount, paid, on_day, at, toHour(naive), length(toString(ref)), memo,
           feeling = 'good', arrayMap(x -> upper(x), tags), arraySum(counts), raw.k, document from stripe.charges`,
      ),
    ).toMatchObject({
      results: [
        [
          1,
          2,
          4e18,
          0.1,
          0.25,
          12.5,
          true,
          '2026-11-20',
          '2026-11-20T10:00:00Z',
          10,
          36,
          'first',
          true,
          ['A', 'B'],
          3,
          '\ufffdv',
          { k: [1] },
        ],
      ],
    });
    const types = (await runQuery('select * from stripe.charges')) as {
      types: readonly (readonly string[])[];
    };
    expect(types.types.map(([, type]) => type?.replace(/^Nullable\((.*)\)$/, '$1'))).toEqual([
      'Int64',
      'Int64',
      'Int64',
      'Float64',
      'Float64',
      'Decimal',
      'Bool',
      'Date',
      "DateTime64(6, 'UTC')",
      "DateTime64(6, 'UTC')",
      'UUID',
      'String',
      'String',
      'Array(Nullable(String))',
      'Array(Nullable(Int64))',
      'JSON',
      'JSON',
    ]);
    expect(await runQuery('select count() from stripe.charges', other())).toMatch(
      'Unknown table `stripe.charges`.',
    );
    const described = `select c.table_name, t.table_type, column_name, data_type from system.information_schema.columns as c
      join system.information_schema.tables as t on t.table_name = c.table_name
      where t.table_schema = 'warehouse' and column_name in ('paid', 'tags', 'x') order by 1, 3`;
    expect(await runQuery(described)).toMatchObject({
      results: [
        ['odd', 'data_warehouse', 'x', 'Integer'],
        ['stripe.charges', 'data_warehouse', 'paid', 'Boolean'],
        ['stripe.charges', 'data_warehouse', 'tags', 'Array'],
      ],
    });
    expect(await runQuery(described, other())).toMatchObject({ results: [] });
    expect(await add(project(), 'system.charges', 'public.stripe_charges')).toBe(
      '"system" is a built-in table of queries. Choose another name.',
    );
  });

  it('with a team column can be registered by several projects, and each sees its own rows', async () => {
    for (const owner of [project(), other()])
      expect(await add(owner, 'notes', 'shared', 'project_id')).toMatchObject({
        name: 'notes',
      });
    expect(await runQuery('select note from notes')).toMatchObject({ results: [['ours']] });
    expect(await runQuery('select note from notes', other())).toMatchObject({ results: [['theirs']] });
    expect(await add(project(), 'all_notes', 'shared')).toMatch(/has already registered public.shared/);
  });

  it.each([
    ['events', 'shared', /"events" is a built-in table of queries/],
    ['groups.x', 'shared', /"groups" is a built-in table of queries/],
    ['two words', 'shared', /is not a valid table name/],
    ['a', 'nowhere', /no relation "nowhere"/],
    ['a', 'pg_catalog.pg_class', /is a system table of PostgreSQL/],
    ['a', 'exportd.api_keys', /belongs to exportd/],
    ['a', 'public.events', /contains the rows of all projects/],
    ['a', 'groups', /contains the rows of all projects/],
    ['stripe.charges', 'public.stripe_charges', /already has a table "stripe.charges"/],
  ])('%s from %s is rejected', async (name, relation, message) => {
    expect(await add(project(), name, relation)).toMatch(message);
  });

  it('need an integer team column', async () => {
    expect(await add(project(), 'a', 'no_ids', 'project_id')).toMatch(/its type is text/);
    expect(await add(project(), 'a', 'shared', 'team')).toMatch(/has no column "team"/);
  });

  it('belong to one project, and can no longer be read once they are removed', async () => {
    expect(await add(other(), 'charges', 'stripe_charges')).toMatch(/Without a team column/);
    expect(await add(other(), 'charges', 'stripe_charges', 'whole')).toMatch(/, which registered it without/);
    await removeWarehouseTable(api.database.pool, { team_id: project(), name: 'stripe.charges' });
    expect(await runQuery('select 1 from stripe.charges')).toMatch('Unknown table');
    expect(await add(other(), 'charges', 'stripe_charges')).toMatchObject({ name: 'charges' });
    const removing = removeWarehouseTable(api.database.pool, { team_id: project(), name: 'x' });
    await expect(removing).rejects.toThrow(/has no table "x"/);
  });

  it('that are gone fail only the queries that read them', async () => {
    await api.database.pool.query('drop table public."Odd ""Name"');
    expect(await runQuery('select x from odd')).toMatch(
      /The table `odd` can no longer be read. .*"exportd query setup".*\(line 1, column 15\)/,
    );
    expect(await runQuery('select note from notes')).toMatchObject({ results: [['ours']] });
  });
});

describe('groups', () => {
  it('are read only by their project, if the source has the columns of groups', async () => {
    const { pool } = api.database;
    await pool.query(
      `insert into public.groups (team_id, group_type_index, group_key) values ($1, 0, 'ours'), ($2, 0, 'theirs')`,
      [project(), other()],
    );
    expect(await runQuery('select key from groups')).toMatchObject({ results: [['ours']] });
    expect(await runQuery('select key from groups', other())).toMatchObject({ results: [['theirs']] });
    await pool.query('alter table public.groups rename column group_key to name');
    expect(await runQuery('select index from groups')).toMatch('no relation public.groups');
    expect(await runQuery('select group_0.key from events')).toMatch('groups are not stored');
    await pool.query('drop table public.groups');
    expect(await runQuery('select count() from groups')).toMatch('no relation public.groups');
  });
});

describe('property definitions', () => {
  const define = (
    scope: PropertyDefinition['scope'],
    name: string,
    type: PropertyDefinition['type'],
    team_id = project(),
  ) => defineProperty(api.database.pool, { team_id, scope, name, type }).catch(messageOf);

  it('set the type that queries read; unconvertible values are null, other projects are not affected', async () => {
    expect(await runQuery('select properties.price from events order by 1')).toMatchObject({
      results: [['5'], ['dear']],
    });
    for (const [name, type] of [
      ['price', 'numeric'],
      ['vip', 'boolean'],
      ['since', 'datetime'],
    ] as const)
      expect(await define('event', name, type)).toMatchObject({ scope: 'event', name, type });
    expect(await define('person', 'price', 'numeric')).toMatchObject({ scope: 'person' });
    expect(
      await runQuery(
        `select properties.price + 1, properties['price'] * 2, properties.vip, toYear(properties.since),
           person.properties.price, person.properties.vip from events order by 1`,
      ),
    ).toMatchObject({
      results: [
        [6, 10, true, 2026, 5, 'true'],
        [null, null, null, null, null, 'perhaps'],
      ],
    });
  });

  it('can be changed and removed, and are rejected with a message', async () => {
    expect(await define('event', 'vip', 'numeric')).toMatchObject({ type: 'numeric' });
    const remove = () =>
      removeProperty(api.database.pool, { team_id: project(), scope: 'event', name: 'vip' });
    await remove();
    await expect(remove()).rejects.toThrow(/no definition of the event property "vip"/);
    expect(await runQuery(`select properties.vip from events where properties.vip = 'true'`)).toMatchObject({
      results: [['true']],
    });
    expect(await define('event', 'a', 'numeric', 4711)).toMatch(/Project 4711 does not exist/);
  });
});
