import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { minutesAgo, quickPolicies } from '../decisions/commander.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_MAX_BACKFILLS_PER_PROJECT: '2' });
});
afterAll(() => api.close());
afterEach(() => {
  api.mode = 'decide';
});

/** Creates an export whose only run Failed. */
async function createFailedExport(): Promise<string> {
  const id = await api.createExport();
  const range = { start_at: minutesAgo(2), end_at: minutesAgo(1) };
  const { body } = await api.call('POST', `batch_exports/${id}/backfills/`, range);
  const policies = quickPolicies();
  for (const { id: run } of await runsOf(id))
    await endRun(api.journal, policies, run, { status: 'Failed', latest_error: 'AccessDenied: a test' });
  await api.call('POST', `batch_exports/${id}/backfills/${String(body.id)}/cancel/`);
  return id;
}

const runsOf = async (id: string) =>
  (await api.call('GET', `batch_exports/${id}/runs/`)).body.results as readonly {
    readonly id: string;
    readonly status: string;
    readonly finished_at: string | null;
    readonly backfill_id: string;
  }[];
const statusesOf = async (id: string) => (await runsOf(id)).map(({ status }) => status);
const retryFailed = (body: object = {}, headers: Record<string, string> = {}) =>
  api.call('POST', 'batch_exports/retry_failed/', body, headers);

describe('POST …/batch_exports/retry_failed/', () => {
  it('retries the failed runs of all exports of the project, of a paused one too', async () => {
    const ids = [await createFailedExport(), await createFailedExport(), await createFailedExport()];
    const healthy = await api.createExport();
    await api.call('POST', `batch_exports/${ids[1] ?? ''}/pause/`);
    const counts = await Promise.all(ids.map(async (id) => (await runsOf(id)).length));
    const { status, body } = await retryFailed();
    const results = body.results as readonly { batch_export: string; backfill_id: string; runs: number }[];
    expect([status, body.runs]).toEqual([200, counts.reduce((sum, count) => sum + count, 0)]);
    expect(results).toEqual(
      ids.map((batch_export, index) => ({
        batch_export,
        backfill_id: expect.any(String),
        runs: counts[index],
        detail: null,
      })),
    );
    for (const { batch_export, backfill_id } of results) {
      const backfill = await api.call('GET', `batch_exports/${batch_export}/backfills/${backfill_id}/`);
      expect(backfill.body).toMatchObject({ status: 'Running', retries_failed: true });
      expect((await statusesOf(batch_export))[0]).toBe('Starting');
    }
    expect(await runsOf(healthy)).toEqual([]);
    expect((await retryFailed()).body).toEqual({ runs: 0, results: [] });
  });

  it('leaves out runs that failed before a time, and rejects what is no time', async () => {
    const id = await createFailedExport();
    const future = new Date(Date.now() + 3_600_000).toISOString();
    expect((await retryFailed({ since: future })).body).toEqual({ runs: 0, results: [] });
    for (const since of ['yesterday', '2026-11-01T10:00:00', 5])
      expect((await retryFailed({ since })).body).toMatchObject({ type: 'validation_error', attr: 'since' });
    expect((await retryFailed({ until: future })).body).toMatchObject({ attr: 'until' });
    const { body } = await retryFailed({ since: '-1h' });
    expect(body.results).toMatchObject([{ batch_export: id }]);
  });

  it('starts nothing more when a request is repeated with its Idempotency-Key', async () => {
    const id = await createFailedExport();
    const headers = { 'idempotency-key': randomUUID() };
    const first = await retryFailed({}, headers);
    expect(first.body.results).toMatchObject([{ batch_export: id }]);
    expect((await retryFailed({}, headers)).body).toEqual(first.body);
    expect((await retryFailed({ since: '-1h' }, headers)).status).toBe(409);
  });

  it('answers 503 and starts nothing when Temporal cannot be reached', async () => {
    const id = await createFailedExport();
    const before = await statusesOf(id);
    api.mode = 'unreachable';
    expect(await retryFailed()).toMatchObject({ status: 503, body: { code: 'temporal_unreachable' } });
    api.mode = 'decide';
    expect(await statusesOf(id)).toEqual(before);
  });

  it('answers 202 with what is not decided yet', async () => {
    const id = await createFailedExport();
    api.mode = 'silent';
    const { status, body } = await retryFailed();
    expect([status, body.runs]).toEqual([202, 0]);
    expect(body.results).toContainEqual({
      batch_export: id,
      backfill_id: null,
      runs: null,
      detail: expect.stringContaining('still being applied'),
    });
  });
});
