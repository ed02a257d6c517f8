import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openFacade, type Facade } from '../http/facade.ts';
import { exportd } from './command_line.ts';

let facade: Facade;
beforeAll(async () => {
  facade = await openFacade();
});
afterAll(() => facade.close());

const run = (...args: string[]) => exportd({ DATABASE_URL: facade.database.url }, 'variable', ...args);
const set = async (codeName: string, value: string, ...more: string[]) => {
  const project = String(facade.projectId);
  const { code, stdout, stderr } = await run(
    ...['set', '--project', project, '--code-name', codeName, '--default', value, ...more, '--json'],
  );
  return code === 0 ? (JSON.parse(stdout) as Record<string, unknown>) : stderr;
};

it('makes variables, changes and lists them, and queries read them', async () => {
  const [country, least] = [await set('country', 'DE', '--name', 'Country'), await set('least', '5')];
  expect([country, least]).toMatchObject([
    { code_name: 'country', name: 'Country', default_value: 'DE', team_id: facade.projectId },
    { code_name: 'least', name: 'least', default_value: 5 },
  ]);
  const changed = await set('country', '10', '--type', 'String');
  expect(changed).toMatchObject({ id: (country as { id: string }).id, name: 'Country', default_value: '10' });
  const listed = await run('list', '--project', String(facade.projectId), '--json');
  expect(JSON.parse(listed.stdout)).toEqual([changed, least]);
  const answer = await facade.call('POST', 'query', {
    query: { kind: 'DialectQuery', query: 'select {variables.country}, {variables.least}' },
  });
  expect(answer.body.results).toEqual([['10', 5]]);
});

it('says in words what is wrong', async () => {
  expect(await set('two words', '1')).toMatch(/"two words" is no code name/);
  expect(await set('size', 'big', '--type', 'Number')).toMatch(/not what the type Number/);
  const { code, stderr } = await run('set', '--project', '4711', '--code-name', 'a', '--default', '1');
  expect([code, stderr]).toEqual([1, expect.stringMatching(/no project 4711/)]);
});
