import { join } from 'node:path';
import { createPool } from '../journal/database.ts';
import { ensureProjections } from '../projections/rebuild.ts';
import { runMigrations, withMigrationClient } from './run_migrations.ts';

/** Folder of the control database's migrations. */
export const controlMigrations = join(import.meta.dirname, '../journal/migrations');
/** Beside all other tables of exportd, so that a backup of the schema is complete. */
const migrationsTable = { schema: 'exportd', name: 'migrations' };

/**
 * Migrates the control database, then rebuilds the read models from the journal if their tables have changed. Several
 * processes may call it at the same time.
 * @returns names of the migrations applied by this call
 */
export async function migrateControl(databaseUrl: string): Promise<string[]> {
  const applied = await withMigrationClient(databaseUrl, (client) =>
    runMigrations(client, controlMigrations, migrationsTable),
  );
  const pool = createPool(databaseUrl, { max: 1 });
  try {
    await ensureProjections(pool);
  } finally {
    await pool.end();
  }
  return applied;
}
