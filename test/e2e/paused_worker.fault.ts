import { ListMultipartUploadsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { insertLargeEvents } from './large_events.ts';
import { blockRequests, type GatePosition } from './request_gate.ts';
import { hourAgo } from '../setup/hours.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from './s3_proxy.ts';
import { startStack, type Stack, type WorkerProcess } from './stack.ts';
import { verifyExport } from './verify_export.ts';

const rows = 1_950;
const range = { start_at: hourAgo(3).toISOString(), end_at: hourAgo(2).toISOString() };

/** Where the first worker is paused, by the prefix of the export. */
const pausePositions: Readonly<Record<string, Pick<GatePosition, 'when' | 'matches'>>> = {
  'in-a-part': {
    when: 'during',
    matches: ({ operation, partNumber, received }) =>
      operation === 'UploadPart' && partNumber === 2 && received > 1024 * 1024,
  },
  'before-completion': {
    when: 'before',
    matches: ({ operation }) => operation === 'CompleteMultipartUpload',
  },
  'before-the-manifest': { when: 'before', matches: ({ operation }) => operation === 'PutObject' },
  'before-a-manifest-that-is-replaced': {
    when: 'before',
    matches: ({ operation }) => operation === 'PutObject',
  },
};
const prefixes = Object.keys(pausePositions);

let stack: Stack;
let proxy: S3Proxy;
const exports = new Map<string, { id: string; runId: string }>();
let before: VisibleState;
let after: VisibleState;
/** The requests of the first worker that were blocked while it was paused. */
let delayedRequests: readonly ProxiedRequest[] = [];

/** Everything visible from outside: objects, uploads and events. */
interface VisibleState {
  readonly objects: readonly string[];
  readonly uploads: readonly string[];
  readonly events: readonly string[];
}

async function readVisibleState(): Promise<VisibleState> {
  const { client, bucket: Bucket } = stack.bucket;
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }));
  const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket }));
  // When an hour ends meanwhile, the schedules record that it is after the exports' end.
  const events = await stack.pool.query<{ event: string }>(
    `select concat_ws(' ', global_position, stream_id, event_type, data) as event from exportd.journal_events
     where event_type <> 'IntervalsSkipped' order by global_position`,
  );
  return {
    objects: Contents.map(({ Key, ETag, LastModified }) => `${Key} ${ETag} ${LastModified?.toISOString()}`),
    uploads: Uploads.map(({ Key, UploadId }) => `${Key} ${UploadId}`),
    events: events.rows.map(({ event }) => event),
  };
}

async function noTransactionIsOpen(): Promise<boolean> {
  const { rows: open } = await stack.pool.query(
    `select from pg_stat_activity where datname = current_database() and application_name = 'exportd'
       and backend_type = 'client backend' and xact_start is not null and pid <> pg_backend_pid()`,
  );
  return open.length === 0;
}

/** Pauses the worker while it holds no database lock; PostgreSQL's timeouts would handle those. */
const pauseBetweenTransactions = (worker: WorkerProcess): Promise<true> =>
  waitFor(async () => {
    worker.pause();
    if (await noTransactionIsOpen()) return true;
    worker.resume();
    return false;
  }, 'the worker is paused and no transaction is open');

async function noBackfillIsActive(): Promise<boolean> {
  const { rows: active } = await stack.pool.query('select from exportd.backfills where finished_at is null');
  return active.length === 0;
}

beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  stack = await startStack(
    'paused',
    {
      ...failoverWorkers,
      EXPORTD_EXPORT_SLOTS: String(prefixes.length),
      EXPORTD_S3_REQUEST_TIMEOUT: '2m',
    },
    { bucket: { ...bucket, endpoint: proxy.endpoint } },
  );
  await insertLargeEvents(stack, hourAgo(3), rows);
  const gates = Object.entries(pausePositions).map(([prefix, { when, matches }]) =>
    blockRequests(proxy, prefix, {
      when,
      matches: (request) => request.key.startsWith(`${prefix}/`) && matches(request),
    }),
  );
  for (const prefix of prefixes) {
    const id = await stack.createExport({}, { prefix, compression: null });
    const response = await stack.call('POST', `/batch_exports/${id}/backfill/`, range);
    if (response.status !== 200)
      throw new Error(`The backfill was not started: ${response.status} ${response.text}`);
    const [run] = await stack.runs(id);
    if (!run) throw new Error('The backfill has no run.');
    exports.set(prefix, { id, runId: run.id });
  }
  for (const gate of gates) await gate.reached();
  delayedRequests = gates.flatMap(({ waiting }) => waiting);
  const pendingRequests = () => proxy.requests.filter(({ ended }) => !ended).length;
  await waitFor(() => pendingRequests() === delayedRequests.length, 'no other request is pending');
  const [first] = stack.workers;
  if (!first) throw new Error('There is no worker.');
  await pauseBetweenTransactions(first);

  // Another worker takes over the runs after their heartbeats time out. Its requests pass.
  for (const gate of gates) gate.letOthersPass();
  await stack.startWorker();
  for (const { id, runId } of exports.values()) await stack.waitForRun(id, runId, 'Completed');
  const replaced = exports.get('before-a-manifest-that-is-replaced');
  const retryResponse = await stack.call(
    'POST',
    `/batch_exports/${replaced?.id}/runs/${replaced?.runId}/retry/`,
    {},
  );
  const retriedRunId = retryResponse.headers.get('location')?.split('/').at(-2) ?? '';
  await stack.waitForRun(replaced?.id ?? '', retriedRunId, 'Completed');

  await waitFor(noBackfillIsActive, 'the backfills have ended');
  before = await readVisibleState();
  for (const gate of gates) gate.open();
  // Complete requests arrive although their sender is paused; the rest of the part comes from the resumed worker.
  await waitFor(
    () => delayedRequests.every(({ operation, ended }) => ended || operation === 'UploadPart'),
    'the complete requests arrive',
  );
  first.resume();
  await waitFor(() => delayedRequests.every(({ ended }) => ended), 'all delayed requests have ended');
  await first.stop();
  after = await readVisibleState();
});
afterAll(async () => {
  await stack.stop();
  await proxy.close();
});

describe('a worker that resumes after another one has completed its runs', () => {
  it('changes no object, leaves no upload and adds no event', () => {
    expect(before.objects).toHaveLength(2 * prefixes.length + 1);
    expect(after).toEqual(before);
    expect(after.uploads).toEqual([]);
  });

  it('has its delayed requests received by the server', () => {
    expect(delayedRequests.map(({ operation }) => operation)).toEqual([
      'UploadPart',
      'CompleteMultipartUpload',
      'PutObject',
      'PutObject',
    ]);
    // A server may accept a repeated completion, but must reject a manifest.
    expect(delayedRequests.slice(1).map(({ status }) => status)).toEqual([expect.any(Number), 412, 412]);
  });

  it.each(prefixes)('exports every row once: %s', async (prefix) => {
    const report = await verifyExport(stack, exports.get(prefix)?.id ?? '');
    expect(report.findings).toEqual([]);
    expect(report.totals).toMatchObject({ manifests: 1, rows });
  });
});
