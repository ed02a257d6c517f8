import { ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createBucket } from '../setup/bucket.ts';
import { until } from '../setup/until.ts';
import { insertLargeEvents } from './large_rows.ts';
import { holdRequests, type RequestHold } from './request_hold.ts';
import { keysUnder } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { isWrite, type S3OperationName } from './s3_operation.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from './s3_proxy.ts';
import { startStack, type ShownRun, type Stack } from './stack.ts';
import { verified } from './verified.ts';

const rows = 2_600;
let stack: Stack;
let proxy: S3Proxy;
/** How many requests had come when the answer came that a prefix is written no more. */
const answeredAt = new Map<string, number>();

beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  // Nobody who cancels waits for half of this.
  const settings = {
    EXPORTD_HEARTBEAT_TIMEOUT: '30s',
    EXPORTD_WORKFLOW_TASK_TIMEOUT: '10s',
    EXPORTD_SOURCE_PAGE_SIZE: '4000000B',
    EXPORTD_COMMAND_TIMEOUT: '15s',
  };
  stack = await startStack('cancel', settings, { bucket: { ...bucket, endpoint: proxy.endpoint } });
  for (const hour of [3, 4]) await insertLargeEvents(stack, hourAgo(hour), rows);
});
afterAll(async () => {
  await stack.stop();
  await proxy.close();
});

/** Backfills hours of a new export. */
async function start(
  prefix: string,
  from: number,
  to: number,
): Promise<{ id: string; backfillId: string; runs: ShownRun[] }> {
  const id = await stack.createExport({}, { prefix });
  const { headers } = await stack.call('POST', `/batch_exports/${id}/backfill/`, {
    start_at: hourAgo(from).toISOString(),
    end_at: hourAgo(to).toISOString(),
  });
  const backfillId = headers.get('location')?.split('/').at(-2) ?? '';
  return { id, backfillId, runs: await stack.runs(id) };
}

const hold = (
  prefix: string,
  when: 'before' | 'passing' | 'answered',
  operation: S3OperationName,
  more: (request: ProxiedRequest) => boolean = () => true,
): RequestHold =>
  holdRequests(proxy, `${operation} below ${prefix}`, {
    when,
    matches: (request) =>
      request.operation === operation && request.key.startsWith(`${prefix}/`) && more(request),
  });

/** In the middle of a part, so that the parts before and behind it are on their way too. */
const holdPart = (prefix: string): RequestHold =>
  hold(prefix, 'passing', 'UploadPart', ({ received }) => received > 1024 * 1024);

const writesBelow = (prefix: string, since = 0): ProxiedRequest[] =>
  proxy.requests.slice(since).filter((request) => isWrite(request) && request.key.startsWith(`${prefix}/`));

/** Statements of exportd that read rows at this moment. */
async function readingStatements(): Promise<string[]> {
  const { rows: found } = await stack.pool.query<{ query: string }>(
    `select query from pg_stat_activity where datname = current_database() and application_name = 'exportd'
       and backend_type = 'client backend' and state = 'active' and query like 'copy %'`,
  );
  return found.map(({ query }) => query);
}

/** Looks at once, when the answer has come; what comes later is looked at in the last test. */
async function expectNothingLeft(prefix: string, held?: RequestHold): Promise<void> {
  answeredAt.set(prefix, proxy.requests.length);
  expect(await readingStatements()).toEqual([]);
  await expectNoObject(prefix);
  // What the network holds of a part may still arrive.
  held?.release();
  await until(
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

describe('when the answer to a cancellation has come, nothing of the run goes on:', () => {
  it('while parts are sent', async () => {
    const held = holdPart('parts');
    const { id, runs } = await start('parts', 3, 2);
    await held.reached();
    const { status, body } = await stack.call('POST', `/batch_exports/${id}/runs/${runs[0]?.id}/cancel/`);
    expect([status, body.status]).toEqual([200, 'Cancelled']);
    await expectNothingLeft('parts', held);
  });

  it('while an upload is begun', async () => {
    const held = hold('begun', 'answered', 'CreateMultipartUpload');
    const { id, runs } = await start('begun', 3, 2);
    await held.reached();
    const { status } = await stack.call('POST', `/batch_exports/${id}/runs/${runs[0]?.id}/cancel/`);
    expect(status).toBe(200);
    await expectNothingLeft('begun', held);
  });

  it('while a statement reads rows', async () => {
    const held = hold('statement', 'before', 'CreateMultipartUpload');
    const { id, runs } = await start('statement', 3, 2);
    await held.reached();
    const locking = new pg.Client({ connectionString: stack.databaseUrl, application_name: 'a test' });
    await locking.connect();
    await locking.query('begin; lock table events in access exclusive mode');
    held.release();
    await until(async () => (await readingStatements()).length > 0, 'a statement waits for the lock');
    const { status } = await stack.call('POST', `/batch_exports/${id}/runs/${runs[0]?.id}/cancel/`);
    expect(status).toBe(200);
    await expectNothingLeft('statement');
    await locking.end();
  });

  it('of the runs of a backfill', async () => {
    const held = holdPart('backfill');
    const { id, backfillId, runs } = await start('backfill', 4, 2);
    expect(runs).toHaveLength(2);
    await until(() => new Set(held.held.map(({ key }) => key)).size === 2, 'both runs send parts');
    const { status, body } = await stack.call('POST', `/batch_exports/${id}/backfills/${backfillId}/cancel/`);
    expect([status, body.status]).toEqual([200, 'Cancelled']);
    await expectNothingLeft('backfill', held);
    expect((await stack.runs(id)).map((run) => run.status)).toEqual(['Cancelled', 'Cancelled']);
  });

  it('of the runs of an export that is deleted', async () => {
    const held = holdPart('deleted');
    const { id } = await start('deleted', 3, 2);
    await held.reached();
    expect((await stack.call('DELETE', `/batch_exports/${id}/`)).status).toBe(204);
    await expectNothingLeft('deleted', held);
  });
});

describe('a cancellation', () => {
  it('that comes while the manifest is put is refused with 409, and the run completes', async () => {
    const held = hold('published', 'before', 'PutObject');
    const { id, runs } = await start('published', 3, 2);
    await held.reached();
    const answer = await stack.call('POST', `/batch_exports/${id}/runs/${runs[0]?.id}/cancel/`);
    expect([answer.status, answer.body.type]).toEqual([409, 'conflict']);
    held.release();
    await stack.runIn(id, runs[0]?.id ?? '', 'Completed');
    const report = await verified(stack, id);
    expect(report.findings).toEqual([]);
    expect(report.totals.rows).toBe(rows);
  });

  it('of a run whose worker does not answer is 202, and comes true', async () => {
    const held = holdPart('paused');
    const { id, runs } = await start('paused', 3, 2);
    await held.reached();
    const [first] = stack.workers;
    // Before the first stands still, which is missed after a while: then there would be nothing left to wait for.
    await stack.startWorker();
    first?.pause();
    const path = `/batch_exports/${id}/runs/${runs[0]?.id}`;
    const { status, body } = await stack.call('POST', `${path}/cancel/`);
    // The second, where the paused worker was the one that the schedule's next task was meant for.
    expect(status).toBe(202);
    expect(body.detail).toMatch(/^(The run is Cancelled;|The request was accepted)/);
    await stack.runIn(id, runs[0]?.id ?? '', 'Cancelled');
    held.release();
    await first?.stop();
    expect(await keysUnder(stack.bucket, 'paused/')).toEqual([]);
  });

  it('leaves nothing behind that writes later', async () => {
    const { id, runs } = await start('afterwards', 3, 2);
    await stack.runIn(id, runs[0]?.id ?? '', 'Completed');
    expect([...answeredAt.keys()]).toEqual(['parts', 'begun', 'statement', 'backfill', 'deleted']);
    for (const [prefix, since] of answeredAt) expect(writesBelow(prefix, since)).toEqual([]);
  });
});
