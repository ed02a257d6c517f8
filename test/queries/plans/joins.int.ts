import { beforeAll, describe, expect, it } from '@jest/globals';
import { insertEventRows } from '../../bench/events.ts';
import { analyses } from '../../bench/query/analyses.ts';
import type { InsightRange } from '../../bench/query/insights.ts';
import { plansOf } from '../../bench/query/plans.ts';
import { readSettings } from '../../../src/config/settings.ts';
import { builtInQueryKinds } from '../../../src/queries/built_in_kinds.ts';
import { postgresWarehouse } from '../../../src/queries/postgres_warehouse.ts';
import {
  connectQueriesToSource,
  queryRelationsOf,
  queryTransaction,
} from '../../../src/queries/query_source.ts';
import { queryRoleSettings } from '../../setup/query_role.ts';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { queryProject } from '../query_project.ts';

const range: InsightRange = { teamId: 1, now: new Date() };
const days = 20;
/** How many rows PostgreSQL believes that each relation has for each that it has. */
const factor = 200;

const database = useTestDatabase();
beforeAll(async () => {
  const start = new Date(range.now.getTime() - days * 86_400_000);
  const rows = { first: 0, end: 20_000, count: 20_000, hours: days * 24, carryPersons: false };
  await database.pool.query(insertEventRows(range.teamId, start, rows));
  await database.pool.query(`
    insert into public.persons (team_id, id, properties)
      select team_id, person_id, jsonb_build_object('email', min(distinct_id) || '@example.com') from public.events
      group by team_id, person_id;
    insert into public.person_distinct_ids (team_id, distinct_id, person_id)
      select distinct team_id, distinct_id, person_id from public.events`);
  await database.pool.query('vacuum (analyze) public.events, public.persons, public.person_distinct_ids');
  // Autovacuum must not count them.
  await database.pool.query(`
    alter table public.persons set (autovacuum_enabled = off);
    alter table public.person_distinct_ids set (autovacuum_enabled = off);
    update pg_class set reltuples = reltuples * ${factor} where reltuples > 0 and relnamespace = 'public'::regnamespace
      and relkind in ('r', 'i')`);
});

const project = queryProject({ team_id: range.teamId, week_start_day: 'sunday' });

/** The plans of an analysis under the role of queries. */
async function plansNamed(name: string): Promise<readonly string[]> {
  const settings = readSettings({ DATABASE_URL: database.url, ...queryRoleSettings(database.url) });
  const source = connectQueriesToSource(settings);
  const analysis = analyses.find((one) => one.name === name);
  if (analysis === undefined) throw new Error(`No analysis is called ${name}.`);
  try {
    const plans = await source.read(queryTransaction(60_000, range.teamId), undefined, ({ connection }) =>
      plansOf(analysis, range, builtInQueryKinds, {
        row_limit: 10_000,
        byte_limit: 10_000_000,
        variables: {},
        progress: () => undefined,
        warehouse: postgresWarehouse(connection, { relations: queryRelationsOf(settings), project }),
        project,
        now: range.now,
      }),
    );
    return plans.map(({ plan }) => plan);
  } finally {
    await source.close();
  }
}

/** The relations that a plan reads completely; for an empty one nothing is faster. */
async function scansOf(plan: string): Promise<readonly string[]> {
  const { rows } = await database.pool.query<{ name: string }>(
    `select relname::text as name from pg_class where reltuples > 0 and relkind = 'r' and relnamespace = 'public'::regnamespace`,
  );
  return rows.map(({ name }) => name).filter((name) => plan.includes(`Seq Scan on ${name}`));
}

describe('under policies of rows', () => {
  it('joins of a page look up each of its persons', async () => {
    const [plan = ''] = await plansNamed('Dialect: the last 100 events with a property of the person');
    expect(plan).toMatch(/Nested Loop Left Join[^]*Index Scan using persons_pkey/);
    expect(plan).not.toContain('Hash');
    expect(await scansOf(plan)).toEqual([]);
  });

  it.each(['a day', 'all time'])('the last events of %s look up their sessions', async (period) => {
    const [plan = ''] = await plansNamed(`Dialect: the last 10 events of ${period} with their sessions`);
    expect(plan).toMatch(/Index Cond: \(\(team_id = 1\) AND \(\(properties ->> '\$session_id'::text\) =/);
    expect(await scansOf(plan)).toEqual([]);
  });

  it('a search by a property reads persons, and then the events of those', async () => {
    const [search = '', plan = ''] = await plansNamed('Dialect: the events of a person by a property');
    expect(search).toContain('persons');
    expect(plan).toContain('BitmapOr');
    expect(plan).toMatch(/Index Scan using persons_pkey/);
    expect(await scansOf(plan)).toEqual([]);
  });
});
