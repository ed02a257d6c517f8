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

/** A database whose URL and pool can be passed on before it is created. */
interface PlannedDatabase extends TestDatabase {
  /** Creates the database, migrated, with the control tables and the source's relations. */
  create(): Promise<void>;
}

/** Long, because a late connection on a busy machine is not what a test is about. */
const connectTimeoutMs = 60_000;

/** Names a database without creating it. Its pool connects with the first query. */
export function planTestDatabase(): PlannedDatabase {
  const serverUrl = fromSetUp('EXPORTD_TEST_DATABASE_URL');
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const url = databaseOf(serverUrl, name);
  const pool = createPool(url, { max: 10, connectTimeoutMs, preparesStatements: true });
  return {
    url,
    pool,
    // Copying files is faster than writing a small template through the write-ahead log.
    create: () =>
      onServer(serverUrl, `create database ${name} template ${templateDatabase} strategy file_copy`),
    drop: async () => {
      await pool.end();
      await onServer(serverUrl, `drop database ${name} with (force)`);
    },
  };
}

/** Creates a migrated database with the control tables and the source's relations. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const database = planTestDatabase();
  await database.create();
  return database;
}
