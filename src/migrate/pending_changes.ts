import { readdirSync } from 'node:fs';
import { createPool } from '../journal/database.ts';
import { areProjectionsUpToDate } from '../projections/rebuild.ts';
import { controlMigrations } from './migrate_control.ts';

/** What `exportd migrate` would change in a control database. */
export interface PendingChanges {
  /** Migrations that it would apply, in order. */
  readonly migrations: readonly string[];
  /** Whether it would rebuild the read models from the journal. */
  readonly rebuilds_read_models: boolean;
}

/** Compares a control database with this version of exportd, and changes nothing. */
export async function findPendingChanges(databaseUrl: string): Promise<PendingChanges> {
  const pool = createPool(databaseUrl, { max: 1 });
  try {
    const known = readdirSync(controlMigrations).map((file) => file.replace(/\.sql$/, ''));
    const { rows } = await pool.query<{ present: boolean }>(
      `select to_regclass('exportd.migrations') is not null as present`,
    );
    if (!rows[0]?.present) return { migrations: known.sort(), rebuilds_read_models: true };
    const applied = await pool.query<{ name: string }>('select name from exportd.migrations');
    const names = new Set(applied.rows.map(({ name }) => name));
    return {
      migrations: known.filter((name) => !names.has(name)).sort(),
      rebuilds_read_models: !(await areProjectionsUpToDate(pool)),
    };
  } finally {
    await pool.end();
  }
}
