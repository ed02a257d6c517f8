import pg from 'pg';
import { migrate, migrateSource } from '../../src/journal/migrate.ts';

/** A migrated, empty database that tests clone. */
export const templateDatabase = 'exportd_template';

/** Address of another database of the same server. */
export function databaseOf(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** Runs one statement on the server's own database. */
export async function onServer(serverUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl, application_name: 'exportd-tests' });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Makes the template, once for a run of Jest. */
export async function createTemplateDatabase(serverUrl: string): Promise<void> {
  await onServer(serverUrl, `create database ${templateDatabase}`);
  const url = databaseOf(serverUrl, templateDatabase);
  await migrate(url);
  await migrateSource(url);
}
