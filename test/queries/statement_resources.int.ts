import { randomUUID } from 'node:crypto';
import { afterEach, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import {
  connectQueriesToSource,
  queryRelationsOf,
  queryTransaction,
  workMemOf,
} from '../../src/queries/query_source.ts';
import { postgresWarehouse } from '../../src/queries/postgres_warehouse.ts';
import { otherRoles } from '../../src/queries/query_role/set_up_query_role.ts';
import { toQueryError } from '../../src/queries/query_errors.ts';
import type { SourceConnections } from '../../src/source/source_connection.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';

const database = useTestDatabase();
const opened: SourceConnections[] = [];
afterEach(async () => {
  for (const source of opened.splice(0)) await source.close();
});

/** Runs a statement as a query's. */
async function run(text: string, url = database.url): Promise<Record<string, unknown> | undefined> {
  const source = connectQueriesToSource(
    readSettings({
      DATABASE_URL: url,
      EXPORTD_QUERY_WORK_MEM: '64KiB',
      EXPORTD_QUERY_TEMP_FILE_LIMIT: '1MiB',
    }),
  );
  opened.push(source);
  return source.read(queryTransaction(60_000, 1), undefined, async ({ connection }) => {
    const { rows } = await connection.query<Record<string, unknown>>(text);
    return rows[0];
  });
}

const limits = `select current_setting('work_mem') as work_mem, current_setting('temp_file_limit') as temp_file_limit`;

it('a query has bounded memory and temporary files', async () => {
  expect(await run(limits)).toEqual({ work_mem: '64kB', temp_file_limit: '1MB' });
  const sorted = run('select n from generate_series(1, 300000) as n order by n desc limit 1 offset 299999');
  const error = toQueryError(await sorted.catch((thrown: unknown) => thrown));
  expect(error?.message).toBe(
    'The query exceeds the limit on temporary disk space (EXPORTD_QUERY_TEMP_FILE_LIMIT). (SQLSTATE 53400)',
  );
});

it('a role that may not bound its temporary files still runs queries', async () => {
  const role = `reader_${randomUUID().replaceAll('-', '')}`;
  await database.pool.query(`create role ${role} login password 'secret'`);
  // Where a test has set up a role of queries, PUBLIC may call little.
  await database.pool.query(
    `do $$ begin
       if exists (select from pg_roles where rolname = '${otherRoles}') then grant ${otherRoles} to ${role}; end if;
     end $$`,
  );
  const url = new URL(database.url);
  [url.username, url.password] = [role, 'secret'];
  expect(await run(limits, url.href)).toEqual({ work_mem: '64kB', temp_file_limit: '-1' });
  await database.pool.query(`grant set on parameter temp_file_limit to ${role}`);
  expect(await run(limits, url.href)).toMatchObject({ temp_file_limit: '1MB' });
  await database.pool.query(`revoke set on parameter temp_file_limit from ${role}`);
  await database.pool.query(`drop role ${role}`);
});

it('many sorts of a statement share the memory of eight', async () => {
  const settings = readSettings({ DATABASE_URL: database.url, EXPORTD_QUERY_WORK_MEM: '1MiB' });
  const source = connectQueriesToSource(settings);
  opened.push(source);
  const workMems = await source.read(queryTransaction(60_000, 1), undefined, async ({ connection }) => {
    const statements = postgresWarehouse(connection, {
      relations: queryRelationsOf(settings),
      project: { warehouse_tables: [], property_definitions: [] },
      workMemOf: (operations) => workMemOf(settings, operations),
    });
    const found: unknown[] = [];
    for (const memoryOperations of [0, 8, 32, 4_000, 1])
      await statements.readRows(
        { text: "select current_setting('work_mem')", values: [], memoryOperations },
        { maxRows: 1, maxBytes: 100, receive: (rows) => found.push(...rows.flat()) },
      );
    return found;
  });
  expect(workMems).toEqual(['1MB', '1MB', '256kB', '64kB', '1MB']);
});
