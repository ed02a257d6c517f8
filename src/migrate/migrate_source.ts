import { join } from 'node:path';
import { runMigrations, withMigrationClient } from './run_migrations.ts';

const sourceMigrations = join(import.meta.dirname, '../source/migrations');

/** How many months ahead event partitions are created. Each partition adds a little to the cost of every statement. */
const monthsAhead = 6;

/** Autovacuum analyzes only partitions. Without statistics of the whole table PostgreSQL expects far too few groups. */
const analyzeOnce = `do $$ begin
  if exists (select from public.events) and not exists (
    select from pg_catalog.pg_stats where schemaname = 'public' and tablename = 'events' and inherited
  ) then analyze public.events; end if;
end $$`;

/**
 * Creates the relations of the source for an installation without its own (the demo, tests), and the event partitions
 * of the coming months.
 * @returns names of the migrations applied by this call
 */
export const migrateSource = (databaseUrl: string): Promise<string[]> =>
  withMigrationClient(databaseUrl, async (client) => {
    const applied = await runMigrations(client, sourceMigrations, {
      schema: 'public',
      name: 'exportd_source_migrations',
    });
    await client.query('select public.exportd_add_event_months($1)', [monthsAhead]);
    await client.query(analyzeOnce);
    return applied;
  });
