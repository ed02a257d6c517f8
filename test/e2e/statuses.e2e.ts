import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createBucket } from '../setup/bucket.ts';
import { casesOf } from '../setup/effort.ts';
import { waitFor } from '../setup/wait_for.ts';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { insertLargeEvents } from './large_events.ts';
import { outageAfterFirstPart } from './outage.ts';
import { blockRequests, type RequestGate } from './request_gate.ts';
import { insertEvents } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { runViewsOf, openUploads, type RunViews } from './run_views.ts';
import { createS3Proxy, type S3Proxy } from './s3_proxy.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';

let stack: Stack;
let proxy: S3Proxy;
let connection: Connection;
let client: Client;

/** Hours with rows for three parts and for one part. */
const largeHour = 3;
const smallHour = 6;

beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  stack = await startStack(
    'statuses',
    {
      EXPORTD_RUN_RETRY_INITIAL: '500ms',
      EXPORTD_SETTLE_POLL_INTERVAL: '1s',
      EXPORTD_RECONCILE_INTERVAL: '1s',
      // After a lost attempt, the next one would send the remaining parts: too few to continue as new.
      EXPORTD_HEARTBEAT_TIMEOUT: '60s',
      EXPORTD_PARTS_PER_EXECUTION: '2',
      EXPORTD_MAINTENANCE_INTERVAL: '2s',
      EXPORTD_ORPHAN_RETENTION: '1s',
    },
    { bucket: { ...bucket, endpoint: proxy.endpoint } },
  );
  await insertLargeEvents(stack, hourAgo(largeHour), 2_600);
  for (const hour of [smallHour, smallHour + 1])
    await insertEvents(stack.pool, stack.projectId, hourAgo(hour), 30);
  connection = await Connection.connect({ address: stack.temporalAddress });
  client = new Client({ connection });
});
afterAll(async () => {
  await connection.close();
  await stack.stop();
  await proxy.close();
});

interface StartedBackfill {
  readonly exportId: string;
  readonly prefix: string;
  readonly backfillId: string;
  readonly runs: readonly RunResponse[];
}

/** Backfills hours of a new export below a separate prefix. */
async function startBackfill(
  prefix: string,
  from: number,
  to = from - 1,
  config: object = {},
): Promise<StartedBackfill> {
  const exportId = await stack.createExport({}, { prefix, ...config });
  const { headers } = await stack.call('POST', `/batch_exports/${exportId}/backfill/`, {
    start_at: hourAgo(from).toISOString(),
    end_at: hourAgo(to).toISOString(),
  });
  const backfillId = headers.get('location')?.split('/').at(-2) ?? '';
  return { exportId, prefix, backfillId, runs: await stack.runs(exportId) };
}

/** Blocks the first bytes of a file: of an upload, or of the whole file once an interval has shown what the store does. */
const blockFirstWrite = (prefix: string): RequestGate =>
  blockRequests(proxy, `the first write below ${prefix}`, {
    when: 'before',
    matches: ({ operation, key }) =>
      (operation === 'UploadPart' || operation === 'PutObject') &&
      key.startsWith(`${prefix}/`) &&
      !key.includes('/_manifests/'),
  });

const firstRunOf = ({ runs }: StartedBackfill): RunResponse => {
  const [run] = runs;
  if (!run) throw new Error('The backfill created no run.');
  return run;
};

/** The views of a run once its execution is closed and no upload is open. */
async function finalViewsOf(started: StartedBackfill, runId: string): Promise<RunViews> {
  await waitFor(async () => (await openUploads(stack, started.prefix)) === 0, 'no upload is open');
  let views = await runViewsOf(stack, client, { ...started, runId });
  await waitFor(
    async () => {
      views = await runViewsOf(stack, client, { ...started, runId });
      return views.execution !== 'RUNNING';
    },
    () => `the execution is closed: ${JSON.stringify(views)}`,
  );
  return views;
}

/** The next run of the same interval, once it has the status. */
async function nextRunOf({ exportId }: StartedBackfill, runId: string, status: string): Promise<RunResponse> {
  let runs: RunResponse[] = [];
  return waitFor(
    async () => {
      runs = await stack.runs(exportId);
      return runs.find((run) => run.id !== runId && run.status === status);
    },
    () => `a ${status} run after ${runId} among ${JSON.stringify(runs)}`,
  );
}

const agreeingViews = (
  status: string,
  execution: string,
  journal: string[],
  more: Partial<RunViews> = {},
) => ({
  retrieved: status,
  listed: status,
  journal,
  execution,
  attribute: status,
  manifests: 0,
  uploads: 0,
  ...more,
});

describe('GET, journal, Temporal and S3 agree on a run that is', () => {
  it('Running, and then Completed', async () => {
    const gate = blockFirstWrite('completed');
    const started = await startBackfill('completed', smallHour);
    await gate.reached();
    const { id } = firstRunOf(started);
    expect(await runViewsOf(stack, client, { ...started, runId: id })).toEqual(
      agreeingViews('Running', 'RUNNING', ['RunCreated', 'RunExportStarted'], { uploads: 1 }),
    );
    gate.open();
    await stack.waitForRun(started.exportId, id, 'Completed');
    expect(await finalViewsOf(started, id)).toEqual(
      agreeingViews('Completed', 'COMPLETED', ['RunCreated', 'RunExportStarted', 'RunCompleted'], {
        manifests: 1,
      }),
    );
  });

  it('Failed, for a missing bucket', async () => {
    const started = await startBackfill('failed', smallHour, smallHour - 1, {
      bucket_name: `none-${Date.now()}`,
    });
    const { id } = firstRunOf(started);
    const run = await stack.waitForRun(started.exportId, id, 'Failed');
    expect(run.latest_error).toMatch(/^NoSuchBucket: /);
    expect(await finalViewsOf(started, id)).toEqual(
      agreeingViews('Failed', 'FAILED', ['RunCreated', 'RunExportStarted', 'RunFailed']),
    );
    expect(await stack.runs(started.exportId)).toHaveLength(1);
  });

  it('ContinuedAsNew, after the maximum of parts per execution', async () => {
    const started = await startBackfill('continued', largeHour);
    const { id } = firstRunOf(started);
    const run = await stack.waitForRun(started.exportId, id, 'ContinuedAsNew');
    expect(run.cursor).toEqual(expect.any(String));
    const completed = await nextRunOf(started, id, 'Completed');
    expect(await finalViewsOf(started, id)).toEqual(
      agreeingViews(
        'ContinuedAsNew',
        'CONTINUED_AS_NEW',
        ['RunCreated', 'RunExportStarted', 'RunContinuedAsNew'],
        {
          manifests: 1,
        },
      ),
    );
    expect(await finalViewsOf(started, completed.id)).toEqual(
      agreeingViews('Completed', 'COMPLETED', ['RunCreated', 'RunExportStarted', 'RunCompleted'], {
        manifests: 1,
      }),
    );
  });

  const cancelled = agreeingViews('Cancelled', 'CANCELLED', [
    'RunCreated',
    'RunExportStarted',
    'RunCancelled',
  ]);

  const cancellations = [
    [
      'by request',
      ({ exportId }: StartedBackfill, id: string) => ['POST', `${exportId}/runs/${id}/cancel/`, 200],
    ],
    [
      'with its backfill',
      ({ exportId, backfillId }: StartedBackfill) => [
        'POST',
        `${exportId}/backfills/${backfillId}/cancel/`,
        200,
      ],
    ],
    ['by deleting the export', ({ exportId }: StartedBackfill) => ['DELETE', `${exportId}/`, 204]],
  ] as const;
  // cancel.fault.ts cancels in all three ways.
  it.each(casesOf(cancellations.slice(0, 1), cancellations))('Cancelled %s', async (title, request) => {
    const prefix = title.replaceAll(' ', '-');
    const gate = blockFirstWrite(prefix);
    const started = await startBackfill(prefix, smallHour + 1, smallHour - 1);
    await waitFor(() => new Set(gate.waiting.map(({ key }) => key)).size === 2, 'both runs send');
    const { id } = firstRunOf(started);
    const [method, path, status] = request(started, id);
    expect((await stack.call(String(method), `/batch_exports/${path}`)).status).toBe(status);
    gate.open();
    const ownManifest = title === 'by request' ? { manifests: 1 } : {};
    if (title === 'by request') await nextRunOf(started, id, 'Completed');
    const deletedViews = title === 'by deleting the export' ? { retrieved: null, listed: null } : {};
    expect(await finalViewsOf(started, id)).toEqual({ ...cancelled, ...ownManifest, ...deletedViews });
  });

  it('Terminated in Temporal, and not restarted', async () => {
    const gate = blockFirstWrite('terminated');
    const started = await startBackfill('terminated', smallHour);
    await gate.reached();
    const { id } = firstRunOf(started);
    const run = await stack.waitForRun(started.exportId, id, 'Running');
    await client.workflow
      .getHandle(workflowIds(stack.settings).run({ ...run, batch_export_id: started.exportId }))
      .terminate('by the test');
    await stack.waitForRun(started.exportId, id, 'Terminated');
    gate.open();
    const { attribute, ...views } = await finalViewsOf(started, id);
    const { attribute: _, ...expected } = agreeingViews('Terminated', 'TERMINATED', [
      'RunCreated',
      'RunExportStarted',
      'RunTerminated',
    ]);
    expect(views).toEqual(expected);
    // A small run is not shown as Running by the workflow task that completes it.
    expect(['Starting', 'Running']).toContain(attribute);
    expect(await stack.runs(started.exportId)).toHaveLength(1);
  });
});

describe('they agree with short timeouts on a run that is', () => {
  // Only for these runs: on a busy machine, the others could reach such limits.
  beforeAll(async () => {
    await Promise.all(stack.workers.map((worker) => worker.stop()));
    await stack.startWorker({
      EXPORTD_RUN_TIMEOUT: '14s',
      EXPORTD_ACTIVITY_SCHEDULE_TO_CLOSE_TIMEOUT: '8s',
      EXPORTD_S3_RETRY_BUDGET: '1s',
    });
  });

  it('FailedRetryable, after an outage of S3 beyond the timeout; and a new run resumes', async () => {
    const outage = outageAfterFirstPart(proxy, 'outage/');
    const started = await startBackfill('outage', largeHour);
    await waitFor(outage.isActive, 'a part has arrived');
    const { id } = firstRunOf(started);
    const waiting = await waitFor(
      async () =>
        (await stack.runs(started.exportId)).find(
          ({ latest_error, status }) => latest_error !== null && status === 'Running',
        ),
      'the run shows what it is retried after',
    );
    expect(waiting.latest_error).toMatch(/^DestinationUnavailable: .* did not respond to \w+ /);
    const failed = await stack.waitForRun(started.exportId, id, 'FailedRetryable');
    outage.end();
    const completed = await nextRunOf(started, id, 'Completed');
    expect(completed).toMatchObject({ records_completed: 2_600 });
    // It may not be the run that completes: on a busy machine it can time out too.
    const next = (await stack.runs(started.exportId)).filter((run) => run.id !== id).at(-1);
    expect(next?.generation).toBe(failed.generation);
    expect(await finalViewsOf(started, id)).toEqual(
      agreeingViews('FailedRetryable', 'FAILED', ['RunCreated', 'RunExportStarted', 'RunFailedRetryable'], {
        manifests: 1,
      }),
    );
  });

  it('Starting, waiting for an open transaction, then TimedOut; and a new run completes', async () => {
    const writer = new pg.Client({ connectionString: stack.databaseUrl, application_name: 'a writer' });
    await writer.connect();
    await writer.query('begin; select pg_current_xact_id()');
    const started = await startBackfill('timed-out', smallHour);
    const { id } = firstRunOf(started);
    let views: RunViews | undefined;
    await waitFor(async () => {
      views = await runViewsOf(stack, client, { ...started, runId: id });
      return views.execution === 'RUNNING';
    }, 'the execution has started');
    expect(views).toEqual(agreeingViews('Starting', 'RUNNING', ['RunCreated']));
    await stack.waitForRun(started.exportId, id, 'TimedOut');
    await writer.query('rollback');
    await writer.end();
    await nextRunOf(started, id, 'Completed');
    expect(await finalViewsOf(started, id)).toEqual(
      agreeingViews('TimedOut', 'FAILED', ['RunCreated', 'RunTimedOut'], { manifests: 1 }),
    );
  });
});
