import { ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createBucket } from '../setup/bucket.ts';
import { waitFor } from '../setup/wait_for.ts';
import { insertLargeEvents } from './large_events.ts';
import { blockRequests, type RequestGate } from './request_gate.ts';
import { keysUnder, readObject } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { isWrite, type S3OperationName } from './s3_operation.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from './s3_proxy.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';
import { readEvents } from '../journal/read_stream.ts';
import { readRun } from '../decisions/read_runs.ts';

const rows = 1_950;
/** An hour with so many rows that most are not read yet when the first part is complete and its upload is created. */
const largeHour = 6;
let stack: Stack;
let proxy: S3Proxy;
/** By prefix, the number of requests when the cancellation of its run was confirmed. */
const requestsAtResponse = new Map<string, number>();

beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  // Longer than a cancellation may take, so that no timeout helps it.
  const settings = {
    EXPORTD_HEARTBEAT_TIMEOUT: '20s',
    EXPORTD_WORKFLOW_TASK_TIMEOUT: '10s',
    EXPORTD_SOURCE_PAGE_SIZE: '4000000B',
    EXPORTD_COMMAND_TIMEOUT: '15s',
  };
  stack = await startStack('cancel', settings, { bucket: { ...bucket, endpoint: proxy.endpoint } });
  for (const hour of [3, 4]) await insertLargeEvents(stack, hourAgo(hour), rows);
  await insertLargeEvents(stack, hourAgo(largeHour), 3 * rows);
});
afterAll(async () => {
  await stack.stop();
  await proxy.close();
});

/** Backfills hours of a new export. */
async function startBackfill(
  prefix: string,
  from: number,
  to: number,
): Promise<{ id: string; backfillId: string; runs: RunResponse[] }> {
  const id = await stack.createExport({}, { prefix, compression: null });
  const { headers } = await stack.call('POST', `/batch_exports/${id}/backfill/`, {
    start_at: hourAgo(from).toISOString(),
    end_at: hourAgo(to).toISOString(),
  });
  const backfillId = headers.get('location')?.split('/').at(-2) ?? '';
  return { id, backfillId, runs: await stack.runs(id) };
}

const blockOperation = (
  prefix: string,
  when: 'before' | 'during' | 'after',
  operation: S3OperationName,
  extraCondition: (request: ProxiedRequest) => boolean = () => true,
): RequestGate =>
  blockRequests(proxy, `${operation} below ${prefix}`, {
    when,
    matches: (request) =>
      request.operation === operation && request.key.startsWith(`${prefix}/`) && extraCondition(request),
  });

/** Blocks during a part, so that the parts before and after it are pending too. */
const blockPart = (prefix: string): RequestGate =>
  blockOperation(prefix, 'during', 'UploadPart', ({ received }) => received > 1024 * 1024);

const writesBelow = (prefix: string, since = 0): ProxiedRequest[] =>
  proxy.requests.slice(since).filter((request) => isWrite(request) && request.key.startsWith(`${prefix}/`));

/** Statements of exportd that are reading rows now. */
async function runningCopyStatements(): Promise<string[]> {
  const { rows: statements } = await stack.pool.query<{ query: string }>(
    `select query from pg_stat_activity where datname = current_database() and application_name = 'exportd'
       and backend_type = 'client backend' and state = 'active' and query like 'copy %'`,
  );
  return statements.map(({ query }) => query);
}

/** Checks right after the response; the last test checks for later writes. */
async function expectNothingLeft(prefix: string, gate?: RequestGate): Promise<void> {
  requestsAtResponse.set(prefix, proxy.requests.length);
  expect(await runningCopyStatements()).toEqual([]);
  await expectNoObject(prefix);
  // Data of a part that is still in the network may arrive.
  gate?.open();
  await waitFor(
    () => writesBelow(prefix).every(({ ended }) => ended),
    'the requests below the prefix have ended',
  );
  await expectNoObject(prefix);
}

async function expectNoObject(prefix: string): Promise<void> {
  const { Uploads = [] } = await stack.bucket.client.send(
    new ListMultipartUploadsCommand({ Bucket: stack.bucket.bucket, Prefix: `${prefix}/` }),
  );
  expect([Uploads, await keysUnder(stack.bucket, `${prefix}/`)]).toEqual([[], []]);
}

/** The status of a run in the journal's read model, also of a deleted export. */
async function statusOf(runId = ''): Promise<string> {
  return (await readRun(stack.pool, runId)).status;
}

describe('after the response to a cancellation, nothing of the run continues:', () => {
  it('while parts are sent', async () => {
    const gate = blockPart('parts');
    const { id, runs } = await startBackfill('parts', 3, 2);
    await gate.reached();
    const { status, body } = await stack.call('POST', `/batch_exports/${id}/runs/${runs[0]?.id}/cancel/`);
    expect([status, body.status]).toEqual([200, 'Cancelled']);
    await expectNothingLeft('parts', gate);
  });

  it('while an upload is created', async () => {
    const gate = blockOperation('created', 'after', 'CreateMultipartUpload');
    const { id, runs } = await startBackfill('created', 3, 2);
    await gate.reached();
    const { status } = await stack.call('POST', `/batch_exports/${id}/runs/${runs[0]?.id}/cancel/`);
    expect(status).toBe(200);
    await expectNothingLeft('created', gate);
  });

  it('while a statement reads rows', async () => {
    const gate = blockOperation('statement', 'before', 'CreateMultipartUpload');
    const { id, runs } = await startBackfill('statement', largeHour, largeHour - 1);
    await gate.reached();
    const lockHolder = new pg.Client({ connectionString: stack.databaseUrl, application_name: 'a test' });
    await lockHolder.connect();
    try {
      await lockHolder.query('begin; lock table events in access exclusive mode');
      gate.open();
      await waitFor(async () => (await runningCopyStatements()).length > 0, 'a statement waits for the lock');
      // A worker that is cancelled before the response does not know the upload, which the clean-up then aborts.
      await waitFor(async () => {
        const created = await readEvents(stack.pool, runs[0]?.id ?? '', 'RunUploadCreated');
        return created.length === 1;
      }, 'the upload is recorded');
      const { status } = await stack.call('POST', `/batch_exports/${id}/runs/${runs[0]?.id}/cancel/`);
      expect(status).toBe(200);
      await expectNothingLeft('statement');
    } finally {
      // The tests after this one read the same table.
      await lockHolder.end();
    }
  });

  it('of the runs of a backfill', async () => {
    const gate = blockPart('backfill');
    const { id, backfillId, runs } = await startBackfill('backfill', 4, 2);
    expect(runs).toHaveLength(2);
    await waitFor(() => new Set(gate.waiting.map(({ key }) => key)).size === 2, 'both runs send parts');
    const { status, body } = await stack.call('POST', `/batch_exports/${id}/backfills/${backfillId}/cancel/`);
    expect([status, body.status]).toEqual([200, 'Cancelled']);
    await expectNothingLeft('backfill', gate);
    expect((await stack.runs(id)).map((run) => run.status)).toEqual(['Cancelled', 'Cancelled']);
  });

  it('of the runs of an export that is deleted', async () => {
    const gate = blockPart('deleted');
    const { id } = await startBackfill('deleted', 3, 2);
    await gate.reached();
    expect((await stack.call('DELETE', `/batch_exports/${id}/`)).status).toBe(204);
    await expectNothingLeft('deleted', gate);
  });

  it('of the run of a deleted export whose manifest the server does not confirm', async () => {
    const isManifest = ({ operation, key }: ProxiedRequest): boolean =>
      operation === 'PutObject' && key.startsWith('unconfirmed/_manifests/');
    const remove = proxy.intercept({
      before: (request) =>
        isManifest(request)
          ? { status: 503, body: '<Error><Code>SlowDown</Code><Message>Slow down.</Message></Error>' }
          : undefined,
    });
    const { id, runs } = await startBackfill('unconfirmed', 3, 2);
    await waitFor(() => proxy.requests.filter(isManifest).length > 1, 'the manifest is sent again');
    expect((await stack.call('DELETE', `/batch_exports/${id}/`)).status).toBe(204);
    requestsAtResponse.set('unconfirmed', proxy.requests.length);
    // The server would accept it now.
    remove();
    expect(await statusOf(runs[0]?.id)).toBe('Cancelled');
    expect(await keysUnder(stack.bucket, 'unconfirmed/_manifests/')).toEqual([]);
  });

  it('of the run of a deleted export whose manifest is stored, but not confirmed yet', async () => {
    const gate = blockOperation('stored', 'after', 'PutObject', ({ key }) => key.includes('/_manifests/'));
    const { id, runs } = await startBackfill('stored', 3, 2);
    await gate.reached();
    expect((await stack.call('DELETE', `/batch_exports/${id}/`)).status).toBe(204);
    requestsAtResponse.set('stored', proxy.requests.length);
    gate.open();
    expect(await statusOf(runs[0]?.id)).toBe('Cancelled');
    // Readers find the manifest, and every file that it names.
    const [manifest = ''] = await keysUnder(stack.bucket, 'stored/_manifests/');
    const { files } = JSON.parse((await readObject(stack.bucket, manifest)).toString()) as {
      files: { key: string }[];
    };
    expect(await keysUnder(stack.bucket, 'stored/')).toEqual(
      [...files.map(({ key }) => key), manifest].toSorted(),
    );
  });
});

describe('a cancellation', () => {
  it('is 202 while the manifest is written, and the run completes', async () => {
    const gate = blockOperation('published', 'before', 'PutObject');
    const { id, runs } = await startBackfill('published', 3, 2);
    await gate.reached();
    const response = await stack.call('POST', `/batch_exports/${id}/runs/${runs[0]?.id}/cancel/`);
    expect(response).toMatchObject({
      status: 202,
      body: { detail: expect.stringContaining('completes otherwise') },
    });
    gate.open();
    await stack.waitForRun(id, runs[0]?.id ?? '', 'Completed');
    const report = await verifyExport(stack, id);
    expect(report.findings).toEqual([]);
    expect(report.totals.rows).toBe(rows);
  });

  it('of a run whose worker does not respond is 202 and applied later', async () => {
    const gate = blockPart('paused');
    const { id, runs } = await startBackfill('paused', 3, 2);
    await gate.reached();
    const [first] = stack.workers;
    // Started before the first worker is paused, so that the pause does not outlast the heartbeat timeout.
    await stack.startWorker();
    first?.pause();
    const path = `/batch_exports/${id}/runs/${runs[0]?.id}`;
    const { status, body } = await stack.call('POST', `${path}/cancel/`);
    // The second detail when the schedule's next task was assigned to the paused worker.
    expect(status).toBe(202);
    expect(body.detail).toMatch(/^(The run is Cancelled;|The request was accepted)/);
    await stack.waitForRun(id, runs[0]?.id ?? '', 'Cancelled');
    gate.open();
    await first?.stop();
    expect(await keysUnder(stack.bucket, 'paused/')).toEqual([]);
  });

  it('leaves nothing that writes later', async () => {
    const { id, runs } = await startBackfill('afterwards', 3, 2);
    await stack.waitForRun(id, runs[0]?.id ?? '', 'Completed');
    expect([...requestsAtResponse.keys()]).toEqual([
      'parts',
      'created',
      'statement',
      'backfill',
      'deleted',
      'unconfirmed',
      'stored',
    ]);
    for (const [prefix, since] of requestsAtResponse) expect(writesBelow(prefix, since)).toEqual([]);
  });
});
