import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { registerQuery } from '../../src/queries/statuses.ts';
import { createQueryClient } from '../../src/temporal/clients/query_client.ts';
import { createQueryReconcilers } from '../../src/temporal/reconcilers/queries.ts';
import { createReconcileLoops } from '../../src/temporal/reconcilers/reconcile_loops.ts';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { fromSetUp } from '../setup/environment.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { v8OfTests } from '../setup/v8_options.ts';
import { waitFor } from '../setup/wait_for.ts';
import { openQueryHarness, type QueryHarness } from './query_harness.ts';
import { statement } from './fake_kind.ts';

let harness: QueryHarness;
let child: ChildProcess | undefined;
beforeAll(async () => {
  harness = await openQueryHarness({
    EXPORTD_QUERY_SLOTS: '1',
    EXPORTD_QUERY_HEARTBEAT_TIMEOUT: failoverWorkers.EXPORTD_HEARTBEAT_TIMEOUT,
  });
});
afterAll(async () => {
  child?.kill('SIGKILL');
  await harness.close();
});

const start = async (text: string) => {
  const id = randomUUID();
  await harness.server.post(statement(text), { refresh: 'async', client_query_id: id });
  return id;
};
const statusOf = async (id: string) =>
  (await harness.server.call('GET', `query/${id}`)).body.query_status ?? {};
const completed = (id: string) =>
  waitFor(async () => {
    const status = await statusOf(id);
    return status.complete === true ? status : undefined;
  }, 'the query to complete');
const workflowOf = (id: string) =>
  harness.control.client.workflow.getHandle(
    workflowIds(harness.control.settings).query({ team_id: harness.projectId, id }),
  );

it('a query whose worker is killed is completed by another worker', async () => {
  await harness.control.startWorker();
  // The only slot of this process's worker is occupied, so the other process gets the query.
  const occupying = await start('select pg_sleep(600)');
  await harness.running();
  child = spawn(process.execPath, [...v8OfTests, join(import.meta.dirname, 'worker_program.ts')], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: fromSetUp('NODE_COMPILE_CACHE'),
      DATABASE_URL: harness.control.settings.DATABASE_URL,
      TEMPORAL_ADDRESS: harness.control.settings.TEMPORAL_ADDRESS,
      EXPORTD_TASK_QUEUE_PREFIX: harness.control.settings.EXPORTD_TASK_QUEUE_PREFIX,
      EXPORTD_QUERY_HEARTBEAT_TIMEOUT: '1s',
      EXPORTD_LOG_LEVEL: 'fatal',
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const release = await harness.lockPersons();
  const secret = `canary-${randomUUID()}`;
  const id = await start(`select count(*)::integer, '${secret}' from public.persons`);
  await harness.running(2);
  child.kill('SIGKILL');
  await harness.running(1);
  await harness.server.call('DELETE', `query/${occupying}`);
  await harness.running(1);
  expect(await statusOf(id)).toMatchObject({ complete: false });
  await release();
  expect(await completed(id)).toMatchObject({ error: false, results: { results: [[0, secret]] } });
  const workflow = workflowOf(id);
  await workflow.result();
  const history = JSON.stringify(await workflow.fetchHistory());
  const decoded = history.replace(/"data":"([^"]*)"/g, (_whole, data: string) =>
    Buffer.from(data, 'base64').toString(),
  );
  expect(decoded).toContain('execution_id');
  expect(decoded).not.toContain('canary');
  expect(decoded).not.toContain('persons');
});

it('the reconciler repairs a query that Temporal lost or has terminated', async () => {
  await harness.control.stopWorker();
  const { pool, control } = harness;
  const { settings } = control;
  const terminated = await start("select 'terminated'");
  // As after the loss of a namespace: the query is stored, but Temporal does not know it.
  const { status } = await registerQuery(pool, {
    team_id: harness.projectId,
    id: randomUUID(),
    kind: 'StatementQuery',
    query: statement("select 'lost'"),
    variables: {},
    cache_key: 'cache_lost',
    user_id: 1,
    query_async: true,
  });
  await workflowOf(terminated).terminate();
  const dependencies = {
    ...control.reconcilerDependencies,
    settings: { ...settings, EXPORTD_RECONCILE_INTERVAL: 0 },
  };
  await createReconcileLoops(dependencies, {
    queries: createQueryReconcilers(createQueryClient(control.client, settings)).queries,
  }).runOnce();
  expect(await statusOf(terminated)).toMatchObject({
    complete: true,
    error: true,
    error_message: 'The query was ended in Temporal.',
  });
  await control.startWorker();
  let last: object = {};
  await control.waitForReconciled(
    async () => {
      last = await statusOf(status.id);
      return 'complete' in last && last.complete === true;
    },
    () => `the lost query to complete; last status ${JSON.stringify(last)}`,
  );
  expect(last).toMatchObject({ error: false, results: { results: [['lost']] } });
});
