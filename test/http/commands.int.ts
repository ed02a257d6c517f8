import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { minutesAgo } from '../decisions/commander.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { waitFor } from '../setup/wait_for.ts';
import { exportBody, openApiHarness, type ApiHarness } from './api_harness.ts';
import { commandsInWords } from '../journal/read_commands.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_MAX_BACKFILLS_PER_PROJECT: '6' });
});
afterAll(() => api.close());
afterEach(() => {
  api.mode = 'decide';
  api.executionsClose = true;
});

const range = () => ({ start_at: minutesAgo(2), end_at: minutesAgo(1) });

const commandsOf = (id: string) => commandsInWords(api.database.pool, id);

describe('a command', () => {
  it('responds as documented, and the next GET has its effect', async () => {
    const id = await api.createExport();
    const backfill = await api.call('POST', `batch_exports/${id}/backfill/`, range());
    expect([backfill.status, backfill.text]).toEqual([200, '']);
    const made = await api.call('GET', String(backfill.headers.location).replace('http://localhost', ''));
    expect(made.body).toMatchObject({ batch_export: id, status: 'Running', progress: { finished_runs: 0 } });

    const { body } = await api.call('GET', `batch_exports/${id}/runs/?limit=1`);
    const [run] = body.results as { id: string; status: string; backfill_id: string; temporal_ui: string }[];
    expect(run).toMatchObject({
      status: 'Starting',
      batch_export: id,
      backfill_id: made.body.id,
      generation: null,
    });
    expect(run?.temporal_ui).toMatch(
      /^http:\/\/temporal\.test:8233\/namespaces\/default\/workflows\/batch-export-run-[^/]+$/,
    );

    const path = `batch_exports/${id}/runs/${run?.id ?? ''}`;
    const busy = await api.call('POST', `${path}/retry`, { status: 'Completed' });
    expect([busy.status, busy.body.type]).toEqual([409, 'conflict']);
    expect(busy.body.detail).toContain(run?.id);
    const cancelled = await api.call('POST', `${path}/cancel/`);
    expect([cancelled.status, cancelled.body.status]).toEqual([200, 'Cancelled']);
    expect((await api.call('POST', `${path}/cancel/`)).status).toBe(409);
    const retried = await api.call('POST', `${path}/retry`, {
      status: 'Completed',
      data_interval_end: null,
    });
    expect([retried.status, retried.text]).toEqual([200, '']);
    const next = await api.call('GET', String(retried.headers.location).replace('http://localhost', ''));
    expect(next.body).toMatchObject({ status: 'Starting', batch_export: id });
    expect(next.body.id).not.toBe(run?.id);
  });

  it('pauses, unpauses and cancels a backfill with its runs', async () => {
    const id = await api.createExport();
    const created = await api.call('POST', `batch_exports/${id}/backfills/`, range());
    const path = `batch_exports/${id}/backfills/${String(created.body.id)}`;
    const requestAction = async (action: string) => {
      const { status, body } = await api.call('POST', `${path}/${action}/`);
      return [status, body.status];
    };
    expect(await requestAction('pause')).toEqual([200, 'Paused']);
    expect(await requestAction('pause')).toEqual([200, 'Paused']);
    expect(await requestAction('unpause')).toEqual([200, 'Running']);
    expect(await requestAction('cancel')).toEqual([200, 'Cancelled']);
    expect((await requestAction('pause'))[0]).toBe(409);
    const { body } = await api.call('GET', `batch_exports/${id}/runs/?status=Starting,Running`);
    expect(body).toMatchObject({ count: 0, results: [] });
  });

  it('that cancels runs is 202 while their executions may be open, and describes what was done', async () => {
    const id = await api.createExport();
    const backfill = async () => {
      const { body } = await api.call('POST', `batch_exports/${id}/backfills/`, range());
      return `batch_exports/${id}/backfills/${String(body.id)}`;
    };
    const accepted = async (method: 'POST' | 'DELETE', path: string) => {
      const { status, body } = await api.call(method, path);
      return [status, String(body.detail).split(';')[0]];
    };
    await backfill();
    const { body } = await api.call('GET', `batch_exports/${id}/runs/`);
    const [run] = body.results as { id: string }[];
    const path = `batch_exports/${id}/runs/${run?.id ?? ''}`;
    api.executionsClose = false;
    expect(await accepted('POST', `${path}/cancel/`)).toEqual([202, 'The run is Cancelled']);
    expect((await api.call('GET', path)).body.status).toBe('Cancelled');
    expect(await accepted('POST', `${await backfill()}/cancel/`)).toEqual([202, 'The backfill is Cancelled']);
    await backfill();
    expect(await accepted('DELETE', `batch_exports/${id}`)).toEqual([202, 'The batch export is deleted']);
    expect((await api.call('GET', `batch_exports/${id}`)).status).toBe(404);
  });

  it('that deletes an export removes its secrets, or says until when its clean-up needs them', async () => {
    const deleteWith = async (objects: number) => {
      const { pool } = api.database;
      const id = await api.createExport();
      await pool.query(
        `insert into exportd.destination_objects (position, batch_export_id, run_id, config_version,
           data_interval_start, data_interval_end, generation, object_type, key)
         select -floor(random() * 1000000000), $1, gen_random_uuid(), 1, $2, $3, 1, 'file', 'unpublished'
         from generate_series(1, $4)`,
        [id, minuteAgo(2), minuteAgo(1), objects],
      );
      const { status, headers } = await api.call('DELETE', `batch_exports/${id}`);
      const { rows } = await pool.query<{ versions: number }>(
        `select count(*)::integer as versions from exportd.destination_configs where batch_export_id = $1 and secrets <> '{}'`,
        [id],
      );
      return [status, rows[0]?.versions, headers['x-exportd-secrets-until']];
    };
    expect(await deleteWith(0)).toEqual([204, 0, undefined]);
    const [status, versions, until] = await deleteWith(1);
    expect([status, versions]).toEqual([204, 1]);
    const hours = (Date.parse(String(until)) - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(1.9);
    expect(hours).toBeLessThan(2);
  });

  it('beyond the limit of backfills is 429 with Retry-After', async () => {
    const id = await api.createExport();
    const responses = [];
    for (let index = 0; index < 7; index += 1)
      responses.push(await api.call('POST', `batch_exports/${id}/backfill`, range()));
    const rejected = responses.find(({ status }) => status !== 200);
    expect([rejected?.status, rejected?.body.type, rejected?.body.code]).toEqual([
      429,
      'throttled',
      'too_many_concurrent_backfills',
    ]);
    expect(Number(rejected?.headers['retry-after'])).toBeGreaterThan(0);
  });

  it('that is not decided in time is 202 and applied later', async () => {
    const id = await api.createExport();
    api.mode = 'silent';
    const accepted = await api.call('POST', `batch_exports/${id}/pause`);
    expect([accepted.status, accepted.body]).toEqual([202, { detail: expect.any(String) }]);
    expect((await api.call('GET', `batch_exports/${id}`)).body.paused).toBe(false);
    await api.advanceSchedule(id);
    expect((await api.call('GET', `batch_exports/${id}`)).body.paused).toBe(true);
  });

  it('gets its response as soon as another process decides it', async () => {
    const id = await api.createExport();
    api.mode = 'deferred';
    const response = api.call('POST', `batch_exports/${id}/pause`);
    await waitFor(async () => (await commandsOf(id)).includes('pause pending'), 'the command is stored');
    await api.advanceSchedule(id);
    expect((await response).status).toBe(200);
  });

  it('is withdrawn with 503 when Temporal cannot be reached, and never applied', async () => {
    const id = await api.createExport();
    api.mode = 'unreachable';
    const rejected = await api.call('POST', `batch_exports/${id}/pause`);
    expect([rejected.status, rejected.body.type]).toEqual([503, 'unavailable']);
    expect(rejected.headers['retry-after']).toBeDefined();
    await api.advanceSchedule(id);
    expect((await api.call('GET', `batch_exports/${id}`)).body.paused).toBe(false);
    expect(await commandsOf(id)).toEqual(['create applied', 'pause withdrawn']);
  });
});

describe('an Idempotency-Key', () => {
  it('repeats the response of a repeated request without applying it again', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    // An interval that ends between the responses would add to its lag.
    const body = exportBody({ end_at: minuteAgo(0).toISOString() });
    const first = await api.call('POST', 'batch_exports/', body, headers);
    const again = await api.call('POST', 'batch_exports/', body, headers);
    expect([again.status, again.text]).toEqual([201, first.text]);
    const id = String(first.body.id);
    expect(await commandsOf(id)).toEqual(['create applied']);

    const deleting = { 'idempotency-key': randomUUID() };
    const deletions = [
      await api.call('DELETE', `batch_exports/${id}`, undefined, deleting),
      await api.call('DELETE', `batch_exports/${id}`, undefined, deleting),
    ];
    expect(deletions.map(({ status }) => status)).toEqual([204, 204]);
  });

  it('is rejected for another body or path, and when it is too long', async () => {
    const id = await api.createExport();
    const once = { 'idempotency-key': `once ${randomUUID()}` };
    expect((await api.call('POST', `batch_exports/${id}/pause`, {}, once)).status).toBe(200);
    const others = [
      await api.call('POST', `batch_exports/${id}/pause`, { name: 'x' }, once),
      await api.call('POST', `batch_exports/${id}/unpause`, {}, once),
      await api.call('POST', `batch_exports/${await api.createExport()}/pause`, {}, once),
    ];
    expect(others.map(({ status, body }) => [status, body.code])).toEqual(
      others.map(() => [409, 'idempotency_key_reused']),
    );
    const long = await api.call(
      'POST',
      `batch_exports/${id}/pause`,
      {},
      { 'idempotency-key': 'x'.repeat(256) },
    );
    expect(long.status).toBe(400);
  });

  it('allows a withdrawn request to be repeated', async () => {
    const id = await api.createExport();
    const headers = { 'idempotency-key': randomUUID() };
    api.mode = 'unreachable';
    expect((await api.call('POST', `batch_exports/${id}/pause`, {}, headers)).status).toBe(503);
    api.mode = 'decide';
    expect((await api.call('POST', `batch_exports/${id}/pause`, {}, headers)).status).toBe(200);
    expect(await commandsOf(id)).toEqual(['create applied', 'pause applied']);
  });

  it('applies one of several concurrent requests', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const body = exportBody();
    const responses = await Promise.all(
      Array.from({ length: 5 }, () => api.call('POST', 'batch_exports/', body, headers)),
    );
    expect(new Set(responses.map(({ status, body: { id } }) => `${status} ${String(id)}`)).size).toBe(1);
  });
});
