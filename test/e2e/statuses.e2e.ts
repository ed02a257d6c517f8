import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createBucket } from '../setup/bucket.ts';
import { until } from '../setup/until.ts';
import { runWorkflowId } from '../../src/contract/workflow_ids.ts';
import { insertLargeEvents } from './large_rows.ts';
import { outageAfterFirstPart } from './outage.ts';
import { holdRequests, type RequestHold } from './request_hold.ts';
import { insertEvents } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { evidenceOf, openUploads, type RunEvidence } from './run_evidence.ts';
import { createS3Proxy, type S3Proxy } from './s3_proxy.ts';
import { startStack, type ShownRun, type Stack } from './stack.ts';

let stack: Stack;
let proxy: S3Proxy;
let connection: Connection;
let client: Client;

/** Hours with rows for three parts, and for one. */
const large = 3;
const small = 6;

beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  stack = await startStack(
    'statuses',
    {
      EXPORTD_RETRY_INITIAL_MS: '500',
      // After an attempt that counts as lost the next one sends what is left: too few parts to be handed over.
      EXPORTD_HEARTBEAT_TIMEOUT_MS: '60000',
      EXPORTD_PARTS_PER_EXECUTION: '2',
      EXPORTD_UPKEEP_INTERVAL_MS: '500',
      EXPORTD_SWEEP_AFTER_MS: '1000',
    },
    { bucket: { ...bucket, endpoint: proxy.endpoint } },
  );
  await insertLargeEvents(stack, hourAgo(large), 2_600);
  for (const hour of [small, small + 1]) await insertEvents(stack.pool, stack.projectId, hourAgo(hour), 30);
  connection = await Connection.connect({ address: stack.temporalAddress });
  client = new Client({ connection });
});
afterAll(async () => {
  await connection.close();
  await stack.stop();
  await proxy.close();
});

interface Started {
  readonly exportId: string;
  readonly prefix: string;
  readonly backfillId: string;
  readonly runs: readonly ShownRun[];
}

/** Backfills hours of a new export below a prefix of its own. */
async function start(prefix: string, from: number, to = from - 1, config: object = {}): Promise<Started> {
  const exportId = await stack.createExport({}, { prefix, ...config });
  const { headers } = await stack.call('POST', `/batch_exports/${exportId}/backfill/`, {
    start_at: hourAgo(from).toISOString(),
    end_at: hourAgo(to).toISOString(),
  });
  const backfillId = headers.get('location')?.split('/').at(-2) ?? '';
  return { exportId, prefix, backfillId, runs: await stack.runs(exportId) };
}

const hold = (prefix: string): RequestHold =>
  holdRequests(proxy, `the first write below ${prefix}`, {
    when: 'before',
    matches: ({ operation, key }) => operation === 'UploadPart' && key.startsWith(`${prefix}/`),
  });

const firstOf = ({ runs }: Started): ShownRun => {
  const [run] = runs;
  if (!run) throw new Error('The backfill opened no run.');
  return run;
};

/** What all places say of a run, once the execution has ended and the bucket is swept. */
async function settled(started: Started, runId: string): Promise<RunEvidence> {
  await until(async () => (await openUploads(stack, started.prefix)) === 0, 'no upload is open');
  let evidence = await evidenceOf(stack, client, { ...started, runId });
  await until(
    async () => {
      evidence = await evidenceOf(stack, client, { ...started, runId });
      return evidence.execution !== 'RUNNING';
    },
    () => `the execution has ended: ${JSON.stringify(evidence)}`,
  );
  return evidence;
}

/** The run that follows another of the same interval, once it is in the status. */
async function followerOf({ exportId }: Started, runId: string, status: string): Promise<ShownRun> {
  let runs: ShownRun[] = [];
  return until(
    async () => {
      runs = await stack.runs(exportId);
      return runs.find((run) => run.id !== runId && run.status === status);
    },
    () => `a ${status} run after ${runId} among ${JSON.stringify(runs)}`,
  );
}

const agreeing = (status: string, execution: string, journal: string[], more: Partial<RunEvidence> = {}) => ({
  shown: status,
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
    const held = hold('completed');
    const started = await start('completed', small);
    await held.reached();
    const { id } = firstOf(started);
    expect(await evidenceOf(stack, client, { ...started, runId: id })).toEqual(
      agreeing('Running', 'RUNNING', ['RunStarted', 'RunExportBegan'], { uploads: 1 }),
    );
    held.release();
    await stack.runIn(started.exportId, id, 'Completed');
    expect(await settled(started, id)).toEqual(
      agreeing('Completed', 'COMPLETED', ['RunStarted', 'RunExportBegan', 'RunCompleted'], { manifests: 1 }),
    );
  });

  it('Failed, since there is no such bucket', async () => {
    const started = await start('failed', small, small - 1, { bucket_name: `none-${Date.now()}` });
    const { id } = firstOf(started);
    const run = await stack.runIn(started.exportId, id, 'Failed');
    expect(run.latest_error).toMatch(/^NoSuchBucket: /);
    expect(await settled(started, id)).toEqual(
      agreeing('Failed', 'FAILED', ['RunStarted', 'RunExportBegan', 'RunFailed']),
    );
    expect(await stack.runs(started.exportId)).toHaveLength(1);
  });

  it('ContinuedAsNew, since it has sent the parts of one execution', async () => {
    const started = await start('continued', large);
    const { id } = firstOf(started);
    const run = await stack.runIn(started.exportId, id, 'ContinuedAsNew');
    expect(run.cursor).toEqual(expect.any(String));
    const completed = await followerOf(started, id, 'Completed');
    expect(await settled(started, id)).toEqual(
      agreeing('ContinuedAsNew', 'CONTINUED_AS_NEW', ['RunStarted', 'RunExportBegan', 'RunContinuedAsNew'], {
        manifests: 1,
      }),
    );
    expect(await settled(started, completed.id)).toEqual(
      agreeing('Completed', 'COMPLETED', ['RunStarted', 'RunExportBegan', 'RunCompleted'], { manifests: 1 }),
    );
  });

  const cancelled = agreeing('Cancelled', 'CANCELLED', ['RunStarted', 'RunExportBegan', 'RunCancelled']);

  it.each([
    ['by a person', ({ exportId }: Started, id: string) => ['POST', `${exportId}/runs/${id}/cancel/`, 200]],
    [
      'with its backfill',
      ({ exportId, backfillId }: Started) => ['POST', `${exportId}/backfills/${backfillId}/cancel/`, 200],
    ],
    ['by deleting the export', ({ exportId }: Started) => ['DELETE', `${exportId}/`, 204]],
  ] as const)('Cancelled %s', async (how, request) => {
    const prefix = how.replaceAll(' ', '-');
    const held = hold(prefix);
    const started = await start(prefix, small + 1, small - 1);
    await until(() => new Set(held.held.map(({ key }) => key)).size === 2, 'both runs send');
    const { id } = firstOf(started);
    const [method, path, status] = request(started, id);
    expect((await stack.call(String(method), `/batch_exports/${path}`)).status).toBe(status);
    held.release();
    const ofOne = how === 'by a person' ? { manifests: 1 } : {};
    if (how === 'by a person') await followerOf(started, id, 'Completed');
    const gone = how === 'by deleting the export' ? { shown: null, listed: null } : {};
    expect(await settled(started, id)).toEqual({ ...cancelled, ...ofOne, ...gone });
  });

  it('Terminated in Temporal, which is left alone', async () => {
    const held = hold('terminated');
    const started = await start('terminated', small);
    await held.reached();
    const { id } = firstOf(started);
    const run = await stack.runIn(started.exportId, id, 'Running');
    await client.workflow
      .getHandle(runWorkflowId({ ...run, batch_export_id: started.exportId }))
      .terminate('by hand');
    await stack.runIn(started.exportId, id, 'Terminated');
    held.release();
    expect(await settled(started, id)).toEqual(
      agreeing('Terminated', 'TERMINATED', ['RunStarted', 'RunExportBegan', 'RunTerminated'], {
        attribute: 'Running',
      }),
    );
    expect(await stack.runs(started.exportId)).toHaveLength(1);
  });
});

describe('They agree under short time limits on a run that is', () => {
  // Of these runs alone: the others must not come near their limits on a busy machine.
  beforeAll(async () => {
    await Promise.all(stack.workers.map((worker) => worker.stop()));
    await stack.startWorker({ EXPORTD_RUN_TIMEOUT_MS: '20000', EXPORTD_ACTIVITY_BUDGET_MS: '8000' });
  });

  it('FailedRetryable, since S3 was away for longer than the budget; and a new run goes on', async () => {
    const outage = outageAfterFirstPart(proxy, 'away/');
    const started = await start('away', large);
    await until(outage.isThere, 'a part has arrived');
    const { id } = firstOf(started);
    const failed = await stack.runIn(started.exportId, id, 'FailedRetryable');
    outage.end();
    const completed = await followerOf(started, id, 'Completed');
    expect(completed).toMatchObject({ records_completed: 2_600 });
    // Not always the one that completes: on a busy machine that one may be out of time again.
    const next = (await stack.runs(started.exportId)).filter((run) => run.id !== id).at(-1);
    expect(next?.generation).toBe(failed.generation);
    expect(await settled(started, id)).toEqual(
      agreeing('FailedRetryable', 'FAILED', ['RunStarted', 'RunExportBegan', 'RunFailedRetryable'], {
        manifests: 1,
      }),
    );
  });

  it('Starting behind an open transaction, and TimedOut; and a new run follows', async () => {
    const writer = new pg.Client({ connectionString: stack.databaseUrl, application_name: 'a writer' });
    await writer.connect();
    await writer.query('begin; select now()');
    const started = await start('timed-out', small);
    const { id } = firstOf(started);
    let evidence: RunEvidence | undefined;
    await until(async () => {
      evidence = await evidenceOf(stack, client, { ...started, runId: id });
      return evidence.execution === 'RUNNING';
    }, 'the execution has begun');
    expect(evidence).toEqual(agreeing('Starting', 'RUNNING', ['RunStarted']));
    await stack.runIn(started.exportId, id, 'TimedOut');
    await writer.query('rollback');
    await writer.end();
    await followerOf(started, id, 'Completed');
    expect(await settled(started, id)).toEqual(
      agreeing('TimedOut', 'TIMED_OUT', ['RunStarted', 'RunTimedOut'], {
        attribute: 'Starting',
        manifests: 1,
      }),
    );
  });
});
