import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { createPool, type Pool } from '../../src/journal/database.ts';
import { migrate, migrateSource } from '../../src/journal/migrate.ts';

export interface TestDatabase {
  readonly url: string;
  readonly pool: Pool;
  drop(): Promise<void>;
}

const serverUrl = () => process.env.EXPORTD_TEST_DATABASE_URL ?? 'postgres://postgres@127.0.0.1:55432/postgres';

/** A database of its own with every migration applied. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const admin = new pg.Client(serverUrl());
  await admin.connect();
  await admin.query(`create database ${name}`);
  const url = new URL(serverUrl());
  url.pathname = `/${name}`;
  await migrate(url.href);
  await migrateSource(url.href);
  const pool = createPool(url.href, { max: 5 });
  return {
    url: url.href,
    pool,
    drop: async () => {
      await pool.end();
      await admin.query(`drop database ${name} with (force)`);
      await admin.end();
    },
  };
}
