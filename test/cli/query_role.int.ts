import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { fromSetUp } from '../setup/environment.ts';
import { queryRoleSettings } from '../setup/query_role.ts';
import { onServer } from '../setup/template_database.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { exportd } from './command_line.ts';

const database = useTestDatabase();
const role = 'exportd_cli_query';
const poorRole = 'exportd_cli_reader';

let environment: Record<string, string>;
beforeAll(async () => {
  const settings = queryRoleSettings(database.url);
  const url = new URL(settings.EXPORTD_QUERY_DATABASE_URL);
  url.username = role;
  environment = { DATABASE_URL: database.url, ...settings, EXPORTD_QUERY_DATABASE_URL: url.href };
  await database.pool.query(
    `create role ${poorRole} login password 'poor'; grant exportd_other_roles to ${poorRole}`,
  );
});
// After the database, which depends on them.
afterAll(() => onServer(fromSetUp('EXPORTD_TEST_DATABASE_URL'), `drop role if exists ${role}, ${poorRole}`));

describe('exportd query setup', () => {
  it('says which setting names the role', async () => {
    const { code, stderr } = await exportd({ DATABASE_URL: database.url }, 'query', 'setup');
    expect([code, stderr]).toEqual([1, expect.stringContaining('EXPORTD_QUERY_DATABASE_URL is not set')]);
  });

  it('says what to do if it may not create a role', async () => {
    const url = new URL(database.url);
    url.username = poorRole;
    url.password = 'poor';
    const { code, stderr } = await exportd(
      { ...environment, SOURCE_DATABASE_URL: url.href },
      'query',
      'setup',
    );
    expect([code, stderr]).toEqual([1, expect.stringContaining('exportd query setup --print')]);
  });

  it('prints SQL that creates the role, without its password', async () => {
    const { code, stdout } = await exportd(environment, 'query', 'setup', '--print');
    expect(code).toBe(0);
    expect(stdout).toContain(`create role "${role}" nosuperuser`);
    expect(stdout).not.toContain('of the query role');
    // Roles that are created later lack what PUBLIC loses.
    const closing = 'create role exportd_other_roles';
    expect(stdout).toContain(closing);
    const open = await exportd(environment, 'query', 'setup', '--print', '--no-close-catalog');
    expect(open.stdout).not.toContain(closing);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query(stdout);
    await client.end();
    const roleClient = new pg.Client({ connectionString: environment.EXPORTD_QUERY_DATABASE_URL });
    await roleClient.connect();
    await expect(roleClient.query('select from public.events')).rejects.toMatchObject({ code: '42501' });
    await roleClient.end();
  });

  it('updates the role, and names those that row security stops', async () => {
    await database.pool.query(`grant insert on public.events to ${poorRole}`);
    const { code, stdout } = await exportd(environment, 'query', 'setup', '--json');
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      { role, relations: expect.arrayContaining(['public.events']), loaders: [poorRole] },
    ]);
  });

  it('opens nothing to the role of queries of another database', async () => {
    const { rows } = await database.pool.query(
      `select rolname, pg_has_role(oid, 'exportd_other_roles', 'member') as member from pg_roles
       where rolname in ('exportd_query', '${role}', '${poorRole}') order by 1`,
    );
    expect(rows).toEqual([
      { rolname: role, member: false },
      { rolname: poorRole, member: true },
      { rolname: 'exportd_query', member: false },
    ]);
  });
});

it('exportd doctor checks the role', async () => {
  const roleCheck = async () => {
    const { stdout } = await exportd(environment, 'doctor', '--json');
    const checks = JSON.parse(stdout) as { check: string; ok: boolean; detail: string }[];
    return checks.find(({ check }) => check === 'query role');
  };
  expect(await roleCheck()).toMatchObject({
    ok: true,
    detail: expect.stringContaining('cannot read the catalogue'),
  });
  await database.pool.query(`grant pg_read_all_data to ${role}`);
  expect(await roleCheck()).toMatchObject({
    ok: false,
    detail: expect.stringContaining('act as another role'),
  });
});
