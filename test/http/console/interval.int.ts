import { recordIntervalCheck } from '../../../src/projections/interval_checks.ts';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { endRun } from '../../../src/decisions/run_outcomes.ts';
import { quickPolicies } from '../../decisions/commander.ts';
import { minuteAgo } from '../../setup/minutes.ts';
import { useTestBucket } from '../../setup/use_test_bucket.ts';
import { configOf } from '../../destination/bucket_requests.ts';
import { openApiHarness, plantedSecrets, type ApiHarness, type ApiResponse } from '../api_harness.ts';
import { completeRun } from './complete_run.ts';

let api: ApiHarness;
const bucket = useTestBucket();
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true', EXPORTD_S3_RETRY_BUDGET: '1s' });
});
beforeEach(() => {
  api.mode = 'decide';
});
afterAll(() => api.close());

const start = minuteAgo(1).toISOString();
const end = minuteAgo(0).toISOString();

const pathOf = (id: string, rest = '') => `batch_exports/${id}/intervals/${encodeURIComponent(start)}${rest}`;

/** A paused export with an active run of the last minute. */
async function createRun(): Promise<{ id: string; run: string }> {
  const destination = { type: 'S3', config: configOf(bucket, { prefix: randomUUID() }) };
  const id = await api.createExport({ destination, end_at: end });
  await api.call('POST', `batch_exports/${id}/pause`);
  await api.call('POST', `batch_exports/${id}/backfill`, { start_at: start, end_at: end });
  return { id, run: await newestRun(id) };
}

async function newestRun(id: string): Promise<string> {
  const { body } = await api.call('GET', `batch_exports/${id}/runs/?limit=1`);
  return (body.results as { id: string }[])[0]?.id ?? '';
}

async function retry(id: string, run: string): Promise<string> {
  await api.call('POST', `batch_exports/${id}/runs/${run}/retry`);
  return newestRun(id);
}

describe('an interval', () => {
  it('has its current manifest, which the journal makes again', async () => {
    const { id, run } = await createRun();
    await completeRun(api.journal, run, { files: [{ rows: 3 }, { rows: 2 }] });
    const { body, text } = await api.call('GET', pathOf(id));
    expect(body).toMatchObject({
      interval: { status: 'exported', run_id: run, generation: 1, rows: 5 },
      runs: [{ id: run, status: 'Completed' }],
      generations: [{ generation: 1, is_current: true, rows: 5, files: 2, difference: null }],
      files: [
        { key: `${run}/1/0`, rows: 3 },
        { key: `${run}/1/1`, rows: 2 },
      ],
      manifest: {
        bucket: bucket.bucket,
        key: `_manifests/${run}.json`,
        body: { version: 1, run_id: run, rows: 5, files: [{ rows: 3 }, { rows: 2 }] },
      },
      fingerprints: { is_equal: true, buckets: [{ start, source_rows: 5, bucket_rows: 5, is_equal: true }] },
    });
    for (const secret of Object.values(plantedSecrets)) expect(text).not.toContain(secret);
  });

  it('says what differs between its generations', async () => {
    const { id, run } = await createRun();
    await completeRun(api.journal, run, { rows: 3 });
    await api.call('PATCH', `batch_exports/${id}`, {
      destination: { type: 'S3', config: { file_format: 'Parquet', compression: 'zstd' } },
    });
    const second = await retry(id, run);
    await completeRun(api.journal, second, { rows: 7 });
    const { body } = await api.call('GET', pathOf(id));
    expect(body.generations).toMatchObject([
      {
        generation: 2,
        is_current: true,
        difference: {
          rows: 4,
          bytes: 120,
          files: 0,
          buckets: [{ start, before: 3, after: 7 }],
          fields: expect.arrayContaining([
            expect.objectContaining({ field: 'destination.config.file_format', after: 'Parquet' }),
          ]),
        },
      },
      { generation: 1, is_current: false, run: { id: run }, difference: null },
    ]);
  });

  it('shows in its fingerprints where the source has other rows', async () => {
    const { id, run } = await createRun();
    await completeRun(api.journal, run, { rows: 3, sourceRows: 4 });
    const { body } = await api.call('GET', pathOf(id));
    expect(body.fingerprints).toMatchObject({
      is_equal: false,
      source: { rows: 4 },
      bucket: { rows: 3 },
      buckets: [{ is_equal: false, source_rows: 4, bucket_rows: 3 }],
    });
  });

  it('is compared for the first time when the delay of the first comparison is over', async () => {
    const { id, run } = await createRun();
    await completeRun(api.journal, run, { rows: 3 });
    const { rows } = await api.database.pool.query<{ first: string; later: string }>(
      `select next_due_at + interval '1 hour' as first, next_due_at as later from exportd.interval_comparisons
       where run_id = $1`,
      [run],
    );
    const next = async () => (await api.call('GET', pathOf(id))).body.next_comparison_at;
    expect(await next()).toBe(new Date(rows[0]?.first ?? '').toISOString());
    await api.database.pool.query(
      'update exportd.interval_comparisons set comparisons = 1 where run_id = $1',
      [run],
    );
    expect(await next()).toBe(new Date(rows[0]?.later ?? '').toISOString());
  });

  it('says which comparison is the newest, whatever has made it', async () => {
    const { id, run } = await createRun();
    await completeRun(api.journal, run, { rows: 3 });
    const newest = async () => (await api.call('GET', pathOf(id))).body.newest_check;
    expect(await newest()).toMatchObject({ kind: 'export', is_equal: true });
    await api.database.pool.query(
      `update exportd.interval_comparisons set outcome = 'rows_missing', last_compared_at = clock_timestamp(),
         added_rows = 0, missing_rows = 2, source_rows = 1 where run_id = $1`,
      [run],
    );
    expect(await newest()).toMatchObject({
      kind: 'comparison',
      is_equal: false,
      summary:
        'The files and the source differ: at least 0 rows are only in the source and 2 rows only in the files',
    });
    await recordIntervalCheck(api.database.pool, {
      batch_export_id: id,
      start,
      end,
      checked_by: 'verification',
      checked_at: new Date().toISOString(),
      difference: '46 unexpected',
      findings: {},
    });
    expect(await newest()).toMatchObject({
      kind: 'verification',
      is_equal: false,
      summary: 'The files and the source differ: 46 unexpected',
    });
    const again = await retry(id, run);
    await completeRun(api.journal, again, { rows: 1 });
    expect(await newest()).toMatchObject({ kind: 'export', is_equal: true });
  });

  it('has no manifest before a run has completed', async () => {
    const { id, run } = await createRun();
    const policies = quickPolicies();
    await endRun(api.journal, policies, run, { status: 'Failed', latest_error: 'Test: it failed.' });
    const { body } = await api.call('GET', pathOf(id));
    expect(body).toMatchObject({
      interval: { status: 'gap', latest_error: 'Test: it failed.' },
      manifest: null,
      fingerprints: null,
      files: [],
      generations: [],
    });
  });

  it('is 404 where the export has none', async () => {
    const { id } = await createRun();
    const never = encodeURIComponent('2020-01-01T00:00:00.000Z');
    expect((await api.call('GET', `batch_exports/${id}/intervals/${never}`)).status).toBe(404);
    expect((await api.call('GET', `batch_exports/${id}/intervals/yesterday`)).status).toBe(404);
  });
});

describe('the location of a row', () => {
  /** Inserts an event of the last minute, `seconds` after its start. */
  async function insertEvent(uuid: string, seconds: number): Promise<void> {
    await api.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       values ($1, $2, 'click', 'ada', '{}', $3, $3)`,
      [api.projectId, uuid, new Date(Date.parse(start) + seconds * 1_000).toISOString()],
    );
  }
  const keyAt = (seconds: number, id: string) => ({
    inserted_at: new Date(Date.parse(start) + seconds * 1_000).toISOString().replace('Z', '000Z'),
    id,
  });
  const locate = async (id: string, uuid: string) =>
    (await api.call('GET', pathOf(id, `/row?uuid=${uuid}`))).body;

  it('is the file whose keys contain it', async () => {
    const { id, run } = await createRun();
    const [early, middle, late, gone] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    await insertEvent(early, 1);
    await insertEvent(middle, 20);
    await insertEvent(late, 50);
    expect(await locate(id, early)).toMatchObject({ location: 'not_exported', file: null });
    await completeRun(api.journal, run, {
      files: [
        { rows: 1, first: keyAt(1, early), last: keyAt(1, early) },
        { rows: 2, first: keyAt(10, early), last: keyAt(30, late) },
      ],
    });
    expect(await locate(id, early)).toMatchObject({ location: 'file', file: { key: `${run}/1/0` } });
    expect(await locate(id, middle.toUpperCase())).toMatchObject({
      location: 'file',
      inserted_at: keyAt(20, middle).inserted_at,
      file: { key: `${run}/1/1` },
    });
    expect(await locate(id, late)).toMatchObject({ location: 'not_in_manifest', file: null });
    expect(await locate(id, gone)).toMatchObject({ location: 'not_in_source', file: null });
  });

  it('fails with the control database, not with the source', async () => {
    const { pool } = api.database;
    const { id, run } = await createRun();
    const uuid = randomUUID();
    await insertEvent(uuid, 5);
    await completeRun(api.journal, run, {
      files: [{ rows: 1, first: keyAt(5, uuid), last: keyAt(5, uuid) }],
    });
    await pool.query('alter table exportd.destination_objects rename to moved');
    const { status, body } = await api.call('GET', pathOf(id, `/row?uuid=${uuid}`));
    await pool.query('alter table exportd.moved rename to destination_objects');
    expect([status, body.code]).toEqual([500, 'error']);
  });

  it('needs a uuid', async () => {
    const { id } = await createRun();
    const { status, body } = await api.call('GET', pathOf(id, '/row?uuid=ada'));
    expect([status, body.attr]).toEqual([400, 'uuid']);
  });
});

describe('the verification of an interval', () => {
  const request = (
    id: string,
    body: object = {},
    headers: Record<string, string> = {},
  ): Promise<ApiResponse> => api.call('POST', pathOf(id, '/verifications'), body, headers);

  it('reads the bucket and stores its report', async () => {
    const { id, run } = await createRun();
    await completeRun(api.journal, run, { rows: 3 });
    const { status, body } = await request(id, { deep: true });
    expect([status, body.status, body.deep]).toEqual([202, 'completed', true]);
    // No file was written, and the interval has ended just now.
    expect(body.report).toMatchObject({
      ok: true,
      files: 0,
      notes: [expect.stringContaining('Not exported yet')],
    });
    const listed = await api.call('GET', pathOf(id, '/verifications'));
    expect(listed.body).toEqual({ results: [body] });
  });

  it('is deleted with its export', async () => {
    const { id, run } = await createRun();
    await completeRun(api.journal, run, { rows: 3 });
    expect((await request(id)).status).toBe(202);
    expect((await api.call('DELETE', `batch_exports/${id}`)).status).toBe(204);
    const { rowCount } = await api.database.pool.query('select from exportd.jobs where target = $1', [id]);
    expect(rowCount).toBe(0);
  });

  it('starts nothing while Temporal cannot be reached, and one at a time', async () => {
    const { id } = await createRun();
    api.mode = 'unreachable';
    expect((await request(id)).body).toMatchObject({ code: 'temporal_unreachable' });
    api.mode = 'silent';
    expect((await request(id)).body).toMatchObject({ status: 'pending', report: null });
    const refused = await request(id);
    expect([refused.status, refused.body.code]).toEqual([429, 'too_many_verifications']);
  });

  it('needs the scope batch_export:write', async () => {
    const { id } = await createRun();
    const { key } = await api.newKey(api.projectId, ['batch_export:read']);
    expect((await request(id, {}, { authorization: `Bearer ${key}` })).status).toBe(403);
  });
});
