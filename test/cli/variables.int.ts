import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';
import { exportd } from './command_line.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
});
afterAll(() => api.close());

const run = (...args: string[]) => exportd({ DATABASE_URL: api.database.url }, 'variable', ...args);
const set = async (codeName: string, value: string, ...more: string[]) => {
  const project = String(api.projectId);
  const { code, stdout, stderr } = await run(
    'set',
    '--project',
    project,
    '--code-name',
    codeName,
    '--default',
    value,
    ...more,
    '--json',
  );
  return code === 0 ? (JSON.parse(stdout) as Record<string, unknown>) : stderr;
};

it('creates, changes and lists variables that queries read', async () => {
  const [country, minimum] = [await set('country', 'DE', '--name', 'Country'), await set('minimum', '5')];
  expect([country, minimum]).toMatchObject([
    { code_name: 'country', name: 'Country', default_value: 'DE', team_id: api.projectId },
    { code_name: 'minimum', name: 'minimum', default_value: 5 },
  ]);
  const changed = await set('country', '10', '--type', 'String');
  expect(changed).toMatchObject({ id: (country as { id: string }).id, name: 'Country', default_value: '10' });
  const listed = await run('list', '--project', String(api.projectId), '--json');
  expect(JSON.parse(listed.stdout)).toEqual({ count: 2, results: [changed, minimum] });
  const response = await api.call('POST', 'query', {
    query: { kind: 'DialectQuery', query: 'select {variables.country}, {variables.minimum}' },
  });
  expect(response.body.results).toEqual([['10', 5]]);
});

it('prints errors', async () => {
  expect(await set('two words', '1')).toMatch(/"two words" is not a valid code name/);
  expect(await set('size', 'big', '--type', 'Number')).toMatch(/not a valid Number/);
  const { code, stderr } = await run('set', '--project', '4711', '--code-name', 'a', '--default', '1');
  expect([code, stderr]).toEqual([1, expect.stringMatching(/Project 4711 does not exist/)]);
});
