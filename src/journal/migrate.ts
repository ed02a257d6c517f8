import { join } from 'node:path';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import { ensureProjections } from '../projections/rebuild.ts';
import { createPool } from './database.ts';

const folders = {
  control: { directory: join(import.meta.dirname, 'migrations'), table: 'exportd_migrations' },
  source: {
    directory: join(import.meta.dirname, '../source/migrations'),
    table: 'exportd_source_migrations',
  },
};

/** Does some work on a connection without a timeout, since a migration may have to build indexes. */
async function withClient<Result>(
  databaseUrl: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'exportd' });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function runMigrations(client: pg.Client, folder: keyof typeof folders): Promise<string[]> {
  const { directory, table } = folders[folder];
  const applied = await runner({
    // The runner would not wait until a connection of its own has ended.
    dbClient: client,
    dir: directory,
    migrationsTable: table,
    direction: 'up',
    log: () => undefined,
    verbose: false,
  });
  return applied.map(({ name }) => name);
}

/**
 * Brings a control database up to date: numbered migrations, then the read models, which are folded again from the
 * journal where their shape has changed. Safe to call from several processes at once.
 * @returns the names of the migrations that were applied now.
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const applied = await withClient(databaseUrl, (client) => runMigrations(client, 'control'));
  const pool = createPool(databaseUrl, { max: 1 });
  try {
    await ensureProjections(pool);
  } finally {
    await pool.end();
  }
  return applied;
}

/** Months for whose events there are partitions before they begin: each costs every statement a little. */
const monthsAhead = 6;

/** Autovacuum looks at partitions alone, and without figures of all events PostgreSQL expects far too few groups. */
const analyzeOnce = `do $$ begin
  if exists (select from public.events) and not exists (
    select from pg_catalog.pg_stats where schemaname = 'public' and tablename = 'events' and inherited
  ) then analyze public.events; end if;
end $$`;

/**
 * Makes the source's relations, for an installation that has none of its own (the demo, tests), and the partitions of
 * the months to come.
 * @returns the names of the migrations that were applied now.
 */
export const migrateSource = (databaseUrl: string): Promise<string[]> =>
  withClient(databaseUrl, async (client) => {
    const applied = await runMigrations(client, 'source');
    await client.query('select public.exportd_add_event_months($1)', [monthsAhead]);
    await client.query(analyzeOnce);
    return applied;
  });
