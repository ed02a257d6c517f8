import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { QueryCancelled } from '../../src/queries/query_errors.ts';
import { connectQueriesToSource } from '../../src/queries/query_source.ts';
import { runBackgroundQuery } from '../../src/queries/run_background.ts';
import { createInlineExecutor } from './inline_executor.ts';
import { createQuerySlots, backgroundLimits } from '../../src/queries/query_slots.ts';
import { createRunningQueries, type RunningQueries } from '../../src/queries/running_queries.ts';
import { registerQuery, requestCancel } from '../../src/queries/statuses.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { waitFor } from '../setup/wait_for.ts';
import { openQueryHarness, type QueryServer, type QueryHarness } from './query_harness.ts';
import { fakeKinds, statement } from './fake_kind.ts';

let harness: QueryHarness;
let otherServer: QueryServer;
beforeAll(async () => {
  harness = await openQueryHarness();
  otherServer = await harness.addServer();
  await harness.control.startWorker();
});
afterEach(async () => {
  expect(await harness.statements()).toBe(0);
});
afterAll(() => harness.close());

const endless = () => statement(`select pg_sleep(600), '${randomUUID()}'`);
const retrieve = (id: string, server = harness.server) =>
  server.call('GET', `query/${encodeURIComponent(id)}/`);
const cancel = (id: string, server = harness.server) =>
  server.call('DELETE', `query/${encodeURIComponent(id)}`);

describe('a background query', () => {
  it('ends in PostgreSQL when it is cancelled, and its status says so', async () => {
    const id = randomUUID();
    await harness.server.post(endless(), { refresh: 'async', client_query_id: id });
    await harness.running();
    expect((await cancel(id)).status).toBe(204);
    expect(await harness.statements()).toBe(0);
    const { status, body } = await retrieve(id);
    expect([status, body.query_status]).toMatchObject([
      200,
      { complete: true, error: true, error_message: 'The query was cancelled.', results: null },
    ]);
    expect((await cancel(id)).status).toBe(204);
    const handle = harness.control.client.workflow.getHandle(
      workflowIds(harness.control.settings).query({ team_id: harness.projectId, id }),
    );
    await waitFor(async () => (await handle.describe()).status.name !== 'RUNNING', 'the end of the workflow');
  });

  it('ends the same way when it is cancelled in Temporal', async () => {
    const id = randomUUID();
    await harness.server.post(endless(), { refresh: 'force_async', client_query_id: id });
    await harness.running();
    await harness.control.client.workflow
      .getHandle(workflowIds(harness.control.settings).query({ team_id: harness.projectId, id }))
      .cancel();
    await waitFor(async () => (await retrieve(id)).body.query_status?.complete === true, 'the cancellation');
    expect((await retrieve(id)).body.query_status).toMatchObject({
      error: true,
      error_message: 'The query was cancelled.',
    });
  });

  it('is cancelled if both its cancellation and the end of its attempt arrive', async () => {
    const { pool, projectId: team_id } = harness;
    const { settings } = harness.control;
    const { kind, ...query } = endless();
    const { status } = await registerQuery(pool, {
      id: randomUUID(),
      team_id,
      kind,
      query,
      variables: {},
      cache_key: '',
      user_id: 1,
      query_async: true,
    });
    const source = connectQueriesToSource(settings);
    const logger = createLogger('test', settings);
    const slots = createQuerySlots(backgroundLimits(settings));
    const queries = createRunningQueries({ pool, slots, logger });
    const stopping = new AbortController();
    const running: RunningQueries = {
      ...queries,
      run: (id, work) => queries.run(id, work).finally(() => stopping.abort()),
    };
    const ran = runBackgroundQuery(
      {
        pool,
        executor: createInlineExecutor(fakeKinds),
        source,
        running,
        logger,
        settings,
        yieldSlot: () => undefined,
      },
      status.execution_id,
      stopping.signal,
    );
    await harness.running();
    await requestCancel(pool, status.execution_id);
    expect(await ran).toBe('cancelled');
    expect((await retrieve(status.id)).body.query_status).toMatchObject({
      complete: true,
      error_message: 'The query was cancelled.',
    });
    await source.close();
  });

  it('reports a slow query of a project, without its text', async () => {
    const { pool, projectId: team_id } = harness;
    const lines: unknown[] = [];
    const counted: number[] = [];
    const logger = {
      ...createLogger('test', harness.control.settings),
      warn: (fields: unknown, message: string) => lines.push([fields, message]),
    };
    const slots = createQuerySlots(backgroundLimits(harness.control.settings));
    const slow = { thresholdMs: 0, count: (team: number) => counted.push(team) };
    const execution = { execution_id: 'one', team_id, key_id: null, signal: new AbortController().signal };
    await createRunningQueries({ pool, slots, logger: logger as never, slow }).run(
      execution,
      ({ progress }) => {
        progress({ rows_read: 5 });
        return Promise.resolve();
      },
    );
    expect(counted).toEqual([team_id]);
    expect(lines).toEqual([
      [{ project: team_id, query_id: 'one', seconds: expect.any(Number), rows_read: 5 }, 'A query was slow.'],
    ]);
    const quick = { ...slow, thresholdMs: 600_000 };
    await createRunningQueries({ pool, slots, logger: logger as never, slow: quick }).run(execution, () =>
      Promise.resolve(),
    );
    expect(counted).toEqual([team_id]);
  });

  it('cancels the next attempt too after one was considered lost', async () => {
    const { pool } = harness;
    const running = createRunningQueries({
      pool,
      slots: createQuerySlots(backgroundLimits(harness.control.settings)),

      logger: createLogger('test', harness.control.settings),
    });
    const id = randomUUID();
    const execution = {
      execution_id: id,
      team_id: harness.projectId,
      key_id: null,
      signal: new AbortController().signal,
    };
    const lost = running.run(execution, () => Promise.resolve());
    const next = running.run(
      execution,
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            reject(signal.reason as Error);
          });
        }),
    );
    // The id is unknown, so the first poll reports it as cancelled.
    await lost;
    await expect(next).rejects.toThrow(QueryCancelled);
  });

  it('is not started twice under one id, which is free once the query has ended', async () => {
    const id = randomUUID();
    const query = endless();
    const first = await harness.server.post(query, { refresh: 'async', client_query_id: id });
    await harness.running();
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
    expect(await harness.statements()).toBe(1);
    await cancel(id);
    const next = await harness.server.post(statement('select 1'), { refresh: 'async', client_query_id: id });
    expect(next.body.query_status).toMatchObject({ id, complete: false });
    await waitFor(async () => (await retrieve(id)).body.query_status?.complete === true, 'the next query');
    expect((await retrieve(id)).body.query_status).toMatchObject({
      error: false,
      results: { results: [[1]] },
    });
  });
});

describe('a blocking query', () => {
  it('can be read and cancelled through another server process; its POST returns 400', async () => {
    const id = `dash board/${randomUUID()} ü`;
    const posted = harness.server.post(endless(), { client_query_id: id });
    await harness.running();
    expect((await retrieve(id, otherServer)).body.query_status).toMatchObject({
      id,
      complete: false,
      query_async: false,
      task_id: null,
    });
    expect((await cancel(id, otherServer)).status).toBe(204);
    expect(await harness.statements()).toBe(0);
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

  it('is awaited by a second request with the same id, and both get its result', async () => {
    const id = randomUUID();
    const query = statement(`select gen_random_uuid()::text, '${id}', count(*) from public.persons`);
    const release = await harness.lockPersons();
    const first = harness.server.post(query, { client_query_id: id });
    await harness.running();
    const rejected = await otherServer.post(statement('select 2'), { client_query_id: id });
    expect(rejected.status).toBe(409);
    const { rows } = await harness.pool.query<{ now: string }>('select clock_timestamp()::text as now');
    const secondRequest = otherServer.post(query, { client_query_id: id });
    await waitFor(async () => {
      const { rowCount } = await harness.pool.query(
        `select from pg_stat_activity where datname = current_database() and query_start > $1
           and query like 'select team_id, id, execution_id, cache_key%'`,
        [rows[0]?.now],
      );
      return (rowCount ?? 0) > 0;
    }, 'the second request reads the status of the first');
    await release();
    const second = await secondRequest;
    expect(second.body).toEqual((await first).body);
    expect((await retrieve(id)).body.query_status).toMatchObject({
      complete: true,
      results: { results: second.body.results },
    });
  });

  it('can be read by id after a cache hit', async () => {
    const query = statement(`select '${randomUUID()}'`);
    const { body } = await harness.server.post(query);
    const id = randomUUID();
    await harness.server.post(query, { client_query_id: id });
    expect((await retrieve(id)).body.query_status).toMatchObject({
      complete: true,
      results: { results: body.results, cache_key: body.cache_key },
    });
  });

  it('has failed when its process is gone, and its id is free', async () => {
    const id = randomUUID();
    const query = statement(`select '${id}'`);
    await harness.server.post(query, { client_query_id: id });
    await harness.pool.query(
      `update exportd.queries set status = 'running', end_time = null, expiration_time = null, result_id = null,
         lease_expires_at = clock_timestamp() - interval '1 second' where id = $1`,
      [id],
    );
    expect((await retrieve(id)).body.query_status).toMatchObject({
      complete: true,
      error: true,
      error_message: expect.stringContaining('process that ran the query has ended'),
    });
    const again = await harness.server.post(query, { client_query_id: id, refresh: 'force_blocking' });
    expect(again.body.results).toEqual([[id]]);
  });

  it('ends with the shutdown of its server', async () => {
    const leaving = await harness.addServer();
    const posted = leaving.post(endless(), { client_query_id: 'left' });
    await harness.running();
    await leaving.app.close();
    expect((await posted).status).toBe(503);
    expect((await retrieve('left')).body.query_status).toMatchObject({ complete: true, error: true });
  });
});

describe('an unknown id', () => {
  it('is 404, as is the id of another project and an expired one', async () => {
    const id = randomUUID();
    await harness.server.post(statement('select 1'), { client_query_id: id });
    const statuses = async (of: string, key = harness.key, project = harness.projectId) => {
      const path = `/api/environments/${project}/query/${of}/`;
      const retrieved = await harness.server.call('GET', path, undefined, key);
      const deleted = await harness.server.call('DELETE', path, undefined, key);
      return [retrieved.status, deleted.status];
    };
    expect(await statuses(randomUUID())).toEqual([404, 404]);
    expect(await statuses(id, harness.otherKey, harness.otherProjectId)).toEqual([404, 404]);
    expect(await statuses(id)).toEqual([200, 204]);
    await harness.pool.query('update exportd.queries set expiration_time = clock_timestamp() where id = $1', [
      id,
    ]);
    expect(await statuses(id)).toEqual([404, 404]);
  });
});
