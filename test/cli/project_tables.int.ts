import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';
import { queryRoleSettings } from '../setup/query_role.ts';
import { exportd } from './command_line.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
  await api.database.pool.query('create table public.stripe_charges (amount integer)');
});
afterAll(() => api.close());

const run = async (...args: readonly string[]) => {
  const { url } = api.database;
  const environment = { DATABASE_URL: url, ...queryRoleSettings(url) };
  const { code, stdout, stderr } = await exportd(environment, ...args, '--json');
  return code === 0 ? (JSON.parse(stdout) as unknown) : stderr.trim();
};

it('registers, lists and removes tables', async () => {
  const ofProject = ['--project', String(api.projectId)] as const;
  const named = [...ofProject, '--name', 'stripe.charges'] as const;
  const added = await run('warehouse', 'add', ...named, '--relation', 'stripe_charges');
  expect(added).toMatchObject({ name: 'stripe.charges', relation_schema: 'public', team_column: null });
  expect(await run('warehouse', 'list', ...ofProject)).toEqual({ count: 1, results: [added] });
  const { body } = await api.call('POST', 'query/', {
    query: { kind: 'DialectQuery', query: 'select count() from stripe.charges' },
  });
  expect(body.results).toEqual([[0]]);
  expect(await run('warehouse', 'remove', ...named)).toEqual({ removed: 'stripe.charges' });
  expect(await run('warehouse', 'remove', ...named)).toMatch(/has no table "stripe.charges"/);
});

it('says when the role of queries gets no rights, because the environment does not name it', async () => {
  const { code, stderr } = await exportd(
    { DATABASE_URL: api.database.url },
    'warehouse',
    'add',
    '--project',
    String(api.otherProjectId),
    '--name',
    'charges',
    '--relation',
    'stripe_charges',
  );
  expect([code, stderr]).toEqual([0, expect.stringMatching(/when "exportd query setup" has run/)]);
});

it('explains a query', async () => {
  const explained = await run('query', 'explain', 'select 1 + 1', '--project', String(api.projectId));
  expect(explained).toMatchObject({
    tree: {
      operation: 'query',
      operands: [{ operation: 'select', operands: [{ operation: '+', type: 'Int64' }] }],
    },
    sql: 'select $1::int8 as "c1" limit $2::int8',
    parameters: ['2', '10001'],
  });
  expect(await run('query', 'explain', 'select x')).toMatch(/Unable to resolve field: x/);
});

it('defines, lists and removes properties', async () => {
  const ofProject = ['--project', String(api.projectId)] as const;
  const named = [...ofProject, '--scope', 'person', '--name', 'seats'] as const;
  const defined = await run('property', 'define', ...named, '--type', 'numeric');
  expect(defined).toMatchObject({ scope: 'person', name: 'seats', type: 'numeric' });
  expect(await run('property', 'list', ...ofProject)).toEqual({ count: 1, results: [defined] });
  expect(await run('property', 'remove', ...named)).toEqual({ removed: 'seats' });
  expect(await run('property', 'define', ...named, '--type', 'text')).toMatch(/Allowed choices are numeric/);
});

it('lists the type that a query inferred, until it is declared', async () => {
  await api.database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
     select $1, gen_random_uuid(), 'bought', 'd', '{"price": 5}', now() from generate_series(1, 3)`,
    [api.projectId],
  );
  const ofProject = ['--project', String(api.projectId)] as const;
  const explained = await run('query', 'explain', 'select avg(properties.price) from events', ...ofProject);
  expect(explained).toMatchObject({ sql: expect.stringContaining('float8') });
  const inferred = { scope: 'event', name: 'price', type: 'numeric', sampled_values: 3, matching_values: 3 };
  expect(await run('property', 'list', ...ofProject)).toMatchObject({ count: 1, results: [inferred] });
  const { url } = api.database;
  const environment = { DATABASE_URL: url, ...queryRoleSettings(url) };
  const { stdout } = await exportd(environment, 'property', 'list', ...ofProject);
  expect(stdout).toMatch(/event +price +numeric +inferred from 3 of 3 values +\d{4}-/);
  const named = [...ofProject, '--scope', 'event', '--name', 'price'] as const;
  expect(await run('property', 'define', ...named, '--type', 'string')).toMatchObject({
    sampled_values: null,
  });
  expect(await run('query', 'explain', 'select avg(properties.price) from events', ...ofProject)).toMatch(
    /expects a number/,
  );
  expect(await run('property', 'remove', ...named)).toEqual({ removed: 'price' });
});
