import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openFacade, type Facade } from '../http/facade.ts';
import { exportd } from './command_line.ts';

let facade: Facade;
beforeAll(async () => {
  facade = await openFacade();
  await facade.database.pool.query('create table public.stripe_charges (amount integer)');
});
afterAll(() => facade.close());

const run = async (...args: readonly string[]) => {
  const { code, stdout, stderr } = await exportd({ DATABASE_URL: facade.database.url }, ...args, '--json');
  return code === 0 ? (JSON.parse(stdout) as unknown) : stderr.trim();
};

it('registers tables, lists and removes them', async () => {
  const ofProject = ['--project', String(facade.projectId)] as const;
  const named = [...ofProject, '--name', 'stripe.charges'] as const;
  const added = await run('warehouse', 'add', ...named, '--relation', 'stripe_charges');
  expect(added).toMatchObject({ name: 'stripe.charges', relation_schema: 'public', team_column: null });
  expect(await run('warehouse', 'list', ...ofProject)).toEqual([added]);
  expect(await run('warehouse', 'remove', ...named)).toEqual({ removed: 'stripe.charges' });
  expect(await run('warehouse', 'remove', ...named)).toMatch(/has no table "stripe.charges"/);
});

it('defines properties, lists and removes them', async () => {
  const ofProject = ['--project', String(facade.projectId)] as const;
  const named = [...ofProject, '--scope', 'person', '--name', 'seats'] as const;
  const defined = await run('property', 'define', ...named, '--type', 'numeric');
  expect(defined).toMatchObject({ scope: 'person', name: 'seats', type: 'numeric' });
  expect(await run('property', 'list', ...ofProject)).toEqual([defined]);
  expect(await run('property', 'remove', ...named)).toEqual({ removed: 'seats' });
  expect(await run('property', 'define', ...named, '--type', 'text')).toMatch(/Allowed choices are numeric/);
});
