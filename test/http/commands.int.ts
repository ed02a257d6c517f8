import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { minutesAgo } from '../decisions/commander.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { until } from '../setup/until.ts';
import { exportBody, openFacade, type Facade } from './facade.ts';

let facade: Facade;
beforeAll(async () => {
  facade = await openFacade({ EXPORTD_COMMAND_TIMEOUT_MS: '300', EXPORTD_MAX_BACKFILLS_PER_PROJECT: '6' });
});
afterAll(() => facade.close());
afterEach(() => {
  facade.mode = 'decide';
  facade.runsLetGo = true;
});

const range = () => ({ start_at: minutesAgo(2), end_at: minutesAgo(1) });

async function commandsOf(id: string): Promise<string[]> {
  const { rows } = await facade.database.pool.query<{ command: string }>(
    `select name || ' ' || status as command from exportd.commands where batch_export_id = $1 order by position`,
    [id],
  );
  return rows.map(({ command }) => command);
}

describe('a command', () => {
  it('answers as documented, and the next GET shows what it did', async () => {
    const id = await facade.createExport();
    const backfill = await facade.call('POST', `batch_exports/${id}/backfill/`, range());
    expect([backfill.status, backfill.text]).toEqual([200, '']);
    const made = await facade.call('GET', String(backfill.headers.location).replace('http://localhost', ''));
    expect(made.body).toMatchObject({ batch_export: id, status: 'Running', progress: { finished_runs: 0 } });

    const { body } = await facade.call('GET', `batch_exports/${id}/runs/?limit=1`);
    const [run] = body.results as { id: string; status: string; backfill_id: string; temporal_ui: string }[];
    expect(run).toMatchObject({
      status: 'Starting',
      batch_export: id,
      backfill_id: made.body.id,
      generation: null,
    });
    expect(run?.temporal_ui).toMatch(
      /^http:\/\/temporal\.test:8233\/namespaces\/default\/workflows\/batch-export-[^/]+$/,
    );

    const path = `batch_exports/${id}/runs/${run?.id ?? ''}`;
    const busy = await facade.call('POST', `${path}/retry`, { status: 'Completed' });
    expect([busy.status, busy.body.type]).toEqual([409, 'conflict']);
    expect(busy.body.detail).toContain(run?.id);
    const cancelled = await facade.call('POST', `${path}/cancel/`);
    expect([cancelled.status, cancelled.body.status]).toEqual([200, 'Cancelled']);
    expect((await facade.call('POST', `${path}/cancel/`)).status).toBe(409);
    const retried = await facade.call('POST', `${path}/retry`, {
      status: 'Completed',
      data_interval_end: null,
    });
    expect([retried.status, retried.text]).toEqual([200, '']);
    const next = await facade.call('GET', String(retried.headers.location).replace('http://localhost', ''));
    expect(next.body).toMatchObject({ status: 'Starting', batch_export: id });
    expect(next.body.id).not.toBe(run?.id);
  });

  it('of a backfill pauses, goes on, and ends with its runs', async () => {
    const id = await facade.createExport();
    const created = await facade.call('POST', `batch_exports/${id}/backfills/`, range());
    const path = `batch_exports/${id}/backfills/${String(created.body.id)}`;
    const steer = async (action: string) => {
      const { status, body } = await facade.call('POST', `${path}/${action}/`);
      return [status, body.status];
    };
    expect(await steer('pause')).toEqual([200, 'Paused']);
    expect(await steer('pause')).toEqual([200, 'Paused']);
    expect(await steer('unpause')).toEqual([200, 'Running']);
    expect(await steer('cancel')).toEqual([200, 'Cancelled']);
    expect((await steer('pause'))[0]).toBe(409);
    const { body } = await facade.call('GET', `batch_exports/${id}/runs/?status=Starting,Running`);
    expect(body).toMatchObject({ count: 0, results: [] });
  });

  it('that ends runs is 202 while one of them may still be at work, and says what has been done', async () => {
    const id = await facade.createExport();
    const backfill = async () => {
      const { body } = await facade.call('POST', `batch_exports/${id}/backfills/`, range());
      return `batch_exports/${id}/backfills/${String(body.id)}`;
    };
    const accepted = async (method: 'POST' | 'DELETE', path: string) => {
      const { status, body } = await facade.call(method, path);
      return [status, String(body.detail).split(';')[0]];
    };
    await backfill();
    const { body } = await facade.call('GET', `batch_exports/${id}/runs/`);
    const [run] = body.results as { id: string }[];
    const path = `batch_exports/${id}/runs/${run?.id ?? ''}`;
    facade.runsLetGo = false;
    expect(await accepted('POST', `${path}/cancel/`)).toEqual([202, 'The run is Cancelled']);
    expect((await facade.call('GET', path)).body.status).toBe('Cancelled');
    expect(await accepted('POST', `${await backfill()}/cancel/`)).toEqual([202, 'The backfill is Cancelled']);
    await backfill();
    expect(await accepted('DELETE', `batch_exports/${id}`)).toEqual([202, 'The batch export is deleted']);
    expect((await facade.call('GET', `batch_exports/${id}`)).status).toBe(404);
  });

  it('beyond the limit of backfills is 429 and says when to come back', async () => {
    const id = await facade.createExport();
    const answers = [];
    for (let index = 0; index < 7; index += 1)
      answers.push(await facade.call('POST', `batch_exports/${id}/backfill`, range()));
    const refused = answers.find(({ status }) => status !== 200);
    expect([refused?.status, refused?.body.type, refused?.body.code]).toEqual([
      429,
      'throttled',
      'too_many_concurrent_backfills',
    ]);
    expect(Number(refused?.headers['retry-after'])).toBeGreaterThan(0);
  });

  it('that nobody decides in time is 202, and carried out later', async () => {
    const id = await facade.createExport();
    facade.mode = 'silent';
    const accepted = await facade.call('POST', `batch_exports/${id}/pause`);
    expect([accepted.status, accepted.body]).toEqual([202, { detail: expect.any(String) }]);
    expect((await facade.call('GET', `batch_exports/${id}`)).body.paused).toBe(false);
    await facade.step(id);
    expect((await facade.call('GET', `batch_exports/${id}`)).body.paused).toBe(true);
  });

  it('is answered as soon as another process decides it', async () => {
    const id = await facade.createExport();
    facade.mode = 'elsewhere';
    const answer = facade.call('POST', `batch_exports/${id}/pause`);
    await until(async () => (await commandsOf(id)).includes('pause pending'), 'the command is stored');
    await facade.step(id);
    expect((await answer).status).toBe(200);
  });

  it('is taken back with 503 when Temporal cannot be reached, and is never carried out', async () => {
    const id = await facade.createExport();
    facade.mode = 'unreachable';
    const refused = await facade.call('POST', `batch_exports/${id}/pause`);
    expect([refused.status, refused.body.type]).toEqual([503, 'unavailable']);
    expect(refused.headers['retry-after']).toBeDefined();
    await facade.step(id);
    expect((await facade.call('GET', `batch_exports/${id}`)).body.paused).toBe(false);
    expect(await commandsOf(id)).toEqual(['create applied', 'pause withdrawn']);
  });
});

describe('an Idempotency-Key', () => {
  it('makes a repeated request answer again without doing anything again', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    // Or an interval that ends between the answers adds to its lag.
    const body = exportBody({ end_at: minuteAgo(0).toISOString() });
    const first = await facade.call('POST', 'batch_exports/', body, headers);
    const again = await facade.call('POST', 'batch_exports/', body, headers);
    expect([again.status, again.text]).toEqual([201, first.text]);
    const id = String(first.body.id);
    expect(await commandsOf(id)).toEqual(['create applied']);

    const deleting = { 'idempotency-key': randomUUID() };
    const deletions = [
      await facade.call('DELETE', `batch_exports/${id}`, undefined, deleting),
      await facade.call('DELETE', `batch_exports/${id}`, undefined, deleting),
    ];
    expect(deletions.map(({ status }) => status)).toEqual([204, 204]);
  });

  it('is refused for another body, another path, and when it is too long', async () => {
    const id = await facade.createExport();
    const once = { 'idempotency-key': `once ${randomUUID()}` };
    expect((await facade.call('POST', `batch_exports/${id}/pause`, {}, once)).status).toBe(200);
    const others = [
      await facade.call('POST', `batch_exports/${id}/pause`, { name: 'x' }, once),
      await facade.call('POST', `batch_exports/${id}/unpause`, {}, once),
      await facade.call('POST', `batch_exports/${await facade.createExport()}/pause`, {}, once),
    ];
    expect(others.map(({ status, body }) => [status, body.code])).toEqual(
      others.map(() => [409, 'idempotency_key_reused']),
    );
    const long = await facade.call(
      'POST',
      `batch_exports/${id}/pause`,
      {},
      { 'idempotency-key': 'x'.repeat(256) },
    );
    expect(long.status).toBe(400);
  });

  it('lets a request that was taken back be made again', async () => {
    const id = await facade.createExport();
    const headers = { 'idempotency-key': randomUUID() };
    facade.mode = 'unreachable';
    expect((await facade.call('POST', `batch_exports/${id}/pause`, {}, headers)).status).toBe(503);
    facade.mode = 'decide';
    expect((await facade.call('POST', `batch_exports/${id}/pause`, {}, headers)).status).toBe(200);
    expect(await commandsOf(id)).toEqual(['create applied', 'pause applied']);
  });

  it('of two requests at once lets one through', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const body = exportBody();
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => facade.call('POST', 'batch_exports/', body, headers)),
    );
    expect(new Set(answers.map(({ status, body: { id } }) => `${status} ${String(id)}`)).size).toBe(1);
  });
});
