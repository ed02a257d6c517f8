import { runner } from 'node-pg-migrate';
import pg from 'pg';

/** Runs `work` on a connection without a statement timeout, because a migration may have to build indexes. */
export async function withMigrationClient<Result>(
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

/** The table that records applied migrations. Its schema is created if it is missing. */
export interface MigrationsTable {
  readonly schema: string;
  readonly name: string;
}

/**
 * Applies the migrations of a folder that a database lacks. Processes that do so at the same time take turns.
 * @returns names of the migrations applied by this call
 */
export async function runMigrations(
  client: pg.Client,
  folder: string,
  table: MigrationsTable,
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
