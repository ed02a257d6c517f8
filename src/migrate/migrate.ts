import { readdirSync } from 'node:fs';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import { installedPath } from '../config/installation.ts';
import { createPool } from '../journal/database.ts';
import { answerSettings, setStatements } from '../network/postgresql_session.ts';
import type { RebuildOptions, Switch } from '../projections/read_models.ts';
import { ensureProjections, findChangedProjections, projections } from '../projections/registry.ts';

/** Runs `work` on a connection without a statement timeout, because a migration may have to build indexes. */
async function withMigrationClient<Result>(
  databaseUrl: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'exportd' });
  await client.connect();
  try {
    await client.query(setStatements(answerSettings));
    return await work(client);
  } finally {
    await client.end();
  }
}

/**
 * Applies the migrations of a folder that a database lacks, and records them in a table, whose schema is created if it is
 * missing. Processes that do so at the same time take turns.
 * @returns names of the migrations applied by this call
 */
async function runMigrations(
  client: pg.Client,
  folder: string,
  table: { readonly schema: string; readonly name: string },
): Promise<string[]> {
  const { rows } = await client.query<{ has_schema: boolean }>(
    'select exists (select from pg_catalog.pg_namespace where nspname = $1) as has_schema',
    [table.schema],
  );
  const applied = await runner({
    // The runner would not wait for a connection that it opens itself to end.
    dbClient: client,
    dir: folder,
    migrationsTable: table.name,
    migrationsSchema: table.schema,
    // Even with IF NOT EXISTS, PostgreSQL requires the right to create schemas.
    createMigrationsSchema: rows[0]?.has_schema !== true,
    direction: 'up',
    log: () => undefined,
    verbose: false,
  });
  return applied.map(({ name }) => name);
}

/** Folder of the control database's migrations. */
const controlMigrations = installedPath('src/journal/migrations');
/** Beside all other tables of exportd, so that a backup of the schema is complete. */
const migrationsTable = { schema: 'exportd', name: 'migrations' };

/**
 * Migrates the control database, then builds the read models that have changed beside the live ones, and switches to them.
 * Afterwards each store has to show again that it refuses overwrites. Several processes may call it at the same time.
 * @returns names of the migrations applied by this call, and how it switched
 */
export async function migrateControl(
  databaseUrl: string,
  options?: RebuildOptions,
): Promise<{ readonly applied: string[]; readonly switched: Switch | undefined }> {
  const applied = await withMigrationClient(databaseUrl, (client) =>
    runMigrations(client, controlMigrations, migrationsTable),
  );
  const pool = createPool(databaseUrl, { max: 2 });
  try {
    const switched = await ensureProjections(pool, options);
    // A backup may have been restored: buckets may have objects that its journal does not know.
    await pool.query('update exportd.store_traits set confirmed_at = null where confirmed_at is not null');
    return { applied, switched };
  } finally {
    await pool.end();
  }
}

const sourceMigrations = installedPath('src/source/migrations');

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

/** What `exportd migrate` would change in a control database. */
export interface PendingChanges {
  /** Migrations that it would apply, in order. */
  readonly migrations: readonly string[];
  /** Whether it would rebuild read models from the journal. */
  readonly rebuilds_read_models: boolean;
  /** Which ones; those that they read are built with them. */
  readonly rebuilt_read_models: readonly string[];
}

/** Compares a control database with this version of exportd, and changes nothing. */
export async function findPendingChanges(databaseUrl: string): Promise<PendingChanges> {
  const pool = createPool(databaseUrl, { max: 1 });
  try {
    const known = readdirSync(controlMigrations).map((file) => file.replace(/\.sql$/, ''));
    const { rows } = await pool.query<{ present: boolean }>(
      `select to_regclass('exportd.migrations') is not null as present`,
    );
    if (!rows[0]?.present) {
      const rebuilt_read_models = projections.map(({ name }) => name);
      return { migrations: known.sort(), rebuilds_read_models: true, rebuilt_read_models };
    }
    const applied = await pool.query<{ name: string }>('select name from exportd.migrations');
    const names = new Set(applied.rows.map(({ name }) => name));
    const rebuilt_read_models = await findChangedProjections(pool);
    return {
      migrations: known.filter((name) => !names.has(name)).sort(),
      rebuilds_read_models: rebuilt_read_models.length > 0,
      rebuilt_read_models,
    };
  } finally {
    await pool.end();
  }
}
