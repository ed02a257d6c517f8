import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { endRun, type RunOutcome } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { rebuild } from '../../src/projections/registry.ts';
import { createSimulatedRuns } from '../decisions/simulated_runs.ts';
import { quickPolicies } from '../decisions/commander.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';
import { readRuns } from '../decisions/read_runs.ts';
import { readBackfills } from '../decisions/read_backfills.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_BACKFILL_CONCURRENCY: '20' });
});
afterAll(() => api.close());

/** Creates an export and a backfill of `minutes` of its intervals, with all runs created. */
async function startBackfill(minutes: number) {
  const id = await api.createExport();
  const range = { start_at: minuteAgo(minutes + 1), end_at: minuteAgo(1) };
  const { body } = await api.call('POST', `batch_exports/${id}/backfills/`, range);
  const path = `batch_exports/${id}/backfills/${String(body.id)}`;
  const progress = async () => (await api.call('GET', path)).body.progress;
  const active = async () =>
    (await readRuns(api.database.pool, { batch_export_id: id }))
      .filter(({ finished_at }) => finished_at === null)
      .map((run) => run.id);
  return { id, path, progress, active };
}

/** Ends a run. Its retry is due after `retryMs`; without that, it has none. */
async function end(runId: string | undefined, status: RunOutcome, retryMs?: number): Promise<void> {
  const more =
    retryMs === undefined ? { EXPORTD_RUN_RETRY_LIMIT: '0' } : { EXPORTD_RUN_RETRY_INITIAL: `${retryMs}ms` };
  await endRun(api.journal, quickPolicies(more), runId ?? '', { status, latest_error: 'Error: a test' });
}

async function complete(runId: string | undefined): Promise<void> {
  const recorder = createRunRecorder(api.journal);
  const runs = createSimulatedRuns(api.journal, recorder, {
    command: () => Promise.reject(new Error('No command is needed.')),
  });
  const id = runId ?? '';
  await runs.publish(id, await runs.start(id), `key of ${id}`);
}

describe('the progress of a backfill', () => {
  it('has the outcomes of its runs, in the list too', async () => {
    const { id, path, progress, active } = await startBackfill(8);
    const [completed, ...others] = await active();
    await complete(completed);
    const outcomes: readonly RunOutcome[] = [
      'Failed',
      'FailedRetryable',
      'TimedOut',
      'Terminated',
      'Cancelled',
    ];
    for (const [at, status] of outcomes.entries()) await end(others[at], status);
    await end(others[5], 'FailedRetryable', 3_600_000);
    const expected = {
      total_runs: 8,
      finished_runs: 7,
      completed_runs: 1,
      failed_runs: 4,
      cancelled_runs: 1,
      retrying_runs: 1,
      progress: 7 / 8,
    };
    expect(await progress()).toMatchObject(expected);
    const { body } = await api.call('GET', `batch_exports/${id}/backfills/`);
    const backfillId = path.split('/').at(-1) ?? '';
    expect(body.results).toMatchObject([{ id: backfillId, progress: expected }]);
    // The same once the backfill has recorded its ended runs, which are then counted in its row.
    const before = await progress();
    await advanceBackfill(api.journal, quickPolicies(), backfillId);
    expect(await progress()).toEqual(before);
    expect(await readBackfills(api.database.pool, { id: backfillId })).toMatchObject([
      { completed_runs: 1, failed_runs: 2, cancelled_runs: 1 },
    ]);
    await rebuild(api.database.pool);
    expect(await progress()).toEqual(before);
  });

  it.each([
    ['backfills/', (body: Record<string, unknown>) => `backfills/${String(body.id)}`],
    ['backfill/', undefined],
  ])(
    'lets its runs and their automatic retries shrink intervals only on request (%s)',
    async (path, pathOf) => {
      const id = await api.createExport();
      const range = { start_at: minuteAgo(2), end_at: minuteAgo(1) };
      const create = (body: object) => api.call('POST', `batch_exports/${id}/${path}`, { ...range, ...body });
      expect((await create({ allow_shrink: 'yes' })).body).toMatchObject({ attr: 'allow_shrink' });
      const created = await create({ allow_shrink: true });
      const location = pathOf
        ? `batch_exports/${id}/${pathOf(created.body)}`
        : String(created.headers.location).replace('http://localhost', '');
      expect((await api.call('GET', location)).body).toMatchObject({ allow_shrink: true });
      const runs = async () => {
        const { body } = await api.call('GET', `batch_exports/${id}/runs/`);
        return (body.results as { id: string; status: string; allow_shrink: boolean }[]).map(
          ({ status, allow_shrink }) => ({ status, allow_shrink }),
        );
      };
      expect(await runs()).toEqual([{ status: 'Starting', allow_shrink: true }]);
      const { body } = await api.call('GET', `batch_exports/${id}/runs/`);
      const [run] = body.results as { id: string }[];
      await end(run?.id, 'FailedRetryable', 0);
      await api.advanceSchedule(id);
      expect(await runs()).toEqual([
        { status: 'Starting', allow_shrink: true },
        { status: 'FailedRetryable', allow_shrink: true },
      ]);
    },
  );

  it('of one run never lets it shrink its interval', async () => {
    const { id, active } = await startBackfill(1);
    const [first] = await active();
    await end(first, 'Failed');
    const path = `batch_exports/${id}/runs/${first ?? ''}/retry`;
    const { headers } = await api.call('POST', path, { allow_shrink: true });
    const run = await api.call('GET', String(headers.location).replace('http://localhost', ''));
    expect(run.body).toMatchObject({ allow_shrink: false });
  });

  it('is null once the backfill is cancelled, which cannot be cancelled again', async () => {
    const { id, path } = await startBackfill(2);
    const created = await api.call('POST', `batch_exports/${id}/backfills/`, {
      start_at: minuteAgo(9),
      end_at: minuteAgo(8),
    });
    expect(created.body.backfill_id).toBe(created.body.id);
    const cancelled = await api.call('POST', `${path}/cancel/`);
    expect([cancelled.status, cancelled.body.status, cancelled.body.progress]).toEqual([
      200,
      'Cancelled',
      null,
    ]);
    const again = await api.call('POST', `${path}/cancel/`);
    expect([again.status, again.body.detail]).toEqual([
      400,
      "Cannot cancel a backfill that is in 'Cancelled' status.",
    ]);
  });

  it('counts a run by the outcome of its last automatic retry, and ignores manual retries', async () => {
    const { id, progress, active } = await startBackfill(2);
    const [first, second] = await active();
    await end(first, 'FailedRetryable', 0);
    await api.advanceSchedule(id);
    const [, retry] = await active();
    expect(await progress()).toMatchObject({ finished_runs: 1, failed_runs: 0, retrying_runs: 1 });
    await complete(retry);
    expect(await progress()).toMatchObject({ completed_runs: 1, retrying_runs: 0, records_completed: 3 });
    await end(second, 'Failed');
    await api.call('POST', `batch_exports/${id}/runs/${second ?? ''}/retry`, {});
    await complete((await active())[0]);
    expect(await progress()).toMatchObject({
      finished_runs: 2,
      completed_runs: 1,
      failed_runs: 1,
      cancelled_runs: 0,
      retrying_runs: 0,
    });
  });
});

describe('a backfill since the first row', () => {
  it('begins with the interval of the first row of the source, and needs one', async () => {
    const id = await api.createExport();
    const request = { start_at: null, end_at: minuteAgo(1).toISOString() };
    const { status, body } = await api.call('POST', `batch_exports/${id}/backfills`, request);
    expect([status, body]).toEqual([400, expect.objectContaining({ attr: 'start_at' })]);
    expect(body.detail).toBe('The source has no row to begin with.');
    await api.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select $1, gen_random_uuid(), 'click', 'ada', '{}', at, at from unnest($2::timestamptz[]) at`,
      [api.projectId, [new Date(minuteAgo(5).getTime() + 7_000), minuteAgo(3)]],
    );
    const planned = await api.call('POST', `batch_exports/${id}/backfill`, { ...request, dry_run: true });
    expect(planned.body).toMatchObject({ start_at: minuteAgo(5).toISOString(), intervals: 4, rows: 2 });
    const created = await api.call('POST', `batch_exports/${id}/backfills`, request);
    expect(created.body).toMatchObject({ progress: { total_runs: 4 } });
    // Of another project, not even the first row is said.
    const unknown = '00000000-0000-4000-8000-000000000000';
    expect((await api.call('POST', `batch_exports/${unknown}/backfills`, request)).status).toBe(404);
  });
});
