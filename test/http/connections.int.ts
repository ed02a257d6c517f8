import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { bounds } from '../../src/config/bounds.ts';
import { createPool, type Pool } from '../../src/journal/database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';

/** Requests of one key at a time: more than the pool has connections. */
const loops = 48;

let api: ApiHarness;
let holder: Pool;
beforeAll(async () => {
  api = await openApiHarness();
  holder = createPool(api.database.url, { max: 2 });
});
afterAll(async () => {
  await holder.end();
  await api.close();
});

it('requests of one project use a share of the connections, and those of another are answered', async () => {
  const { max } = bounds.connectionsOfProject;
  const { key } = await api.newKey(api.otherProjectId);
  const lists = (projectId: number, resource: string, of: string) =>
    api.call('GET', `/api/projects/${projectId}/${resource}/`, undefined, { authorization: `Bearer ${of}` });
  // Whatever reads the webhooks waits.
  const locked = await holder.connect();
  await locked.query('begin');
  await locked.query('lock table exportd.webhooks in access exclusive mode');
  const waitingStatements = async () => {
    const { rows } = await holder.query<{ statements: number }>(
      `select count(*) as statements from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows[0]?.statements;
  };
  const many = Array.from({ length: loops }, () => lists(api.otherProjectId, 'webhooks', key));
  await waitFor(async () => (await waitingStatements()) === max, 'the project uses its share');
  for (const resource of ['batch_exports', 'keys', 'audit', 'batch_exports', 'keys', 'audit'])
    expect([resource, (await lists(api.projectId, resource, api.key)).status]).toEqual([resource, 200]);
  // A connection for each: those of a third and fourth project would be answered too.
  expect(await waitingStatements()).toBe(max);
  await locked.query('rollback');
  locked.release();
  const statuses = (await Promise.all(many)).map(({ status }) => status);
  expect(statuses).toEqual(Array.from({ length: loops }, () => 200));
});
