import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { endRun } from '../../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../../src/decisions/run_recorder.ts';
import { attemptOf } from '../../../src/domain/run.ts';
import { quickPolicies } from '../../decisions/commander.ts';
import { fileOf } from '../../decisions/simulated_runs.ts';
import { fingerprintOf } from '../../domain/fingerprints.ts';
import { minuteAgo } from '../../setup/minutes.ts';
import { openApiHarness, type ApiHarness } from '../api_harness.ts';
import { createLaggingExport } from '../lagging_export.ts';
import { completeRun } from './complete_run.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
});
afterAll(() => api.close());

/** Reads what only the console reads of an export. */
async function read<Body>(path: string): Promise<Body> {
  const { status, text } = await api.call('GET', `console/batch_exports/${path}`);
  expect([status, text]).toEqual([200, text]);
  return JSON.parse(text) as Body;
}

/** A paused export with a run for each of the last minutes, newest first. */
async function createBackfilledExport(minutes: number): Promise<{ id: string; runs: string[] }> {
  const id = await createLaggingExport(api, minuteAgo(0), { paused: true });
  await api.call('POST', `batch_exports/${id}/backfill`, {
    start_at: minuteAgo(minutes).toISOString(),
    end_at: minuteAgo(0).toISOString(),
  });
  const { body } = await api.call('GET', `batch_exports/${id}/runs/?ordering=-data_interval_start`);
  return { id, runs: (body.results as { id: string }[]).map((run) => run.id) };
}

describe('the timeline', () => {
  it('has each interval once, with the time that its scheduled run landed', async () => {
    const id = await createLaggingExport(api, minuteAgo(2), { end_at: minuteAgo(0).toISOString() });
    await api.advanceSchedule(id);
    const scheduled = await api.call('GET', `batch_exports/${id}/runs/?ordering=-data_interval_start`);
    const [{ id: newest } = { id: '' }] = scheduled.body.results as { id: string }[];
    await completeRun(api.journal, newest, { rows: 3 });
    const landed = (await api.call('GET', `batch_exports/${id}/runs/${newest}`)).body.finished_at;
    await api.call('POST', `batch_exports/${id}/runs/${newest}/retry`);
    const { body } = await api.call('GET', `batch_exports/${id}/runs/?limit=1`);
    await completeRun(api.journal, (body.results as { id: string }[])[0]?.id ?? '', { rows: 4 });
    const { entries } = await read<{ entries: Record<string, unknown>[] }>(
      `${id}/timeline?before=${minuteAgo(0).toISOString()}`,
    );
    expect(entries).toMatchObject([
      { data_interval_start: minuteAgo(2).toISOString(), status: 'running', landed_at: null, rows: null },
      {
        data_interval_start: minuteAgo(1).toISOString(),
        status: 'exported',
        landed_at: landed,
        rows: 4,
        generation: 2,
      },
    ]);
  });

  it('has no landing time of an interval that a backfill exported', async () => {
    const { id, runs } = await createBackfilledExport(1);
    await completeRun(api.journal, runs[0] ?? '', { rows: 3 });
    const { entries } = await read<{ entries: Record<string, unknown>[] }>(
      `${id}/timeline?before=${minuteAgo(0).toISOString()}`,
    );
    expect(entries).toMatchObject([{ status: 'exported', landed_at: null, rows: 3 }]);
  });

  it('is empty for a time without intervals', async () => {
    const id = await api.createExport({ paused: true });
    expect(await read(`${id}/timeline?before=2020-01-01T00:00:00Z`)).toMatchObject({
      entries: [],
      is_complete: true,
    });
  });
});

interface Coverage {
  readonly segments: readonly { start: string; end: string; kind: string; intervals: number }[];
  readonly is_complete: boolean;
  readonly newest_interval: { readonly start: string };
  readonly next_run_at: string | null;
  readonly run_seconds: number | null;
  readonly temporal_ui: string | null;
}

describe('the coverage', () => {
  const backfill = (id: string, from: number, to: number) =>
    api.call('POST', `batch_exports/${id}/backfill`, {
      start_at: minuteAgo(from).toISOString(),
      end_at: minuteAgo(to).toISOString(),
    });
  const runOf = async (id: string, minute: number): Promise<string> => {
    const start = minuteAgo(minute).toISOString();
    const { body } = await api.call(
      'GET',
      `batch_exports/${id}/runs/?start=${start}&ordering=data_interval_start`,
    );
    return (body.results as { id: string }[])[0]?.id ?? '';
  };
  /** `9-8 exported (1)`: the minutes before now between which each segment lies, and its intervals. */
  const shown = ({ segments }: Coverage) =>
    segments.map(({ start, end, kind, intervals }) => {
      const minutes = [start, end].map((time) => (minuteAgo(0).getTime() - Date.parse(time)) / 60_000);
      return `${minutes.join('-')} ${kind} (${intervals})`;
    });

  it('says of each range what it is, and merges intervals of a kind', async () => {
    const id = await createLaggingExport(api, minuteAgo(3), { paused: true });
    await backfill(id, 9, 7);
    await backfill(id, 5, 4);
    for (const minute of [9, 8, 5]) await completeRun(api.journal, await runOf(id, minute), { rows: 2 });
    await backfill(id, 2, 1);
    const coverage = await read<Coverage>(`${id}/coverage`);
    expect(shown(coverage).slice(0, 4)).toEqual([
      '9-7 exported (2)',
      '7-5 missing (2)',
      '5-4 exported (1)',
      '4-3 missing (1)',
    ]);
    // The rest is due until the pause, which may be a minute later.
    expect(coverage.segments.at(4)?.kind).toBe('owed');
    expect(coverage.run_seconds).toBeGreaterThanOrEqual(0);
    expect(coverage.next_run_at).toBeNull();
    expect(coverage.temporal_ui).toBe(
      `http://temporal.test:8233/namespaces/default/workflows?query=${encodeURIComponent(`ExportdBatchExport="${id}"`)}`,
    );
  });

  it('counts each of more than a thousand intervals, and finds the one that is missing', async () => {
    const id = await createLaggingExport(api, minuteAgo(3), { paused: true });
    await backfill(id, 1_600, 1_599);
    await completeRun(api.journal, await runOf(id, 1_600), { rows: 2 });
    // As fast as the ledger can be written, which a run for each is not.
    await api.database.pool.query(
      `insert into exportd.intervals select (jsonb_populate_record(found, jsonb_build_object(
         'data_interval_start', start, 'data_interval_end', start + interval '1 minute'))).*
       from exportd.intervals found, generate_series($2::timestamptz, $3, '1 minute') start
       where batch_export_id = $1 and start <> $4`,
      [id, minuteAgo(1_599), minuteAgo(4), minuteAgo(700)],
    );
    await api.database.pool.query(
      `with extended as (update exportd.covered_ranges set ends = $2 where batch_export_id = $1)
       insert into exportd.covered_ranges values ($1, $3, $4)`,
      [id, minuteAgo(700), minuteAgo(699), minuteAgo(3)],
    );
    const coverage = await read<Coverage>(`${id}/coverage`);
    expect(coverage.is_complete).toBe(true);
    expect(shown(coverage).slice(0, 3)).toEqual([
      '1600-700 exported (900)',
      '700-699 missing (1)',
      '699-3 exported (696)',
    ]);
  });

  it('names the newest ended interval and the next one of an export without any', async () => {
    const id = await api.createExport({ end_at: null });
    const coverage = await read<Coverage>(`${id}/coverage`);
    const newest = Date.parse(coverage.newest_interval.start);
    expect(Date.parse(coverage.next_run_at ?? '') - newest).toBe(120_000);
    expect(coverage.run_seconds).toBeNull();
  });

  it('begins with the first row of the source, and says when it is not known', async () => {
    const id = await api.createExport({ paused: true });
    const inserted_at = '2021-05-06T07:08:09.000Z';
    const before = expect.any(String);
    expect(await read(`${id}/first_row`)).toEqual({ at: null, before, rows_before: null, detail: null });
    await api.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       values ($1, gen_random_uuid(), 'click', 'ada', '{}', $2, $2)`,
      [api.projectId, inserted_at],
    );
    const found = await read<{ before: string }>(`${id}/first_row`);
    expect(found).toEqual({ at: inserted_at, before, rows_before: 1, detail: null });
    const sentenceWith = async (query: Record<string, string>): Promise<string> =>
      (await read<{ sentence: string }>(`${id}/coverage?${new URLSearchParams(query).toString()}`)).sentence;
    const source = { before: found.before, first_row_at: inserted_at, rows_before: '1' };
    expect(await sentenceWith({})).toMatch(/Not exported: anything before .*, before the export was created/);
    expect(await sentenceWith(source)).toMatch(
      /Not exported: 6 May 2021 07:08 – .*, 1 row, before the export was created/,
    );
    // What was counted before the export knew of more is not shown.
    expect(await sentenceWith({ ...source, before: inserted_at })).toMatch(
      /Not exported: 6 May 2021 07:08 – [^,]*, before the export was created/,
    );
    await api.database.pool.query('alter table events rename to elsewhere');
    try {
      expect(await read(`${id}/first_row`)).toEqual({
        at: null,
        before,
        rows_before: null,
        detail: expect.stringContaining('events'),
      });
    } finally {
      await api.database.pool.query('alter table elsewhere rename to events');
    }
  });
});

it('finds the exports with the same bucket and the same trouble', async () => {
  const failing = async (name: string): Promise<string> => {
    const { id, runs } = await createBackfilledExport(1);
    await api.call('PATCH', `batch_exports/${id}`, { name });
    await endRun(api.journal, quickPolicies(), runs[0] ?? '', {
      status: 'Failed',
      latest_error: 'NoSuchBucket: It does not exist.',
    });
    return id;
  };
  const id = await failing('One');
  await failing('Another');
  await api.createExport({ name: 'Well', paused: true });
  const { exports } = await read<{ exports: { name: string; condition: { actions: unknown[] } }[] }>(
    `${id}/same_trouble`,
  );
  expect(exports.map(({ name }) => name)).toEqual(['Another']);
  expect(exports[0]?.condition.actions).toHaveLength(1);
});

/** Starts a run and sends one part of a file. */
async function sendPart(run: string): Promise<void> {
  const recorder = createRunRecorder(api.journal);
  const fingerprint = fingerprintOf(50);
  await recorder.recordCount(run, { records_total_count: 100, fingerprint, settled: true, split_keys: [] });
  const attempt = attemptOf(
    await recorder.reserveGeneration(run, attemptOf(await recorder.startExport(run, 0), 0)),
    0,
  );
  const upload = { file: 0, key: run, upload_id: run, upload_token: '', part_bytes: null, encoder: 'test/1' };
  await recorder.recordUpload(run, attempt, upload);
  const { first, last, crc32 } = fileOf(run);
  await recorder.planPart(run, attempt, run, {
    part_number: 1,
    rows: 50,
    bytes: 6_000,
    fingerprint,
    rejected: 0,
    crc32,
    first,
    last,
    encoder_state: null,
  });
}

describe('an active run', () => {
  it('has the rows and bytes per second of the last minute', async () => {
    const { id, runs } = await createBackfilledExport(1);
    const [run = ''] = runs;
    const before = await read<{ total: number; runs: unknown[] }>(`${id}/active_runs`);
    expect(before.total).toBe(1);
    expect(before.runs).toMatchObject([{ run: { id: run }, rows_per_second: null, attempts: 0 }]);
    await sendPart(run);
    const { runs: active } = await read<{ runs: { rows_per_second: number; bytes_per_second: number }[] }>(
      `${id}/active_runs`,
    );
    expect(active).toMatchObject([{ run: { id: run, records_total_count: 100 }, attempts: 1 }]);
    expect(active[0]?.rows_per_second).toBeGreaterThan(0);
    expect(active[0]?.bytes_per_second).toBeGreaterThan(0);
  });

  it('has its steps, and the throughput of its parts', async () => {
    const { id, runs } = await createBackfilledExport(1);
    const [run = ''] = runs;
    await sendPart(run);
    const found = await read<{
      steps: { summary: string; level: string }[];
      parts: number;
      throughput: { rows: number; bytes: number }[];
    }>(`${id}/runs/${run}/steps`);
    expect(found.steps.map(({ summary }) => summary)).toEqual([
      'Run created',
      'Counted 100 rows in the source',
      'Started to read rows',
      'Reserved generation 1',
      'Started file 1',
    ]);
    expect(found).toMatchObject({ parts: 1, throughput: [{ rows: 50, bytes: 6_000 }] });
  });
});

it('says nothing of an export or a run that another project or another export has', async () => {
  const { id, runs } = await createBackfilledExport(1);
  const other = await api.createExport({ paused: true });
  const { key } = await api.newKey(api.otherProjectId);
  const headers = { authorization: `Bearer ${key}` };
  for (const part of ['timeline', 'active_runs', 'coverage', 'first_row', 'same_trouble']) {
    const path = `/api/projects/${api.otherProjectId}/console/batch_exports/${id}/${part}`;
    expect((await api.call('GET', path, undefined, headers)).status).toBe(404);
  }
  const { status } = await api.call('GET', `console/batch_exports/${other}/runs/${runs[0] ?? ''}/steps`);
  expect(status).toBe(404);
});
