import { beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { insertEventRows } from '../../bench/events.ts';
import { insights, type InsightRange } from '../../bench/query/insights.ts';
import { plansOf } from '../../bench/query/plans.ts';
import { readSettings, type Settings } from '../../../src/config/settings.ts';
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

const today = new Date();
/** Not at the start of a month: in a partition with only a few days, a scan can be faster than an index. */
const now = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth()));
const range: InsightRange = { teamId: 1, now };
/** Enough projects that the events of one are a small part of each page, as in a large installation. */
const projects = 40;
const days = 120;

const database = useTestDatabase();
beforeAll(async () => {
  const start = new Date(range.now.getTime() - days * 86_400_000);
  const rows = { first: 0, end: 30_000, count: 30_000, hours: days * 24, projects };
  await database.pool.query(insertEventRows(range.teamId, start, rows));
  await database.pool.query(`
    insert into public.persons (team_id, id) select distinct team_id, person_id from public.events;
    insert into public.person_distinct_ids (team_id, distinct_id, person_id)
      select distinct team_id, distinct_id, person_id from public.events;
    analyze public.events, public.persons, public.person_distinct_ids`);
});

const project = queryProject({ team_id: range.teamId, week_start_day: 'sunday' });

const bounds = { row_limit: 10_000, byte_limit: 10_000_000, variables: {}, progress: () => undefined };

/** The plans of all statements of the insights. */
async function plansOver(client: pg.PoolClient, settings: Settings): Promise<ReadonlyMap<string, string>> {
  const warehouse = postgresWarehouse(client, { relations: queryRelationsOf(settings), project });
  const found = new Map<string, string>();
  for (const insight of insights) {
    const plans = await plansOf(insight, range, builtInQueryKinds, {
      ...bounds,
      warehouse,
      project,
      now: range.now,
    });
    found.set(insight.name, plans.map(({ plan }) => plan).join('\n'));
  }
  return found;
}

/** The plans after a statement that is rolled back. */
async function plansAfter(before: string): Promise<ReadonlyMap<string, string>> {
  const client = await database.pool.connect();
  try {
    await client.query(`begin; set local jit = off; ${before}`);
    return await plansOver(client, readSettings({ DATABASE_URL: database.url }));
  } finally {
    await client.query('rollback');
    client.release();
  }
}

/** Sequential scans of non-empty partitions; for an empty one nothing is faster. */
async function scansOf(all: ReadonlyMap<string, string>): Promise<readonly string[]> {
  const { rows } = await database.pool.query<{ name: string }>(
    `select relid::regclass::text as name from pg_partition_tree('public.events')
     join pg_class on oid = relid where isleaf and reltuples > 0`,
  );
  const filled = new Set(rows.map(({ name }) => name));
  expect(filled.size).toBeGreaterThan(1);
  return [...all]
    .filter(([, plan]) => [...plan.matchAll(/Seq Scan on (\w+)/g)].some(([, name = '']) => filled.has(name)))
    .map(([name]) => name);
}

describe('the statements of typical insights', () => {
  it('never read a whole partition of events', async () => {
    const all = await plansAfter('select');
    expect(all.size).toBe(insights.length);
    expect(await scansOf(all)).toEqual([]);
  });

  it('never do so under the role of queries either', async () => {
    const settings = readSettings({ DATABASE_URL: database.url, ...queryRoleSettings(database.url) });
    const source = connectQueriesToSource(settings);
    const all = await source.read(queryTransaction(60_000, range.teamId), undefined, ({ connection }) =>
      plansOver(connection, settings),
    );
    await source.close();
    expect(all.size).toBe(insights.length);
    expect(await scansOf(all)).toEqual([]);
  });

  it('would do so without the indexes', async () => {
    const names = ['inserted', 'timestamp', 'event', 'person', 'distinct_id', 'session'];
    const all = await plansAfter(
      `drop index ${names.map((name) => `public.events_team_${name}`).join(', ')}`,
    );
    // Except for the one that reads persons.
    expect(await scansOf(all)).toHaveLength(insights.length - 1);
  });
});
