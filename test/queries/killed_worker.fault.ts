import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { registerQuery } from '../../src/queries/statuses.ts';
import { reconcileQueries } from '../../src/temporal/reconcilers/queries.ts';
import { createQueryClient } from '../../src/temporal/clients/query_client.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { queryWorkflowId } from '../../src/contract/workflow_ids.ts';
import { until } from '../setup/until.ts';
import { openQueryStack, type QueryStack } from './query_stack.ts';
import { statement } from './fake_kind.ts';

let stack: QueryStack;
let child: ChildProcess | undefined;
beforeAll(async () => {
  stack = await openQueryStack({ EXPORTD_QUERY_SLOTS: '1', EXPORTD_QUERY_HEARTBEAT_TIMEOUT: '3s' });
});
afterAll(async () => {
  child?.kill('SIGKILL');
  await stack.close();
});

const start = async (text: string) => {
  const id = randomUUID();
  await stack.server.post(statement(text), { refresh: 'async', client_query_id: id });
  return id;
};
const statusOf = async (id: string) =>
  (await stack.server.call('GET', `query/${id}`)).body.query_status ?? {};
const completed = (id: string) =>
  until(async () => {
    const status = await statusOf(id);
    return status.complete === true ? status : undefined;
  }, 'the query to complete');
const workflowOf = (id: string) =>
  stack.control.client.workflow.getHandle(queryWorkflowId({ team_id: stack.projectId, id }));

it('a query whose worker is killed in the middle is completed by another', async () => {
  await stack.control.startWorker();
  // The only place of this process's worker is taken, so the query goes to the other process.
  const occupying = await start('select pg_sleep(600)');
  await stack.running();
  child = spawn(process.execPath, [join(import.meta.dirname, 'worker_program.ts')], {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: stack.control.settings.DATABASE_URL,
      TEMPORAL_ADDRESS: stack.control.settings.TEMPORAL_ADDRESS,
      EXPORTD_TASK_QUEUE_PREFIX: stack.control.settings.EXPORTD_TASK_QUEUE_PREFIX,
      EXPORTD_QUERY_HEARTBEAT_TIMEOUT: '1s',
      EXPORTD_LOG_LEVEL: 'fatal',
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const letGo = await stack.holdPersons();
  const secret = `canary-${randomUUID()}`;
  const id = await start(`select count(*)::integer, '${secret}' from public.persons`);
  await stack.running(2);
  child.kill('SIGKILL');
  await stack.running(1);
  await stack.server.call('DELETE', `query/${occupying}`);
  await stack.running(1);
  expect(await statusOf(id)).toMatchObject({ complete: false });
  await letGo();
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

it('a query that Temporal does not know or has ended is mended by the reconciler', async () => {
  await stack.control.stopWorker();
  const { pool, control } = stack;
  const { client, settings } = control;
  const terminated = await start("select 'terminated'");
  // As it is when the namespace was lost: the query is stored, and Temporal knows nothing of it.
  const { status } = await registerQuery(pool, {
    team_id: stack.projectId,
    id: randomUUID(),
    kind: 'StatementQuery',
    query: statement("select 'lost'"),
    variables: {},
    cache_key: 'cache_lost',
    query_async: true,
  });
  await workflowOf(terminated).terminate();
  await reconcileQueries({
    client,
    journal: control.journal,
    backgroundQueries: createQueryClient(client, settings),
    logger: createLogger('test', settings),
    settings: { ...settings, EXPORTD_RECONCILE_INTERVAL: 0 },
  });
  expect(await statusOf(terminated)).toMatchObject({
    complete: true,
    error: true,
    error_message: 'The query was ended in Temporal.',
  });
  await control.startWorker();
  expect(await completed(status.id)).toMatchObject({ error: false, results: { results: [['lost']] } });
});
