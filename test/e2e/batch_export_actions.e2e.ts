import { DeleteObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '../setup/wait_for.ts';
import { makeMinutesDue } from './due_minutes.ts';
import { exportedRows, exportedUuids, insertEvents, keysUnder, readManifest, sourceUuids } from './rows.ts';
import { createS3Proxy } from './s3_proxy.ts';
import { hourAgo } from '../setup/hours.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';

let stack: Stack;
const rowsPerHour = 120;

beforeAll(async () => {
  stack = await startStack('batch-export-actions');
  for (let hour = 25; hour >= 0; hour--)
    await insertEvents(stack.pool, stack.projectId, hourAgo(hour), rowsPerHour);
});
afterAll(async () => {
  await stack.stop();
});

const hourRange = (from: number, to: number) => ({
  start_at: hourAgo(from).toISOString(),
  end_at: hourAgo(to).toISOString(),
});

/** Requests a backfill and waits until it is Completed. @returns its runs. */
async function runBackfill(
  exportId: string,
  from: number,
  to: number,
  scope: Readonly<Record<string, unknown>> = {},
): Promise<RunResponse[]> {
  const body = { ...hourRange(from, to), ...scope };
  const response = await stack.call('POST', `/batch_exports/${exportId}/backfill/`, body);
  expect(response.status).toBe(200);
  expect(response.text).toBe('');
  const backfillId = response.headers.get('location')?.split('/').at(-2);
  await waitFor(async () => {
    const backfillResponse = await stack.call('GET', `/batch_exports/${exportId}/backfills/${backfillId}/`);
    return backfillResponse.body.status === 'Completed';
  }, `backfill ${backfillId} is Completed`);
  return (await stack.runs(exportId)).filter((run) => run.backfill_id === backfillId);
}

describe('a batch export controlled over HTTP', () => {
  it('backfills the last 12 hours: every run is Completed, every row is exported once', async () => {
    const id = await stack.createExport();
    const runs = await runBackfill(id, 12, 0);
    expect(runs).toHaveLength(12);
    for (const run of runs) {
      expect(run).toMatchObject({ status: 'Completed', records_completed: rowsPerHour });
      const expected = await sourceUuids(
        stack.pool,
        stack.projectId,
        run.data_interval_start,
        run.data_interval_end,
      );
      expect(expected.length).toBeGreaterThan(0);
      expect(await exportedUuids(stack.bucket, run.manifest_key)).toEqual(expected);
    }
  });

  it('retries a run: a new run, the next generation, and the old objects are kept until then', async () => {
    const id = await stack.createExport({}, { prefix: 'retried' });
    const [first] = await runBackfill(id, 3, 2);
    if (!first?.manifest_key) throw new Error('The run has no manifest.');
    const before = await readManifest(stack.bucket, first.manifest_key);
    const late = new Date(new Date(first.data_interval_start).getTime() + 1_000);
    await insertEvents(stack.pool, stack.projectId, late, 1, 1);

    const response = await stack.call('POST', `/batch_exports/${id}/runs/${first.id}/retry/`, {
      status: 'Completed',
      data_interval_end: first.data_interval_end,
    });
    expect(response.status).toBe(200);
    const newest = (await stack.runs(id))[0];
    expect(newest?.id).not.toBe(first.id);
    expect(newest?.data_interval_start).toBe(first.data_interval_start);
    expect(response.headers.get('location')).toContain(newest?.id);
    const retried = await stack.waitForRun(id, newest?.id ?? '', 'Completed');

    const after = await readManifest(stack.bucket, retried.manifest_key ?? '');
    expect(retried.manifest_key).toBe(first.manifest_key);
    expect(after.generation).toBeGreaterThan(before.generation);
    expect(after.rows).toBe(before.rows + 1);
    expect(await exportedUuids(stack.bucket, retried.manifest_key)).toEqual(
      await sourceUuids(stack.pool, stack.projectId, first.data_interval_start, first.data_interval_end),
    );
    const kept = await keysUnder(stack.bucket, 'retried/');
    for (const { key } of [...before.files, ...after.files]) expect(kept).toContain(key);
    expect(after.files.map(({ key }) => key)).not.toEqual(before.files.map(({ key }) => key));
  });

  it('publishes nothing of what is unchanged, unless its files are lost, or new ones are asked for', async () => {
    const id = await stack.createExport({}, { prefix: 'unchanged' });
    const [first, empty] = [...(await runBackfill(id, 10, 9)), ...(await runBackfill(id, 50, 49))];
    const key = first?.manifest_key ?? '';
    const before = await readManifest(stack.bucket, key);
    const objects = async () => (await keysUnder(stack.bucket, 'unchanged/')).toSorted();
    const stored = await objects();

    for (const [from, to] of [
      [10, 9],
      [50, 49],
    ] as const) {
      const [again] = await runBackfill(id, from, to);
      expect(again).toMatchObject({ status: 'Completed', manifest_key: null, latest_error: null });
      expect(again?.status_detail).toContain('Unchanged: nothing was published');
    }
    expect(empty).toMatchObject({ status: 'Completed', records_completed: 0 });
    expect(await objects()).toEqual(stored);
    const interval = await stack.call(
      'GET',
      `/batch_exports/${id}/intervals/?after=${hourAgo(10).toISOString()}&before=${hourAgo(9).toISOString()}`,
    );
    expect(interval.body.results).toMatchObject([{ status: 'exported', generation: 1, rows: rowsPerHour }]);
    const { results } = (await stack.call('GET', `/batch_exports/${id}/backfills/`)).body as {
      results: { progress: Record<string, unknown> }[];
    };
    expect(results[0]?.progress).toMatchObject({ completed_runs: 1, unchanged_runs: 1, done_at: null });

    await stack.bucket.client.send(
      new DeleteObjectCommand({ Bucket: stack.bucket.bucket, Key: before.files[0]?.key ?? '' }),
    );
    await runBackfill(id, 10, 9);
    const cured = await readManifest(stack.bucket, key);
    expect(cured.generation).toBeGreaterThan(before.generation);
    expect(await exportedUuids(stack.bucket, key)).toHaveLength(rowsPerHour);

    await runBackfill(id, 10, 9, { rewrite: true });
    expect((await readManifest(stack.bucket, key)).generation).toBeGreaterThan(cured.generation);
  });

  it('asks for no object of others that a changed manifest of an unchanged interval names', async () => {
    const proxy = await createS3Proxy(stack.bucket.endpoint);
    try {
      const id = await stack.createExport({}, { prefix: 'planted', endpoint_url: proxy.endpoint });
      const [first] = await runBackfill(id, 10, 9);
      const Key = first?.manifest_key ?? '';
      const manifest = await readManifest(stack.bucket, Key);
      const [file] = manifest.files;
      const others = 'backups/db.dump';
      const put = (object: { readonly Key: string; readonly Body: string }) =>
        stack.bucket.client.send(new PutObjectCommand({ Bucket: stack.bucket.bucket, ...object }));
      await put({ Key: others, Body: 'x'.repeat(file?.bytes ?? 0) });
      await put({ Key, Body: JSON.stringify({ ...manifest, files: [{ ...file, key: others }] }) });

      await runBackfill(id, 10, 9);
      expect(proxy.requests.map(({ key }) => key)).not.toContain(others);
      expect(await exportedUuids(stack.bucket, Key)).toHaveLength(rowsPerHour);
    } finally {
      await proxy.close();
    }
  });

  it('backfills only what is missing, from the first row on', async () => {
    const id = await stack.createExport({}, { prefix: 'missing' });
    await runBackfill(id, 24, 22);
    await runBackfill(id, 20, 19);
    const range = { start_at: null, end_at: hourAgo(18).toISOString(), only: 'missing' };
    const planned = await stack.call('POST', `/batch_exports/${id}/backfill/`, { ...range, dry_run: true });
    // The first rows were inserted 25 hours ago.
    expect(planned.body).toMatchObject({ intervals: 4, rows: 4 * rowsPerHour });
    expect(planned.body.seconds).toBeGreaterThan(0);
    const runs = await runBackfill(id, 24, 18, range);
    const hoursOf = (run: RunResponse) =>
      Math.round((hourAgo(0).getTime() - Date.parse(run.data_interval_start)) / 3_600_000);
    expect(runs.map(hoursOf).toSorted((one, other) => one - other)).toEqual([19, 21, 22, 25]);
    const nothing = await stack.call('POST', `/batch_exports/${id}/backfill/`, range);
    expect([nothing.status, nothing.body.attr]).toEqual([400, 'only']);
  });

  it('exports persons, one row for each distinct id', async () => {
    const moment = new Date(hourAgo(5).getTime() + 60_000);
    await stack.pool.query(
      `insert into persons (team_id, id, properties, created_at, updated_at, version)
       select $1, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, jsonb_build_object('n', n), $2, $2, 7
       from generate_series(1, 50) n`,
      [stack.projectId, moment],
    );
    await stack.pool.query(
      `insert into person_distinct_ids (team_id, distinct_id, person_id, version, updated_at)
       select $1, 'distinct-' || n || '-' || m, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 1, $2
       from generate_series(1, 50) n, generate_series(1, 2) m`,
      [stack.projectId, moment],
    );
    const id = await stack.createExport({ model: 'persons' }, { prefix: 'persons', compression: null });
    const [run] = await runBackfill(id, 5, 4);
    const rows = await exportedRows(stack.bucket, run?.manifest_key ?? '');
    expect(rows).toHaveLength(100);
    expect(new Set(rows.map(({ distinct_id }) => distinct_id)).size).toBe(100);
    expect(Object.keys(rows[0] ?? {}).sort()).toEqual(
      [
        'team_id',
        'distinct_id',
        'person_id',
        'properties',
        'person_distinct_id_version',
        'person_version',
        'created_at',
        '_inserted_at',
        'is_deleted',
      ].sort(),
    );
  });

  it('writes a manifest without files for an empty interval', async () => {
    const id = await stack.createExport({}, { prefix: 'empty' });
    const [run] = await runBackfill(id, 40, 39);
    expect(run).toMatchObject({ status: 'Completed', records_completed: 0 });
    expect(await readManifest(stack.bucket, run?.manifest_key ?? '')).toMatchObject({ rows: 0, files: [] });
  });

  it('uses a changed prefix from the next run on, with unchanged credentials', async () => {
    const id = await stack.createExport({}, { prefix: 'before' });
    const [before] = await runBackfill(id, 3, 2);
    const patched = await stack.call('PATCH', `/batch_exports/${id}/`, {
      destination: { type: 'S3', config: { prefix: 'after' } },
    });
    expect(patched.status).toBe(200);
    expect(patched.body.destination).toMatchObject({
      config: { prefix: 'after', bucket_name: stack.bucket.bucket },
    });
    const [after] = await runBackfill(id, 3, 2);
    expect(before?.manifest_key).toMatch(/^before\//);
    expect(after?.manifest_key).toMatch(/^after\//);
    expect((await keysUnder(stack.bucket, 'after/')).length).toBeGreaterThan(1);
  });

  it('runs on schedule, not while paused, and again after unpause', async () => {
    const id = await stack.createExport({ interval: 'every 1 minutes', paused: true }, { prefix: 'minutes' });
    const paused = await stack.call('GET', `/batch_exports/${id}/`);
    expect(paused.body).toMatchObject({ paused: true, last_paused_at: expect.any(String) });
    expect((await stack.call('POST', `/batch_exports/${id}/pause/`)).status).toBe(200);
    expect((await stack.call('GET', `/batch_exports/${id}/`)).body).toEqual(paused.body);

    // One interval ended before the pause, the next contains it. Both have ended when the schedule advances.
    const first = await makeMinutesDue(stack, id, 2);
    const minuteLater = (minutes: number) => new Date(first.getTime() + minutes * 60_000).toISOString();
    await stack.pool.query(
      `update exportd.stream_states set state = jsonb_set(state, '{paused_recorded_at}', to_jsonb($2::text))
       where stream_id = $1`,
      [id, minuteLater(1.5)],
    );
    const renamed = await stack.call('PATCH', `/batch_exports/${id}/`, { name: 'Due' });
    expect(renamed.status).toBe(200);
    expect(await stack.runs(id)).toEqual([]);

    expect((await stack.call('POST', `/batch_exports/${id}/unpause/`)).status).toBe(200);
    expect((await stack.call('GET', `/batch_exports/${id}/`)).body.paused).toBe(false);
    await waitFor(
      async () => (await stack.runs(id)).some(({ status }) => status === 'Completed'),
      'a run is Completed',
    );
    const runs = await stack.runs(id);
    expect(new Set(runs.map(({ backfill_id }) => backfill_id))).toEqual(new Set([null]));
    const starts = runs.map(({ data_interval_start }) => new Date(data_interval_start).toISOString());
    expect([starts.includes(minuteLater(0)), starts.includes(minuteLater(1))]).toEqual([true, false]);
  });

  it('is not found after DELETE, and its objects stay', async () => {
    const id = await stack.createExport({}, { prefix: 'deleted' });
    await runBackfill(id, 3, 2);
    const response = await stack.call('DELETE', `/batch_exports/${id}/`);
    expect([response.status, response.text]).toEqual([204, '']);
    expect((await stack.call('GET', `/batch_exports/${id}/`)).status).toBe(404);
    expect((await stack.call('POST', `/batch_exports/${id}/pause/`)).status).toBe(404);
    expect((await keysUnder(stack.bucket, 'deleted/')).length).toBeGreaterThan(1);
  });
});
