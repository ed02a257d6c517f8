import { randomUUID } from 'node:crypto';
import { createPool, type Pool } from '../../src/journal/database.ts';
import { fromSetUp } from './environment.ts';
import { databaseOf, onServer, templateDatabase } from './template_database.ts';

/** A database of a test's own. */
export interface TestDatabase {
  readonly url: string;
  /** A pool on it, with exportd's own types and application name. */
  readonly pool: Pool;
  /** Closes the pool and removes the database, whoever is still connected. */
  drop(): Promise<void>;
}

/** However busy the machine is: a late connection is no failure of what is tested. */
const connectTimeoutMs = 60_000;

/** Makes a migrated database, empty but for what the migrations put in, with the source's relations beside. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const serverUrl = fromSetUp('EXPORTD_TEST_DATABASE_URL');
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  // By copying files: faster than through the write-ahead log for a small template.
  await onServer(serverUrl, `create database ${name} template ${templateDatabase} strategy file_copy`);
  const url = databaseOf(serverUrl, name);
  const pool = createPool(url, { max: 10, connectTimeoutMs });
  const drop = async () => {
    await pool.end();
    await onServer(serverUrl, `drop database ${name} with (force)`);
  };
  return { url, pool, drop };
}
