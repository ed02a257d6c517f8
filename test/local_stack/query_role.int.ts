import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import { prepareQueryRole } from '../../src/local_stack/queries.ts';
import { connectQueriesToSource, queryTransaction } from '../../src/queries/query_source.ts';
import { fromSetUp } from '../setup/environment.ts';
import { queryRoleSettings } from '../setup/query_role.ts';
import { onServer } from '../setup/template_database.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';

const database = useTestDatabase();
const nameOf = (url: string) => `${new URL(url).pathname.slice(1)}_query`;
const { EXPORTD_ENCRYPTION_KEYS: keys } = queryRoleSettings('postgres://127.0.0.1/unused');

beforeAll(async () => {
  await database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, timestamp) values
       (1, gen_random_uuid(), 'own', 'd', now()), (2, gen_random_uuid(), 'other', 'd', now())`,
  );
});
// After the database, which depends on it.
afterAll(() =>
  onServer(fromSetUp('EXPORTD_TEST_DATABASE_URL'), `drop role if exists ${nameOf(database.url)}`),
);

it('queries of a stack run under a role of its database', async () => {
  const role = await prepareQueryRole(database.url, keys);
  await role.update();
  const settings = readSettings({
    DATABASE_URL: database.url,
    EXPORTD_ENCRYPTION_KEYS: keys,
    ...role.environment,
  });
  const source = connectQueriesToSource(settings);
  const rows = await source.read(queryTransaction(60_000, 1), undefined, async ({ connection }) => [
    (await connection.query('select current_user as role')).rows,
    (await connection.query('select event from public.events')).rows,
  ]);
  await source.close();
  expect(rows).toEqual([[{ role: nameOf(database.url) }], [{ event: 'own' }]]);
});

it('a database of the user is left alone', async () => {
  process.env.DATABASE_URL = database.url;
  try {
    expect((await prepareQueryRole(database.url, keys)).environment).toEqual({});
  } finally {
    delete process.env.DATABASE_URL;
  }
});
