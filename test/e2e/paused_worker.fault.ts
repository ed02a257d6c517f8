import { ListMultipartUploadsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { takenOverWorkers } from '../setup/patience.ts';
import { until } from '../setup/until.ts';
import { insertLargeEvents } from './large_rows.ts';
import { holdRequests, type RequestPlace } from './request_hold.ts';
import { hourAgo } from '../setup/hours.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from './s3_proxy.ts';
import { startStack, type Stack, type WorkerProcess } from './stack.ts';
import { verified } from './verified.ts';

const rows = 2_600;
const range = { start_at: hourAgo(3).toISOString(), end_at: hourAgo(2).toISOString() };

/** Where the first worker stands still, by the prefix of the export. */
const places: Readonly<Record<string, Pick<RequestPlace, 'when' | 'matches'>>> = {
  'in-a-part': {
    when: 'passing',
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
const prefixes = Object.keys(places);

let stack: Stack;
let proxy: S3Proxy;
const exports = new Map<string, { id: string; runId: string }>();
let before: Visible;
let after: Visible;
/** What the first worker sent that waited while it stood still. */
let late: readonly ProxiedRequest[] = [];

/** All that anybody can see of what the runs did. */
interface Visible {
  readonly objects: readonly string[];
  readonly uploads: readonly string[];
  readonly events: readonly string[];
}

async function lookAtEverything(): Promise<Visible> {
  const { client, bucket: Bucket } = stack.bucket;
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }));
  const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket }));
  const events = await stack.pool.query<{ event: string }>(
    `select concat_ws(' ', global_position, stream_id, event_type, data) as event from exportd.journal_events order by global_position`,
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

/** Nobody who stands still may hold a lock in the database: that is another matter, and PostgreSQL's to end. */
const pauseBetweenTransactions = (worker: WorkerProcess): Promise<true> =>
  until(async () => {
    worker.pause();
    if (await noTransactionIsOpen()) return true;
    worker.resume();
    return false;
  }, 'the worker stands still, and no transaction is open');

async function noBackfillIsUnderWay(): Promise<boolean> {
  const { rows: active } = await stack.pool.query('select from exportd.backfills where finished_at is null');
  return active.length === 0;
}

beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  stack = await startStack(
    'paused',
    {
      ...takenOverWorkers,
      EXPORTD_EXPORT_SLOTS: String(prefixes.length),
      EXPORTD_S3_REQUEST_TIMEOUT: '2m',
    },
    { bucket: { ...bucket, endpoint: proxy.endpoint } },
  );
  await insertLargeEvents(stack, hourAgo(3), rows);
  const holds = Object.entries(places).map(([prefix, { when, matches }]) =>
    holdRequests(proxy, prefix, {
      when,
      matches: (request) => request.key.startsWith(`${prefix}/`) && matches(request),
    }),
  );
  for (const prefix of prefixes) {
    const id = await stack.createExport({}, { prefix });
    const answer = await stack.call('POST', `/batch_exports/${id}/backfill/`, range);
    if (answer.status !== 200) throw new Error(`The backfill was not begun: ${answer.status} ${answer.text}`);
    const [run] = await stack.runs(id);
    if (!run) throw new Error('The backfill has no run.');
    exports.set(prefix, { id, runId: run.id });
  }
  for (const hold of holds) await hold.reached();
  late = holds.flatMap(({ held }) => held);
  const underWay = () => proxy.requests.filter(({ ended }) => !ended).length;
  await until(() => underWay() === late.length, 'nothing else is under way');
  const [first] = stack.workers;
  if (!first) throw new Error('There is no worker.');
  await pauseBetweenTransactions(first);

  // Another worker takes the runs over once their heartbeats are missed; what it sends passes.
  for (const hold of holds) hold.passOthers();
  await stack.startWorker();
  for (const { id, runId } of exports.values()) await stack.runIn(id, runId, 'Completed');
  const replaced = exports.get('before-a-manifest-that-is-replaced');
  const again = await stack.call('POST', `/batch_exports/${replaced?.id}/runs/${replaced?.runId}/retry/`, {});
  const retried = again.headers.get('location')?.split('/').at(-2) ?? '';
  await stack.runIn(replaced?.id ?? '', retried, 'Completed');

  await until(noBackfillIsUnderWay, 'the backfills have ended too');
  before = await lookAtEverything();
  for (const hold of holds) hold.release();
  // Those that were whole arrive although who sent them stands still; the rest of the part comes from the waking worker.
  await until(() => late.every(({ operation, ended }) => ended || operation === 'UploadPart'), 'they arrive');
  first.resume();
  await until(() => late.every(({ ended }) => ended), 'what had waited has ended');
  await first.stop();
  after = await lookAtEverything();
});
afterAll(async () => {
  await stack.stop();
  await proxy.close();
});

describe('a worker that wakes up after another one has finished its runs', () => {
  it('changes no object, leaves no upload and adds no event', () => {
    expect(before.objects).toHaveLength(2 * prefixes.length + 1);
    expect(after).toEqual(before);
    expect(after.uploads).toEqual([]);
  });

  it('was heard by the server with what it had been about to send', () => {
    expect(late.map(({ operation }) => operation)).toEqual([
      'UploadPart',
      'CompleteMultipartUpload',
      'PutObject',
      'PutObject',
    ]);
    // A server may thank for a completion that it has seen, but not for a manifest.
    expect(late.slice(1).map(({ status }) => status)).toEqual([expect.any(Number), 412, 412]);
  });

  it.each(prefixes)('leaves every row once: %s', async (prefix) => {
    const report = await verified(stack, exports.get(prefix)?.id ?? '');
    expect(report.findings).toEqual([]);
    expect(report.totals).toMatchObject({ manifests: 1, rows });
  });
});
