import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createClient, ExportdError } from '../../src/client/client.ts';
import { readSettings } from '../../src/config/settings.ts';
import { roleCheckJob } from '../../src/destination/role_check_job.ts';
import { requestJob } from '../../src/jobs/jobs.ts';
import { exportd } from '../cli/command_line.ts';
import { configOf } from '../destination/bucket_requests.ts';
import { completeRun } from './console/complete_run.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { waitFor } from '../setup/wait_for.ts';
import { type ApiHarness, type ApiResponse, openApiHarness } from './api_harness.ts';

let api: ApiHarness;
let url: string;
/** An export with a table. */
let id: string;
const bucket = useTestBucket();
beforeAll(async () => {
  api = await openApiHarness({
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_JOB_WAIT_TIMEOUT: '0s',
    EXPORTD_TABLE_READ_TIMEOUT: '30s',
  });
  url = await api.listen();
  id = await createTable();
});
beforeEach(() => {
  api.mode = 'deferred';
});
/** Does what a test has left, so that the next one reaches no limit. */
afterEach(async () => {
  for (const job of await unfinishedJobs()) await api.doJob(job);
});
afterAll(() => api.close());

const unfinishedJobs = async (): Promise<string[]> =>
  (
    await api.database.pool.query<{ id: string }>(
      `select id from exportd.jobs where finished_at is null and kind <> 'role_check'`,
    )
  ).rows.map((row) => row.id);

const createTable = (more: object = {}): Promise<string> => {
  api.mode = 'decide';
  const destination = {
    type: 'S3',
    config: configOf(bucket, {
      prefix: randomUUID(),
      file_format: 'Parquet',
      compression: 'zstd',
      table_format: 'delta',
      ...more,
    }),
  };
  return api.createExport({ destination });
};

const table = (method: 'GET' | 'POST', path = '', exportId = id): Promise<ApiResponse> =>
  api.call(method, `batch_exports/${exportId}/table/${path}`, method === 'POST' ? {} : undefined);

/** Starts what takes longer than its request. @returns its job */
async function start(...request: Parameters<typeof table>): Promise<string> {
  const { status, body } = await table(...request);
  expect([status, body.status]).toEqual([202, 'pending']);
  return String(body.id);
}

const read = (job: string, authorization = `Bearer ${api.key}`): Promise<ApiResponse> =>
  api.call('GET', `jobs/${job}/`, undefined, { authorization });

describe('a request whose job takes longer than the server waits', () => {
  it.each([
    ['GET', 'history/?limit=1', 'table_history', { next_before: null, results: [] }],
    ['POST', 'check/', 'table_check', { ok: true, version: null, findings: [] }],
    ['POST', 'repair/', 'table_repair', { version: null, files_added: 0, files_removed: 0 }],
  ] as const)('is answered with the job: %s table/%s', async (method, path, kind, result) => {
    const { status, headers, body } = await table(method, path);
    const pending = {
      id: expect.any(String),
      kind,
      status: 'pending',
      result: null,
      error: null,
      created_at: expect.any(String),
      finished_at: null,
    };
    expect([status, body]).toEqual([202, pending]);
    const job = String(body.id);
    const location = String(headers.location);
    expect(location).toMatch(new RegExp(`^http://.+/api/environments/${api.projectId}/jobs/${job}/$`));
    const poll = () => api.call('GET', new URL(location).pathname);
    expect(await poll()).toMatchObject({ status: 200, body });
    await api.doJob(job);
    const ended = (await poll()).body;
    expect(ended).toMatchObject({
      ...pending,
      status: 'completed',
      result,
      finished_at: expect.any(String),
    });
    // It can be read again.
    expect((await poll()).body).toEqual(ended);
    api.mode = 'decide';
    const inTime = await table(method, path);
    expect([inTime.status, inTime.body]).toEqual([200, ended.result]);
  });

  it('is answered with a job that says why it failed', async () => {
    const job = await start('GET');
    await api.doJob(job);
    api.mode = 'decide';
    const inTime = await table('GET');
    expect([inTime.status, inTime.body.detail]).toEqual([409, expect.stringContaining('There is no table')]);
    expect((await read(job)).body).toMatchObject({
      kind: 'table_description',
      status: 'failed',
      result: null,
      error: inTime.body.detail,
    });
  });

  it('is answered with the job of a test', async () => {
    const body = { destination: { type: 'S3', config: configOf(bucket) } };
    const tested = await api.call('POST', 'batch_exports/test/', body);
    expect([tested.status, tested.body.kind]).toEqual([202, 'destination_test']);
    await api.doJob(String(tested.body.id));
    const { result } = (await read(String(tested.body.id))).body;
    api.mode = 'decide';
    expect(result).toEqual({
      steps: expect.arrayContaining([expect.objectContaining({ name: 'read back' })]),
    });
    api.mode = 'deferred';
    const step = await api.call('POST', 'batch_exports/run_test_step_new/', { ...body, step: 1 });
    expect([step.status, step.body.kind]).toEqual([202, 'destination_test']);
    await api.doJob(String(step.body.id));
    expect((await read(String(step.body.id))).body.result).toMatchObject({
      name: 'write',
      result: { status: 'Passed' },
    });
    const webhook = await api.call('POST', 'webhooks/', { url: 'http://127.0.0.1:9/hook' });
    api.mode = 'deferred';
    const sent = await api.call('POST', `webhooks/${String(webhook.body.id)}/test/`, {});
    expect([sent.status, sent.body.kind]).toEqual([202, 'webhook_test']);
    await api.doJob(String(sent.body.id));
    expect((await read(String(sent.body.id))).body).toMatchObject({
      status: 'completed',
      result: { delivered: false, status: null },
    });
  });

  it('leaves a job that no worker does in time, and lets a check take longer', async () => {
    const hasty = await openApiHarness({
      EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
      EXPORTD_JOB_WAIT_TIMEOUT: '0s',
      EXPORTD_TABLE_READ_TIMEOUT: '1ms',
    });
    const config = configOf(bucket, { file_format: 'Parquet', compression: 'zstd', table_format: 'delta' });
    const exportId = await hasty.createExport({ destination: { type: 'S3', config } });
    hasty.mode = 'deferred';
    const { body } = await hasty.call('GET', `batch_exports/${exportId}/table/`);
    const job = await waitFor(async () => {
      const found = await hasty.call('GET', `jobs/${String(body.id)}/`);
      return found.body.status !== 'pending' && found;
    }, 'its time is over');
    hasty.mode = 'decide';
    const check = await hasty.call('POST', `batch_exports/${exportId}/table/check/`, {});
    await hasty.close();
    expect([check.status, check.body.ok]).toEqual([200, true]);
    expect([job.status, job.body.status, job.body.error]).toEqual([
      200,
      'failed',
      'No worker has finished it in time. Check that the workers run.',
    ]);
  });

  it('withdraws its job when its client disconnects before, unless it repairs', async () => {
    const slow = await openApiHarness({
      EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
      EXPORTD_JOB_WAIT_TIMEOUT: '10m',
    });
    const config = configOf(bucket, { file_format: 'Parquet', compression: 'zstd', table_format: 'delta' });
    const exportId = await slow.createExport({ destination: { type: 'S3', config } });
    slow.mode = 'deferred';
    const slowUrl = await slow.listen();
    const requestAndLeave = async (operation: string): Promise<string> => {
      const client = new AbortController();
      const path = `/api/projects/${slow.projectId}/batch_exports/${exportId}/table/${operation}/`;
      const request = fetch(slowUrl + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${slow.key}` },
        signal: client.signal,
      });
      const job = await waitFor(async () => {
        const { rows } = await slow.database.pool.query<{ id: string }>(
          'select id from exportd.jobs where kind = $1',
          [`table_${operation}`],
        );
        return rows[0]?.id;
      }, 'the job is stored');
      client.abort();
      await expect(request).rejects.toThrow();
      return job;
    };
    const [repair, check] = [await requestAndLeave('repair'), await requestAndLeave('check')];
    const statusOf = async (job: string) => (await slow.call('GET', `jobs/${job}/`)).status;
    await waitFor(async () => (await statusOf(check)) === 404, 'the check is withdrawn');
    expect(await statusOf(repair)).toBe(200);
    await slow.close();
  });
});

/**
 * An export with a published interval. Its rows are not comparable one by one: those of persons, or of events whose file is gone.
 * The source lacks the three events.
 */
async function publishInterval(
  model: 'events' | 'persons' = 'persons',
): Promise<{ id: string; path: string }> {
  api.mode = 'decide';
  const destination = { type: 'S3', config: configOf(bucket, { prefix: randomUUID() }) };
  const exportId = await api.createExport({ model, destination });
  const range = { start_at: '2026-11-01T10:00:00Z', end_at: '2026-11-01T10:01:00Z' };
  await api.call('POST', `batch_exports/${exportId}/backfill/`, range);
  const { body } = await api.call('GET', `batch_exports/${exportId}/runs/`);
  const [run] = body.results as { id: string }[];
  const key = { inserted_at: '2026-11-01T10:00:00.000000Z', id: randomUUID() };
  await completeRun(api.journal, run?.id ?? '', { files: [{ rows: 3, first: key, last: key }] });
  api.mode = 'deferred';
  return { id: exportId, path: `batch_exports/${exportId}/intervals/2026-11-01T10:00:00Z/difference/` };
}

describe('the difference of an interval', () => {
  it('is a job that equal requests join', async () => {
    const { path } = await publishInterval();
    const { status, headers, body } = await api.call('GET', path);
    expect([status, body.kind, body.status]).toEqual([202, 'difference', 'pending']);
    const job = String(body.id);
    expect(String(headers.location)).toMatch(new RegExp(`/jobs/${job}/$`));
    expect((await api.call('GET', path)).body.id).toBe(job);
    await api.doJob(job);
    const expected = {
      data_interval_start: '2026-11-01T10:00:00.000Z',
      data_interval_end: '2026-11-01T10:01:00.000Z',
      missing_rows: 0,
      is_exact: false,
      rows: [],
      last_inserted_at: null,
      decision: null,
    };
    expect((await read(job)).body).toMatchObject({ status: 'completed', result: expected });

    api.mode = 'decide';
    const inTime = await api.call('GET', path);
    expect([inTime.status, inTime.body]).toEqual([200, expected]);
    // Each answer stays, and another request compares again.
    expect((await read(job)).status).toBe(200);
  });
});

describe('the decision about the difference of an interval', () => {
  it('is a job that decides once, when the rows were compared', async () => {
    const { id: exportId, path } = await publishInterval('events');
    const keep = { decision: 'keep', reason: 'ticket 7' };
    const decide = async (body: object): Promise<string> => {
      api.mode = 'deferred';
      const { status, headers, body: job } = await api.call('POST', path, body);
      expect([status, job.kind, job.status]).toEqual([202, 'difference_decision', 'pending']);
      expect(String(headers.location)).toMatch(new RegExp(`/jobs/${String(job.id)}/$`));
      return String(job.id);
    };
    const decided = async (): Promise<unknown> => {
      const { body } = await api.call('GET', `batch_exports/${exportId}/intervals/?limit=1000`);
      return (body.results as { data_interval_start: string; decision: unknown }[]).find(
        (interval) => interval.data_interval_start === '2026-11-01T10:00:00.000Z',
      )?.decision;
    };
    const job = await decide(keep);
    expect(await decided()).toBeNull();
    await api.doJob(job);
    const decision = { ...keep, rows: 3, by: 'ada@example.com', at: expect.any(String) };
    const first = (await read(job)).body;
    expect(first).toMatchObject({ status: 'completed', result: { decision } });
    // Another attempt, of a worker that was presumed dead.
    await api.doJob(job);
    expect((await read(job)).body).toEqual(first);

    const again = await decide(keep);
    await api.doJob(again);
    expect((await read(again)).body).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('already kept'),
    });
    api.mode = 'decide';
    const wrong = await api.call('POST', path, { decision: 'remove', rows: 2, reason: 'ticket 8' });
    expect([wrong.status, wrong.body.code, wrong.body.detail]).toEqual([
      409,
      'conflict',
      'The source lacks 3 rows of the files now, not 2. Read the difference again.',
    ]);
    const removed = await api.call('POST', path, { decision: 'remove', rows: 3, reason: 'ticket 8' });
    expect([removed.status, removed.body.decision]).toEqual([
      200,
      { decision: 'remove', reason: 'ticket 8', rows: 3, by: 'ada@example.com', at: expect.any(String) },
    ]);
    const runs = await api.call('GET', `batch_exports/${exportId}/runs/`);
    expect(runs.body.results).toHaveLength(2);
  });
});

describe('a verification', () => {
  it('names its job, whose result is the report', async () => {
    api.mode = 'decide';
    const exportId = await createTable();
    const range = { start_at: '2026-11-01T10:00:00Z', end_at: '2026-11-01T10:01:00Z' };
    await api.call('POST', `batch_exports/${exportId}/backfills/`, range);
    const path = `batch_exports/${exportId}/intervals/2026-11-01T10:00:00Z/verifications/`;
    api.mode = 'deferred';
    const { status, headers, body } = await api.call('POST', path, {});
    expect([status, body.status, body.deep]).toEqual([202, 'pending', false]);
    expect(String(headers.location)).toMatch(new RegExp(`/jobs/${String(body.id)}/$`));
    await api.doJob(String(body.id));
    const [listed] = (await api.call('GET', path)).body.results as Record<string, unknown>[];
    const { status: ended, result, error } = (await read(String(body.id))).body;
    expect({ status: ended, report: result, error }).toEqual({
      status: listed?.status,
      report: listed?.report,
      error: listed?.error,
    });
  });
});

describe('a job', () => {
  it('is read with the scope that starts it, in its project alone', async () => {
    const [check, description] = [await start('POST', 'check/'), await start('GET')];
    const keyWith = async (scope: string, project = api.projectId) =>
      `Bearer ${(await api.newKey(project, [scope])).key}`;
    const [reader, writer, none] = [
      await keyWith('batch_export:read'),
      await keyWith('batch_export:write'),
      await keyWith('query:read'),
    ];
    const statuses = async (key: string) => [
      (await read(check, key)).status,
      (await read(description, key)).status,
    ];
    expect(await statuses(reader)).toEqual([403, 200]);
    expect(await statuses(writer)).toEqual([200, 403]);
    expect(await statuses(none)).toEqual([403, 403]);
    const other = `Bearer ${(await api.newKey(api.otherProjectId)).key}`;
    for (const project of [api.projectId, api.otherProjectId])
      expect(
        (
          await api.call('GET', `/api/projects/${project}/jobs/${check}/`, undefined, {
            authorization: other,
          })
        ).status,
      ).toBe(404);
  });

  it.each(['x', '1', "'", '%20', '..%2f..', `${randomUUID()}x`, 'x'.repeat(5_000), randomUUID()])(
    'is not found by the id %s',
    async (nonsense) => {
      const { status, body } = await read(nonsense);
      expect([status, body.code]).toEqual([404, 'not_found']);
    },
  );

  it('is found by its id in capitals, and only read', async () => {
    const job = await start('POST', 'check/');
    expect((await read(job.toUpperCase())).body.id).toBe(job);
    for (const method of ['POST', 'PATCH', 'DELETE'] as const)
      expect((await api.call(method, `jobs/${job}/`)).status).toBe(405);
  });

  it('is not found when it is the check of a role, which no request returns', async () => {
    const settings = readSettings({ DATABASE_URL: api.database.url });
    const job = await requestJob({ pool: api.database.pool, settings }, roleCheckJob, {
      team_id: api.projectId,
      user_id: api.userId,
      target: randomUUID(),
      parameters: { destination_type: 'S3', config: {} },
    });
    expect((await read(String(job))).status).toBe(404);
  });

  it('is not found once its export is deleted', async () => {
    const exportId = await createTable();
    api.mode = 'deferred';
    const job = await start('POST', 'check/', exportId);
    api.mode = 'decide';
    expect((await api.call('DELETE', `batch_exports/${exportId}/`)).status).toBe(204);
    expect((await read(job)).status).toBe(404);
  });
});

describe('a client', () => {
  /** How often jobs were read. */
  const reads = async (): Promise<number> =>
    [
      ...(await api.metrics()).matchAll(
        /^exportd_http_request_duration_seconds_count\{.*jobs\/:id.* (\d+)$/gm,
      ),
    ]
      .map(([, count]) => Number(count))
      .reduce((sum, count) => sum + count, 0);

  /** Does a job once something has polled it. */
  async function whileJobsAreDone<Result>(request: () => Promise<Result>): Promise<Result> {
    const before = await reads();
    const waiting = request();
    await waitFor(async () => (await reads()) > before, 'the job is polled');
    for (const job of await unfinishedJobs()) await api.doJob(job);
    return waiting;
  }

  it.each(['', '/'])('waits for the job, below a URL with the end "%s"', async (ending) => {
    const client = createClient({ baseUrl: url + ending, key: api.key, project: api.projectId });
    const path = { batch_export_id: id };
    const check = await whileJobsAreDone(() =>
      client.post('/batch_exports/{batch_export_id}/table/check', { path }),
    );
    expect(check).toMatchObject({ ok: true, findings: [] });
    const failure = await whileJobsAreDone(() =>
      client
        .request('GET', `/api/environments/${api.projectId}/batch_exports/${id}/table/`)
        .catch((error: unknown) => error),
    );
    expect(failure).toBeInstanceOf(ExportdError);
    expect(failure).toMatchObject({
      code: 'job_failed',
      message: expect.stringContaining('There is no table at s3://'),
    });
  });

  it('waits for the job on the command line', async () => {
    const run = (...args: readonly string[]) =>
      exportd({ EXPORTD_BASE_URL: url, EXPORTD_API_KEY: api.key }, 'table', ...args);
    expect(await whileJobsAreDone(() => run('check', id))).toEqual({
      code: 0,
      stdout: 'Version unknown, 0 manifests, 0 files: no findings.\n',
      stderr: '',
    });
    const { id: exportId } = await publishInterval();
    const difference = await whileJobsAreDone(() =>
      exportd(
        { EXPORTD_BASE_URL: url, EXPORTD_API_KEY: api.key },
        'export',
        'difference',
        exportId,
        '2026-11-01T10:00:00Z',
      ),
    );
    expect([difference.code, difference.stdout]).toEqual([
      0,
      expect.stringContaining('at least 0 rows that the source lacks'),
    ]);
    const { id: keptId } = await publishInterval('events');
    const kept = await whileJobsAreDone(() =>
      exportd(
        { EXPORTD_BASE_URL: url, EXPORTD_API_KEY: api.key },
        'export',
        'difference',
        keptId,
        '2026-11-01T10:00:00Z',
        '--keep',
        '--reason',
        'ticket 7',
      ),
    );
    expect(kept).toEqual({ code: 0, stdout: 'Kept.\n', stderr: '' });
    const described = await whileJobsAreDone(() => run('describe', id));
    expect([described.code, described.stderr]).toEqual([
      1,
      expect.stringContaining('There is no table at s3://'),
    ]);
  });
});
