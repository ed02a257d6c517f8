import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { waitFor } from '../setup/wait_for.ts';
import { openQueryHarness, type QueryResponse, type QueryHarness } from './query_harness.ts';
import { statement } from './fake_kind.ts';

let harness: QueryHarness;
beforeAll(async () => {
  harness = await openQueryHarness();
  await harness.control.startWorker();
});
afterAll(() => harness.close());

/** A query that is not cached yet and whose result differs each time it runs. */
let query: ReturnType<typeof statement>;
beforeEach(() => {
  query = statement(`select '${randomUUID()}' as mark, gen_random_uuid()::text as made`);
});

const post = (refresh: string | undefined, more: object = {}) =>
  harness.server.post(query, { ...(refresh === undefined ? {} : { refresh }), ...more });
const nonceOf = ({ body }: QueryResponse) => (body.results as string[][])[0]?.[1];
const retrieve = async (id: unknown) =>
  (await harness.server.call('GET', `query/${String(id)}/`)).body.query_status;
const completed = (id: unknown) =>
  waitFor(async () => {
    const status = await retrieve(id);
    return status?.complete === true ? status : undefined;
  }, 'the query to complete');

/** Makes all cached results this much older. */
const age = (milliseconds: number) =>
  harness.pool.query(
    `update exportd.query_results set computed_at = computed_at - $1 * interval '1 millisecond'`,
    [milliseconds],
  );
const hour = 3_600_000;

describe('a result', () => {
  it('has every field, calculated and cached alike', async () => {
    const calculated = await post(undefined);
    expect(calculated).toMatchObject({
      status: 200,
      body: {
        results: [[expect.any(String), expect.any(String)]],
        columns: ['mark', 'made'],
        types: [
          ['mark', 25],
          ['made', 25],
        ],
        hasMore: false,
        limit: 10_000,
        offset: 0,
        dialect_query: query.statement,
        notice: null,
        is_cached: false,
        cache_key: expect.stringMatching(/^cache_[0-9a-f]{32}$/),
        timezone: 'Europe/Berlin',
        query_status: null,
      },
    });
    const { last_refresh, next_allowed_client_refresh } = calculated.body as Record<string, string>;
    expect(Date.parse(next_allowed_client_refresh ?? '') - Date.parse(last_refresh ?? '')).toBe(180_000);
    const cached = await post('blocking');
    expect(cached.body).toEqual({ ...calculated.body, is_cached: true });
  });

  it('is shared by equivalent queries of a project, on both API roots', async () => {
    const first = await post('blocking');
    const same = { interval: null, color: 'red', ...query, kind: 'Statement' };
    const again = await harness.server.call('POST', `/api/environments/${harness.projectId}/query`, {
      query: { kind: 'DataTableNode', source: same, columns: ['x'] },
    });
    expect(again.body).toMatchObject({ is_cached: true, cache_key: first.body.cache_key });
    const foreign = await harness.server.call(
      'POST',
      `/api/projects/${harness.otherProjectId}/query/`,
      { query },
      harness.otherKey,
    );
    expect(foreign.body).toMatchObject({ is_cached: false, timezone: 'UTC' });
    expect(foreign.body.cache_key).not.toBe(first.body.cache_key);
  });
});

describe('the refresh modes', () => {
  it('blocking returns a very fresh result and runs the query otherwise', async () => {
    const first = await post('blocking');
    await age(5 * hour);
    expect(nonceOf(await post('blocking'))).toBe(nonceOf(first));
    await age(1.1 * hour);
    const later = await post('blocking');
    expect(later.body.is_cached).toBe(false);
    expect(nonceOf(later)).not.toBe(nonceOf(first));
  });

  it('lazy_async returns a somewhat fresh result, async also refreshes a stale one', async () => {
    const first = await post('blocking');
    await age(7 * hour);
    const lazy = await post('lazy_async');
    expect([nonceOf(lazy), lazy.body.is_cached, lazy.body.query_status]).toEqual([
      nonceOf(first),
      true,
      null,
    ]);
    const stale = await post('async');
    expect([stale.status, nonceOf(stale), stale.body.is_cached]).toEqual([200, nonceOf(first), true]);
    expect(stale.body.query_status).toMatchObject({ complete: false, query_async: true, results: null });
    const status = await completed(stale.body.query_status?.id);
    const refreshed = await post('async');
    expect(refreshed.body).toMatchObject({ is_cached: true, query_status: null });
    expect(refreshed.body.results).toEqual((status.results as Record<string, unknown>).results);
    expect(nonceOf(refreshed)).not.toBe(nonceOf(first));
    await age(13 * hour);
    expect((await post('lazy_async')).body.query_status).toMatchObject({ complete: false });
  });

  it('the result of a closed range is never stale', async () => {
    const closed = { ...query, date_to: '2026-01-01T00:00:00Z' };
    const first = await harness.server.post(closed);
    await age(100 * hour);
    expect(nonceOf(await harness.server.post(closed))).toBe(nonceOf(first));
    const open = { ...query, date_to: new Date(Date.now() + 200 * hour).toISOString() };
    const second = await harness.server.post(open);
    await age(7 * hour);
    expect(nonceOf(await harness.server.post(open))).not.toBe(nonceOf(second));
  });

  it('force_blocking always runs the query, force_cache never', async () => {
    const miss = await post('force_cache');
    expect([miss.status, miss.body]).toEqual([
      200,
      { cache_key: expect.stringContaining('cache_'), query_status: null },
    ]);
    const first = await post('force_blocking');
    const second = await post('force_blocking');
    expect([first.body.is_cached, second.body.is_cached]).toEqual([false, false]);
    expect(nonceOf(second)).not.toBe(nonceOf(first));
    await age(6 * 24 * hour);
    expect(nonceOf(await post('force_cache'))).toBe(nonceOf(second));
    await age(24 * hour);
    expect((await post('force_cache')).body).toEqual(miss.body);
  });

  it('force_async returns only the status, with all of its fields', async () => {
    await post('blocking');
    const { status, body } = await post('force_async');
    expect([status, Object.keys(body)]).toEqual([200, ['query_status']]);
    const expectedStatus = {
      id: expect.any(String),
      query_async: true,
      team_id: harness.projectId,
      insight_id: null,
      dashboard_id: null,
      labels: null,
      complete: false,
      error: false,
      error_message: null,
      results: null,
      start_time: expect.any(String),
      pickup_time: null,
      end_time: null,
      expiration_time: null,
      task_id: workflowIds(harness.control.settings).query({
        team_id: harness.projectId,
        id: String(body.query_status?.id),
      }),
      query_progress: null,
    };
    expect(body.query_status).toEqual(expectedStatus);
    const done = await completed(body.query_status?.id);
    expect(done).toEqual({
      ...expectedStatus,
      complete: true,
      pickup_time: expect.any(String),
      end_time: expect.any(String),
      expiration_time: expect.any(String),
      results: expect.objectContaining({ is_cached: false, columns: ['mark', 'made'], query_status: null }),
    });
    const ttlMs = Date.parse(String(done.expiration_time)) - Date.parse(String(done.end_time));
    // The two times are taken one after the other, maybe on a busy machine.
    expect(Math.round(ttlMs / 600_000)).toBe(2);
  });

  it('async starts one query for all requests; async: true means the same', async () => {
    query = statement(`select count(*), '${randomUUID()}' as mark from public.persons`);
    const release = await harness.lockPersons();
    const first = await post('async');
    expect(first.body).toEqual({
      cache_key: expect.any(String),
      query_status: expect.objectContaining({ complete: false }),
    });
    const [second, cacheOnly] = [await post(undefined, { async: true }), await post('force_cache')];
    for (const same of [second, cacheOnly])
      expect(same.body.query_status).toMatchObject({ id: first.body.query_status?.id, complete: false });
    const running = await waitFor(async () => {
      const status = await retrieve(first.body.query_status?.id);
      return status?.query_progress === null ? undefined : status;
    }, 'progress');
    expect(running.query_progress).toEqual({
      bytes_read: expect.any(Number),
      rows_read: expect.any(Number),
      estimated_rows_total: null,
      time_elapsed: expect.any(Number),
      active_cpu_time: null,
    });
    await release();
    await completed(first.body.query_status?.id);
  });
});

describe('a background query that fails', () => {
  it('is complete with an error that quotes no values of rows', async () => {
    const failing = statement(`select ('x' || 'secret-value')::integer`);
    const { status, body } = await harness.server.post(failing, {
      refresh: 'async',
      client_query_id: 'failing',
    });
    expect([status, body.query_status?.complete]).toEqual([200, false]);
    const done = await completed('failing');
    expect(done).toMatchObject({
      complete: true,
      error: true,
      error_message: 'A string could not be converted to the required type. (SQLSTATE 22P02)',
      results: null,
    });
    const blocking = await harness.server.post(failing);
    expect([blocking.status, blocking.body]).toEqual([
      400,
      {
        type: 'validation_error',
        code: 'query_failed',
        detail: done.error_message,
        attr: null,
      },
    ]);
  });

  it('does not disclose internal errors', async () => {
    const broken = statement('select no_such_column');
    await harness.server.post(broken, { refresh: 'async', client_query_id: 'broken' });
    expect(await completed('broken')).toMatchObject({
      error: true,
      error_message: 'A server error occurred.',
    });
    expect((await harness.server.post(broken)).status).toBe(500);
  });
});
