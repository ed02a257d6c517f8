import { randomUUID } from 'node:crypto';
import { createPool, type Pool } from '../../src/journal/database.ts';
import { fromSetUp } from './environment.ts';
import { databaseOf, onServer, templateDatabase } from './template_database.ts';

/** A database that one test file uses alone. */
export interface TestDatabase {
  readonly url: string;
  /** A pool with exportd's type parsers and application name. */
  readonly pool: Pool;
  /** Closes the pool, disconnects everyone else and drops the database. */
  drop(): Promise<void>;
}

/** Long, because a late connection on a busy machine is not what a test is about. */
const connectTimeoutMs = 60_000;

/** Creates a migrated database with the control tables and the source's relations. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const serverUrl = fromSetUp('EXPORTD_TEST_DATABASE_URL');
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  // Copying files is faster than writing a small template through the write-ahead log.
  await onServer(serverUrl, `create database ${name} template ${templateDatabase} strategy file_copy`);
  const url = databaseOf(serverUrl, name);
  const pool = createPool(url, { max: 10, connectTimeoutMs });
  const drop = async () => {
    await pool.end();
    await onServer(serverUrl, `drop database ${name} with (force)`);
  };
  return { url, pool, drop };
}
