import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { QueryCancelled } from '../../src/queries/query_errors.ts';
import { connectQueriesToSource } from '../../src/queries/query_source.ts';
import { runBackgroundQuery } from '../../src/queries/run_background.ts';
import { createRunningQueries, type RunningQueries } from '../../src/queries/running_queries.ts';
import { registerQuery, requestCancel } from '../../src/queries/statuses.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { queryWorkflowId } from '../../src/contract/workflow_ids.ts';
import { until } from '../setup/until.ts';
import { openQueryStack, type QueryServer, type QueryStack } from './query_stack.ts';
import { standInKinds, statement } from './fake_kind.ts';

let stack: QueryStack;
let otherServer: QueryServer;
beforeAll(async () => {
  stack = await openQueryStack();
  otherServer = await stack.addServer();
  await stack.control.startWorker();
});
afterEach(async () => {
  expect(await stack.statements()).toBe(0);
});
afterAll(() => stack.close());

const endless = () => statement(`select pg_sleep(600), '${randomUUID()}'`);
const retrieve = (id: string, server = stack.server) =>
  server.call('GET', `query/${encodeURIComponent(id)}/`);
const cancel = (id: string, server = stack.server) =>
  server.call('DELETE', `query/${encodeURIComponent(id)}`);

describe('a query in the background', () => {
  it('ends in PostgreSQL when it is cancelled, and says so', async () => {
    const id = randomUUID();
    await stack.server.post(endless(), { refresh: 'async', client_query_id: id });
    await stack.running();
    expect((await cancel(id)).status).toBe(204);
    expect(await stack.statements()).toBe(0);
    const { status, body } = await retrieve(id);
    expect([status, body.query_status]).toMatchObject([
      200,
      { complete: true, error: true, error_message: 'The query was cancelled.', results: null },
    ]);
    expect((await cancel(id)).status).toBe(204);
    const handle = stack.control.client.workflow.getHandle(queryWorkflowId({ team_id: stack.projectId, id }));
    await until(async () => (await handle.describe()).status.name !== 'RUNNING', 'the end of the workflow');
  });

  it('that is cancelled in Temporal ends the same way', async () => {
    const id = randomUUID();
    await stack.server.post(endless(), { refresh: 'force_async', client_query_id: id });
    await stack.running();
    await stack.control.client.workflow.getHandle(queryWorkflowId({ team_id: stack.projectId, id })).cancel();
    await until(async () => (await retrieve(id)).body.query_status?.complete === true, 'the cancellation');
    expect((await retrieve(id)).body.query_status).toMatchObject({
      error: true,
      error_message: 'The query was cancelled.',
    });
  });

  it('that hears of both its cancellation and the end of its attempt counts as cancelled', async () => {
    const { pool, projectId: team_id } = stack;
    const { settings } = stack.control;
    const { kind, ...query } = endless();
    const { status } = await registerQuery(pool, {
      ...{ id: randomUUID(), team_id, kind, query, variables: {}, cache_key: '', query_async: true },
    });
    const source = connectQueriesToSource(settings);
    const logger = createLogger('test', settings);
    const queries = createRunningQueries({ pool, pollMs: 20, logger });
    const stopping = new AbortController();
    const running: RunningQueries = {
      ...queries,
      run: (id, work) => queries.run(id, work).finally(() => stopping.abort()),
    };
    const ran = runBackgroundQuery(
      { pool, kinds: standInKinds, source, running, logger, settings },
      status.execution_id,
      stopping.signal,
    );
    await stack.running();
    await requestCancel(pool, status.execution_id, 60_000);
    expect(await ran).toBe('cancelled');
    expect((await retrieve(status.id)).body.query_status).toMatchObject({
      complete: true,
      error_message: 'The query was cancelled.',
    });
    await source.close();
  });

  it('whose attempt was taken for lost ends the next attempt on its cancellation, not just the first', async () => {
    const { pool } = stack;
    const running = createRunningQueries({
      pool,
      pollMs: 20,
      logger: createLogger('test', stack.control.settings),
    });
    const id = randomUUID();
    const lost = running.run(id, () => Promise.resolve());
    const next = running.run(
      id,
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            reject(signal.reason as Error);
          });
        }),
    );
    // Nobody knows the id, so it counts as cancelled at the first look.
    await lost;
    await expect(next).rejects.toThrow(QueryCancelled);
  });

  it('under an id in use is not started twice, and its id is free once it has ended', async () => {
    const id = randomUUID();
    const query = endless();
    const first = await stack.server.post(query, { refresh: 'async', client_query_id: id });
    await stack.running();
    const again = await otherServer.post(query, { refresh: 'force_async', client_query_id: id });
    expect(again.body.query_status).toMatchObject({
      id,
      complete: false,
      start_time: first.body.query_status?.start_time,
    });
    const another = await otherServer.post(endless(), { refresh: 'async', client_query_id: id });
    expect([another.status, another.body.code, another.body.attr]).toEqual([
      409,
      'conflict',
      'client_query_id',
    ]);
    expect(await stack.statements()).toBe(1);
    await cancel(id);
    const next = await stack.server.post(statement('select 1'), { refresh: 'async', client_query_id: id });
    expect(next.body.query_status).toMatchObject({ id, complete: false });
    await until(async () => (await retrieve(id)).body.query_status?.complete === true, 'the next query');
    expect((await retrieve(id)).body.query_status).toMatchObject({
      error: false,
      results: { results: [[1]] },
    });
  });
});

describe('a blocking query', () => {
  it('is seen and cancelled through another server process; its POST answers 400', async () => {
    const id = `dash board/${randomUUID()} ü`;
    const posted = stack.server.post(endless(), { client_query_id: id });
    await stack.running();
    expect((await retrieve(id, otherServer)).body.query_status).toMatchObject({
      id,
      complete: false,
      query_async: false,
      task_id: null,
    });
    expect((await cancel(id, otherServer)).status).toBe(204);
    expect(await stack.statements()).toBe(0);
    const { status, body } = await posted;
    expect([status, body]).toEqual([
      400,
      {
        type: 'validation_error',
        code: 'query_cancelled',
        detail: 'The query was cancelled.',
        attr: null,
      },
    ]);
  });

  it('is waited for by a second request under its id, and answers both', async () => {
    const id = randomUUID();
    const query = statement(`select gen_random_uuid()::text, '${id}', count(*) from public.persons`);
    const letGo = await stack.holdPersons();
    const first = stack.server.post(query, { client_query_id: id });
    await stack.running();
    const refused = await otherServer.post(statement('select 2'), { client_query_id: id });
    expect(refused.status).toBe(409);
    const { rows } = await stack.pool.query<{ now: string }>('select clock_timestamp()::text as now');
    const asked = otherServer.post(query, { client_query_id: id });
    await until(async () => {
      const { rowCount } = await stack.pool.query(
        `select from pg_stat_activity where datname = current_database() and query_start > $1
           and query like 'select team_id, id, execution_id, cache_key%'`,
        [rows[0]?.now],
      );
      return (rowCount ?? 0) > 0;
    }, 'the second request reads the status of the first');
    await letGo();
    const second = await asked;
    expect(second.body).toEqual((await first).body);
    expect((await retrieve(id)).body.query_status).toMatchObject({
      complete: true,
      results: { results: second.body.results },
    });
  });

  it('that is answered from the cache can be asked for under the id, too', async () => {
    const query = statement(`select '${randomUUID()}'`);
    const { body } = await stack.server.post(query);
    const id = randomUUID();
    await stack.server.post(query, { client_query_id: id });
    expect((await retrieve(id)).body.query_status).toMatchObject({
      complete: true,
      results: { results: body.results, cache_key: body.cache_key },
    });
  });

  it('counts as failed when its process is gone, and its id is free', async () => {
    const id = randomUUID();
    const query = statement(`select '${id}'`);
    await stack.server.post(query, { client_query_id: id });
    await stack.pool.query(
      `update exportd.queries set status = 'running', end_time = null, expiration_time = null, result_id = null,
         lease_expires_at = clock_timestamp() - interval '1 second' where id = $1`,
      [id],
    );
    expect((await retrieve(id)).body.query_status).toMatchObject({
      complete: true,
      error: true,
      error_message: expect.stringContaining('process that ran the query has ended'),
    });
    const again = await stack.server.post(query, { client_query_id: id, refresh: 'force_blocking' });
    expect(again.body.results).toEqual([[id]]);
  });

  it('is ended by the shutdown of its server', async () => {
    const leaving = await stack.addServer();
    const posted = leaving.post(endless(), { client_query_id: 'left' });
    await stack.running();
    await leaving.app.close();
    expect((await posted).status).toBe(503);
    expect((await retrieve('left')).body.query_status).toMatchObject({ complete: true, error: true });
  });
});

describe('an id that names nothing', () => {
  it('is 404, as is the id of another project and one that has expired', async () => {
    const id = randomUUID();
    await stack.server.post(statement('select 1'), { client_query_id: id });
    const statuses = async (of: string, key = stack.key, project = stack.projectId) => {
      const path = `/api/environments/${project}/query/${of}/`;
      const retrieved = await stack.server.call('GET', path, undefined, key);
      const deleted = await stack.server.call('DELETE', path, undefined, key);
      return [retrieved.status, deleted.status];
    };
    expect(await statuses(randomUUID())).toEqual([404, 404]);
    expect(await statuses(id, stack.otherKey, stack.otherProjectId)).toEqual([404, 404]);
    expect(await statuses(id)).toEqual([200, 204]);
    await stack.pool.query('update exportd.queries set expiration_time = clock_timestamp() where id = $1', [
      id,
    ]);
    expect(await statuses(id)).toEqual([404, 404]);
  });
});
