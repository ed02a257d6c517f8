import pg from 'pg';
import { migrateControl, migrateSource } from '../../src/migrate/migrate.ts';
import { prepareQueryRole } from './query_role.ts';

/** Name of the migrated, empty database that tests clone. */
export const templateDatabase = 'exportd_template';

/** URL of another database on the same server. */
export function databaseOf(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** Runs one statement on the server's default database. */
export async function onServer(serverUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl, application_name: 'exportd-tests' });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Creates the template once for a run of Jest. */
export async function createTemplateDatabase(serverUrl: string): Promise<void> {
  await onServer(serverUrl, `create database ${templateDatabase}`);
  const url = databaseOf(serverUrl, templateDatabase);
  await migrateControl(url);
  await migrateSource(url);
  await prepareQueryRole(url);
}
