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

async function runMigrations(databaseUrl: string, folder: keyof typeof folders): Promise<string[]> {
  const { directory, table } = folders[folder];
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'exportd' });
  await client.connect();
  try {
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
  } finally {
    await client.end();
  }
}

/**
 * Brings a control database up to date: numbered migrations, then the read models, which are folded again from the
 * journal where their shape has changed. Safe to call from several processes at once.
 * @returns the names of the migrations that were applied now.
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const applied = await runMigrations(databaseUrl, 'control');
  const pool = createPool(databaseUrl, { max: 1 });
  try {
    await ensureProjections(pool);
  } finally {
    await pool.end();
  }
  return applied;
}

/** Makes the source's relations, for an installation that has none of its own (the demo, tests). */
export const migrateSource = (databaseUrl: string): Promise<string[]> => runMigrations(databaseUrl, 'source');
