import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { collapseHistory } from '../../src/decisions/collapse_history.ts';
import { endRun, type RunOutcome } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { attemptOf, runDecider } from '../../src/domain/run.ts';
import { quickPolicies } from '../decisions/commander.ts';
import { readBackfills } from '../decisions/read_backfills.ts';
import { recordSameRows } from '../decisions/replacements.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { batchExportDecider } from '../../src/domain/batch_export.ts';
import { rebuild } from '../../src/projections/registry.ts';
import { fileOf } from '../decisions/simulated_runs.ts';
import { minuteAgo, withinOneMinute } from '../setup/minutes.ts';
import { type ApiHarness, openApiHarness } from './api_harness.ts';
import { createLaggingExport } from './lagging_export.ts';
import { storedRows } from '../../src/temporal/capabilities.ts';
import type { RunEvent } from '../../src/domain/run_events.ts';

interface Entry {
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly status: string;
  readonly reason: string | null;
  readonly intervals: number;
  readonly run_id: string | null;
  readonly [field: string]: unknown;
}
interface Page {
  readonly count: number;
  readonly next: string | null;
  readonly previous: string | null;
  readonly results: Entry[];
}

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({
    EXPORTD_BACKFILL_CONCURRENCY: '200',
    EXPORTD_MAX_BACKFILLS_PER_PROJECT: '1000',
  });
});
afterAll(() => api.close());

async function pageOf(id: string, query = ''): Promise<Page> {
  const { status, text } = await api.call('GET', `batch_exports/${id}/intervals/?${query}`);
  expect(status).toBe(200);
  return JSON.parse(text) as Page;
}

/** The intervals that ended before the tests started: every minute adds one. */
const ended = `before=${minuteAgo(0).toISOString()}`;

/** The entries of an export, oldest first. */
const entriesOf = async (id: string, query = `limit=1000&${ended}`): Promise<Entry[]> =>
  (await pageOf(id, query)).results.reverse();

/** What an entry says in a few words. */
const summaryOf = ({ status, reason, intervals }: Entry) => [status, reason, intervals];

const backfill = (id: string, from: number, to: number) =>
  api.call('POST', `batch_exports/${id}/backfill`, {
    start_at: minuteAgo(from).toISOString(),
    end_at: minuteAgo(to).toISOString(),
  });

/** Exports a run with one file of three rows and two rejected rows, as the activities record it. */
async function complete(
  id: string,
  { settled = true, expires_at = null }: { settled?: boolean; expires_at?: string | null } = {},
): Promise<void> {
  const recorder = createRunRecorder(api.journal);
  const fingerprint = minuteFingerprint(5);
  await recorder.recordCount(id, { records_total_count: 5, fingerprint, settled, split_keys: [] });
  await recorder.startExport(id, 0);
  const attempt = attemptOf(await recorder.reserveGeneration(id), 0);
  const { generation } = attempt;
  const key = `${id}/${generation}`;
  const upload = { file: 0, key, upload_id: id, upload_token: '', part_bytes: null, encoder: 'test/1' };
  await recorder.recordUpload(id, attempt, upload);
  await recorder.recordFile(id, attempt, { ...fileOf(key), expires_at, fingerprint: minuteFingerprint(3) });
  await recorder.planRejectedFile(id, generation, {
    ...fileOf(`${key}-rejected`, 2),
    fingerprint: minuteFingerprint(2),
  });
  await recorder.finishExport(id, generation, { source_rows: 5, fingerprint, encoder: 'test/1' });
  await recordSameRows(recorder, id);
  await recorder.startPublish(id, generation);
  await recorder.complete(id, generation, 'manifest');
}

const minuteFingerprint = (rows: number) =>
  fingerprintOf(rows, { interval: { start: minuteAgo(1).toISOString(), end: minuteAgo(0).toISOString() } });

/** Appends an event to a run, as maintenance records it. */
const append = (id: string, event: RunEvent) =>
  api.journal.transaction(async (transaction) =>
    (await transaction.lock(runDecider, id)).append(JSON.stringify(event), [event]),
  );

const end = (id: string, status: RunOutcome, settings: Record<string, string> = {}) =>
  endRun(api.journal, quickPolicies(settings), id, {
    status,
    latest_error: `Test: it ended ${status}.`,
  });

/** Retries a run and returns the id of the new one. */
async function retry(id: string, run: string): Promise<string> {
  await api.call('POST', `batch_exports/${id}/runs/${run}/retry`);
  const { body } = await api.call('GET', `batch_exports/${id}/runs/?limit=1`);
  return (body.results as { id: string }[])[0]?.id ?? '';
}

/** A paused export with a backfill of some minutes; returns its runs, oldest interval first. */
async function createBackfilledExport(minutes: number): Promise<{ id: string; runs: string[] }> {
  const id = await createLaggingExport(api, minuteAgo(0), { paused: true });
  await backfill(id, minutes, 0);
  const entries = await entriesOf(id, 'limit=1000&status=running');
  expect(entries).toHaveLength(minutes);
  return { id, runs: entries.map(({ run_id }) => run_id ?? '') };
}

describe('the interval ledger', () => {
  it('has the current manifest of an exported interval', async () => {
    const { id, runs } = await createBackfilledExport(1);
    const [run = ''] = runs;
    await complete(run);
    const [entry] = await entriesOf(id);
    expect(entry).toMatchObject({
      data_interval_start: minuteAgo(1).toISOString(),
      data_interval_end: minuteAgo(0).toISOString(),
      intervals: 1,
      status: 'exported',
      reason: null,
      latest_error: null,
      run_id: run,
      manifest_run_id: run,
      run_ids: [run],
      generation: 1,
      rows: 3,
      rejected_rows: 2,
      bytes: 90,
      files: 1,
      kept_files: 0,
      earlier_files: 0,
      source_fingerprint: { hash: 'uuid_hash_extended/0', rows: 5, sum: '5' },
      bucket_fingerprint: { hash: 'uuid_hash_extended/0', rows: 5, sum: '5' },
      settled: true,
      settling_outcome: null,
      completed_at: expect.any(String),
      expires_at: null,
      comparison: null,
      held: null,
      taken_keys: 0,
      history_collapsed: false,
    });
  });

  it('is held after a run that would remove rows, until a run completes', async () => {
    const { id, runs } = await createBackfilledExport(1);
    const [run = ''] = runs;
    await complete(run);
    const held = { missing_rows: 2, bucket_rows: 5, source_rows: 3 };
    const latest_error = 'RowsMissingInSource: The source lacks 2 rows.';
    await append(await retry(id, run), { type: 'RunFailed', data: { latest_error, held } });
    const entry = { status: 'held', reason: null, held, latest_error, generation: 1, rows: 3 };
    expect(await entriesOf(id, 'status=held')).toMatchObject([entry]);
    const { body } = await api.call('GET', `batch_exports/${id}`);
    // Only the minutes that the schedule had not decided when it was created, paused, are behind.
    const undecided = Math.floor((Date.parse(String(body.created_at)) - minuteAgo(0).getTime()) / 60_000);
    expect(body.lag).toMatchObject({ intervals: undecided, gaps: [] });
    await end(await retry(id, run), 'Cancelled');
    expect(await entriesOf(id)).toMatchObject([{ status: 'held', held }]);
    await complete(await retry(id, run));
    expect(await entriesOf(id)).toMatchObject([{ status: 'exported', held: null, generation: 2 }]);
  });

  it('is expired when the bucket has deleted a file of the manifest', async () => {
    const { id, runs } = await createBackfilledExport(2);
    const [first = '', second = ''] = runs;
    await complete(first, { expires_at: minuteAgo(0).toISOString() });
    await complete(second, { expires_at: minuteAgo(-60).toISOString() });
    expect(await entriesOf(id)).toMatchObject([
      { status: 'expired', expires_at: minuteAgo(0).toISOString() },
      { status: 'exported', expires_at: minuteAgo(-60).toISOString() },
    ]);
    expect(await pageOf(id, 'status=expired')).toMatchObject({ count: 1, results: [{ run_id: first }] });
  });

  it('has the last comparison of the current manifest', async () => {
    const { id, runs } = await createBackfilledExport(1);
    const [run = ''] = runs;
    await complete(run);
    const numbers = { bucket_rows: 5, source_rows: 6, added_rows: 2, missing_rows: 1 };
    const compared_at = minuteAgo(0).toISOString();
    await api.database.pool.query(
      `insert into exportd.interval_comparisons (batch_export_id, data_interval_start, data_interval_end, run_id, team_id,
         config_version, selection_hash, bucket_rows, compared_from, last_compared_at, outcome, source_rows, added_rows,
         missing_rows)
       values ($1, $2, $3, $4, $5, 1, '', 5, $3, $3, 'both', 6, 2, 1)
       on conflict (batch_export_id, data_interval_start, data_interval_end) do update set
         last_compared_at = excluded.last_compared_at, outcome = 'both', source_rows = 6, added_rows = 2, missing_rows = 1`,
      [id, minuteAgo(1), minuteAgo(0), run, api.projectId],
    );
    expect(await entriesOf(id)).toMatchObject([
      { status: 'exported', comparison: { compared_at, outcome: 'both', ...numbers, kept: false } },
    ]);
  });

  it('is all that is left of runs whose history was collapsed; it can be exported again', async () => {
    const { id, runs } = await createBackfilledExport(2);
    const [first = '', second = ''] = runs;
    for (const run of [first, second]) await complete(run);
    const before = await entriesOf(id);
    const [running] = await readBackfills(api.journal.pool, { batch_export_id: id });
    await advanceBackfill(api.journal, quickPolicies(), running?.id ?? '');
    const everything = { historyMs: 0, deletedExportMs: undefined, idempotencyKeyMs: 0, newestRuns: 0 };
    await collapseHistory(api.journal, everything, storedRows, () => false);
    const collapsed = before.map((entry) => ({ ...entry, run_ids: [], history_collapsed: true }));
    expect(await entriesOf(id)).toEqual(collapsed);
    await rebuild(api.journal.pool);
    expect(await entriesOf(id)).toEqual(collapsed);
    expect((await api.call('GET', `batch_exports/${id}/runs/`)).body).toMatchObject({
      count: 0,
      results: [],
    });
    const gone = { status: 410, body: { type: 'gone', code: 'history_collapsed' } };
    expect(await api.call('GET', `batch_exports/${id}/runs/${first}/`)).toMatchObject(gone);
    for (const action of ['retry', 'cancel'])
      expect(await api.call('POST', `batch_exports/${id}/runs/${first}/${action}`)).toMatchObject(gone);
    expect(await api.call('GET', `batch_exports/${id}/runs/${randomUUID()}/`)).toMatchObject({ status: 404 });
    await backfill(id, 2, 1);
    const [again] = await entriesOf(id);
    expect(again).toMatchObject({ status: 'running', generation: 1, history_collapsed: true });
    await complete(again?.run_id ?? '');
    expect((await entriesOf(id))[0]).toMatchObject({
      status: 'exported',
      generation: 2,
      run_ids: [again?.run_id],
      history_collapsed: false,
    });
  });

  it('has current manifests alone, in the order of completion, also of collapsed runs', async () => {
    const { id, runs } = await createBackfilledExport(4);
    const [oldest = '', second = '', third = '', newest = ''] = runs;
    await end(newest, 'Failed');
    await complete(third);
    await complete(oldest, { expires_at: new Date(0).toISOString() });
    await complete(second);
    const again = await retry(id, third);
    const manifestsOf = async (query = '') => {
      const { status, text } = await api.call('GET', `batch_exports/${id}/manifests/?${query}`);
      expect(status).toBe(200);
      return JSON.parse(text) as Page & { results: { completed_at: string; key: string }[] };
    };
    const runsOf = async (query = '') => (await manifestsOf(query)).results.map(({ run_id }) => run_id);
    // The bucket has deleted the file of the oldest.
    expect(await runsOf()).toEqual([third, second]);
    await complete(again);
    expect(await runsOf()).toEqual([second, again]);
    const first = await manifestsOf('limit=1');
    expect(first).toMatchObject({
      count: 2,
      previous: null,
      results: [{ run_id: second, rows: 3, generation: 1 }],
    });
    const compact = (minutes: number) =>
      minuteAgo(minutes)
        .toISOString()
        .replaceAll(/[-:]|\.\d+/g, '');
    expect(first.results[0]?.key).toMatch(
      new RegExp(`(^|/)_manifests/${id}/${compact(3)}-${compact(2)}.json$`),
    );
    const next = await manifestsOf(new URL(first.next ?? '').search.slice(1));
    expect(next).toMatchObject({ next: null, results: [{ run_id: again, generation: 2 }] });
    const { completed_at = '' } = next.results[0] ?? {};
    expect(await runsOf(`since=${completed_at}`)).toEqual([again]);
    const everything = { historyMs: 0, deletedExportMs: undefined, idempotencyKeyMs: 0, newestRuns: 0 };
    const before = await manifestsOf();
    await collapseHistory(api.journal, everything, storedRows, () => false);
    expect(await manifestsOf()).toEqual(before);
  });

  it('counts the keys of the newest run that other objects have', async () => {
    const { id, runs } = await createBackfilledExport(1);
    const [run = ''] = runs;
    for (const key of ['one', 'two'])
      await append(run, { type: 'RunKeyTaken', data: { generation: 1, range: 0, file: 0, key } });
    expect(await entriesOf(id)).toMatchObject([{ status: 'running', taken_keys: 2 }]);
    await end(run, 'Cancelled');
    await retry(id, run);
    expect(await entriesOf(id)).toMatchObject([{ status: 'running', taken_keys: 0 }]);
  });

  it.each([
    ['Failed', {}, 'gap', 'failed'],
    ['Terminated', {}, 'gap', 'exported'],
    ['Cancelled', {}, 'gap', 'exported'],
    ['FailedRetryable', {}, 'failed', 'failed'],
    ['TimedOut', { EXPORTD_RUN_RETRY_LIMIT: '0' }, 'gap', 'failed'],
  ] as const)(
    'says how an interval without and with a manifest stands after a run that ended %s',
    async (outcome, settings, without, withManifest) => {
      const { id, runs } = await createBackfilledExport(2);
      const [first = '', second = ''] = runs;
      await complete(second);
      const again = await retry(id, second);
      for (const run of [first, again]) await end(run, outcome, settings);
      const entries = await entriesOf(id);
      expect(entries.map(summaryOf)).toEqual([
        [without, outcome, 1],
        [withManifest, withManifest === 'exported' ? null : outcome, 1],
      ]);
      expect(entries[0]).toMatchObject({ generation: null, rows: null, completed_at: null });
      expect(entries[1]).toMatchObject({
        run_id: again,
        manifest_run_id: second,
        run_ids: [again, second],
        generation: 1,
        rows: 3,
        latest_error: `Test: it ended ${outcome}.`,
      });
    },
  );

  it('keeps an interval unsettled until it is followed up', async () => {
    const { id, runs } = await createBackfilledExport(1);
    const [run = ''] = runs;
    await complete(run, { settled: false });
    const unsettled = { status: 'unsettled', settled: false, settling_outcome: null };
    expect(await entriesOf(id)).toMatchObject([unsettled]);
    await end(await retry(id, run), 'Cancelled');
    expect(await entriesOf(id)).toMatchObject([unsettled]);
    await append(run, { type: 'RunSettled', data: { outcome: 'same_rows' } });
    const followedUp = { status: 'exported', settled: false, settling_outcome: 'same_rows' };
    expect(await entriesOf(id)).toMatchObject([followedUp]);
    await end(await retry(id, run), 'Cancelled');
    expect(await entriesOf(id)).toMatchObject([followedUp]);
    await complete(await retry(id, run));
    expect(await entriesOf(id)).toMatchObject([
      { status: 'exported', settled: true, settling_outcome: null, generation: 2 },
    ]);
  });

  it('lists what the schedule skips as ranges, split by the intervals that are backfilled', async () => {
    const bounds = { start_at: minuteAgo(20).toISOString(), end_at: minuteAgo(4).toISOString() };
    const id = await createLaggingExport(api, minuteAgo(30), bounds);
    const beforeRuns = [
      ['excluded', 'before start_at', 9],
      ['due', null, 17],
      ['excluded', 'after end_at', expect.any(Number)],
    ];
    expect((await entriesOf(id)).map(summaryOf)).toEqual(beforeRuns);
    await api.call('POST', `batch_exports/${id}/pause`);
    await backfill(id, 26, 25);
    await backfill(id, 30, 29);
    expect((await entriesOf(id)).slice(0, 5).map(summaryOf)).toEqual([
      ['running', null, 1],
      ['excluded', 'before start_at', 3],
      ['running', null, 1],
      ['excluded', 'before start_at', 4],
      ['due', null, 17],
    ]);
    const beforeSchedule = await entriesOf(id);
    // The schedule records the ranges now; nothing else changes for readers.
    await api.call('POST', `batch_exports/${id}/unpause`);
    await api.advanceSchedule(id);
    const recorded = await entriesOf(id);
    expect(recorded.slice(0, 4)).toEqual(beforeSchedule.slice(0, 4));
    await backfill(id, 24, 22);
    expect((await entriesOf(id)).slice(0, 6).map(summaryOf)).toEqual([
      ['running', null, 1],
      ['excluded', 'before start_at', 3],
      ['running', null, 1],
      ['excluded', 'before start_at', 1],
      ['running', null, 1],
      ['running', null, 1],
    ]);
  });

  it('lists the intervals that were skipped after a pause as one range', async () => {
    const id = await createLaggingExport(api, minuteAgo(10), { paused: true });
    await backfill(id, 9, 8);
    const skipped = { start: minuteAgo(10).toISOString(), end: minuteAgo(6).toISOString() };
    await api.journal.transaction(async (transaction) =>
      (await transaction.lock(batchExportDecider, id)).append('unpaused', [
        { type: 'IntervalsSkipped', data: { ...skipped, reason: 'paused' } },
      ]),
    );
    expect((await entriesOf(id)).slice(0, 3).map(summaryOf)).toEqual([
      ['paused', 'paused', 1],
      ['running', null, 1],
      ['paused', 'paused', 2],
    ]);
    await backfill(id, 7, 6);
    expect((await entriesOf(id)).slice(2, 4).map(summaryOf)).toEqual([
      ['paused', 'paused', 1],
      ['running', null, 1],
    ]);
  });

  it('is filtered by status and time, and paged by cursors in both directions', async () => {
    const { id, runs } = await createBackfilledExport(9);
    for (const run of runs.slice(0, 4)) await end(run, 'Failed');
    expect(await pageOf(id, 'status=gap,exported&limit=3')).toMatchObject({ count: 4 });
    const range = `after=${minuteAgo(8).toISOString()}&before=${minuteAgo(6).toISOString()}`;
    expect((await entriesOf(id, range)).map(({ run_id }) => run_id)).toEqual(runs.slice(1, 3));

    const pages = [await pageOf(id, `limit=4&${ended}`)];
    for (let next = pages[0]?.next; next; next = pages.at(-1)?.next)
      pages.push(await pageOf(id, new URL(next).search.slice(1)));
    expect(pages.map(({ results }) => results.length)).toEqual([4, 4, 1]);
    expect(
      pages
        .flatMap(({ results }) => results)
        .map(({ run_id }) => run_id)
        .reverse(),
    ).toEqual(runs);
    const back = await pageOf(id, new URL(pages[2]?.previous ?? '').search.slice(1));
    expect(back.results).toEqual(pages[1]?.results);
    expect(pages[0]?.previous).toBeNull();
  });

  it.each([
    ['since=yesterday', 'since'],
    ['cursor=bm90IG9uZQ', 'cursor'],
    ['limit=0', 'limit'],
  ])('rejects %s for manifests', async (query, attr) => {
    const id = await api.createExport();
    const { status, body } = await api.call('GET', `batch_exports/${id}/manifests/?${query}`);
    expect([status, body.attr]).toEqual([400, attr]);
  });

  it.each([
    ['status=lost', 'status'],
    ['cursor=bm90IG9uZQ', 'cursor'],
    ['limit=0', 'limit'],
    ['after=yesterday', 'after'],
    ['ordering=status', 'ordering'],
  ])('rejects %s', async (query, attr) => {
    const id = await api.createExport();
    const { status, body } = await api.call('GET', `batch_exports/${id}/intervals/?${query}`);
    expect([status, body.attr]).toEqual([400, attr]);
  });

  it.each([
    '2026-11-01T00:00:00+16:30',
    '2026-11-01T00:00:00-23:59',
    '0016-05-25T15:37:43.6+20:31',
    '2026-11-01',
  ])('has no interval that starts at %s', async (start) => {
    const id = await api.createExport();
    const path = `batch_exports/${id}/intervals/${encodeURIComponent(start)}`;
    const uuid = '00000000-0000-4000-8000-000000000000';
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', `/row?uuid=${uuid}`],
      ['GET', '/verifications'],
      ['POST', '/verifications'],
    ] as const) {
      const { status } = await api.call(method, `${path}${rest}`);
      expect([method, rest, status]).toEqual([method, rest, 404]);
    }
  });

  it.each([
    ['backfill', { start_at: '2026-11-01T00:00:00+16:30', end_at: '2026-11-02T00:00:00+23:59' }],
    ['pause', { last_paused_at: '2026-11-01T00:00:00-23:59' }],
  ])('takes any offset in the body of %s', async (name, body) => {
    const id = await api.createExport();
    const { status } = await api.call('POST', `batch_exports/${id}/${name}/`, body);
    expect([200, 201]).toContain(status);
  });

  it('is the same after a rebuild of the read models', async () => {
    const { body } = await api.call('GET', 'batch_exports/?limit=1000');
    const ids = (body.results as { id: string }[]).map(({ id }) => id);
    const { result } = await withinOneMinute(async () => {
      const before = await Promise.all(ids.map((id) => entriesOf(id)));
      await rebuild(api.database.pool);
      return { before, after: await Promise.all(ids.map((id) => entriesOf(id))) };
    });
    expect(result.after).toEqual(result.before);
  });
});
