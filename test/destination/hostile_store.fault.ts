import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { insertLargeEvents } from '../e2e/large_events.ts';
import { insertEvents } from '../e2e/rows.ts';
import { createS3Proxy, type InjectedOutcome, type ProxiedRequest, type S3Proxy } from '../e2e/s3_proxy.ts';
import type { S3OperationName } from '../e2e/s3_operation.ts';
import { type RunResponse, startStack, type Stack } from '../e2e/stack.ts';
import { createBucket, type TestBucket } from '../setup/bucket.ts';
import { fromSetUp } from '../setup/environment.ts';
import {
  dripping,
  drippingHeaders,
  endless,
  endlessHeaders,
  errorWithCode,
  large,
} from '../setup/hostile_store.ts';
import { hourAgo } from '../setup/hours.ts';
import {
  expectBorne,
  expectWithinLimits,
  type Watched,
  watchProcess,
  workerAt,
} from '../setup/process_watch.ts';
import { waitFor } from '../setup/wait_for.ts';

/** Hours with as many rows as make more than a part, and with a few. */
const [largeHour, smallHour] = [3, 5];
/** Of a foreign text. */
const maxErrorLength = 2_200;

describe('beside an S3 server', () => {
  let stack: Stack;
  let proxy: S3Proxy;
  let port: number;
  /** An export with a manifest. */
  let published: string;
  let restore: (() => void)[] = [];
  beforeAll(async () => {
    const folder = fromSetUp('EXPORTD_TEST_FOLDER');
    ({ worker: port } = await assignPorts(join(folder, `${randomUUID()}.ports.json`), ['worker']));
    const bucket = await createBucket();
    proxy = await createS3Proxy(bucket.endpoint);
    stack = await startStack(
      'hostile-store',
      {
        EXPORTD_WORKER_HTTP_PORT: String(port),
        EXPORTD_S3_REQUEST_TIMEOUT: '500ms',
        EXPORTD_S3_RETRY_BUDGET: '2s',
        EXPORTD_DESTINATION_TEST_TIMEOUT: '20s',
        // None of the runs that wait for the server delays another one.
        EXPORTD_EXPORT_SLOTS: '10',
      },
      { bucket: { ...bucket, endpoint: proxy.endpoint }, v8Options: [] },
    );
    // Slightly more than a part.
    await insertLargeEvents(stack, hourAgo(largeHour), 1_050);
    await insertEvents(stack.pool, stack.projectId, hourAgo(smallHour), 10);
    // What a worker loads once is no growth.
    await testDestination();
    published = await publish(stack.bucket, largeHour);
  });
  afterEach(() => {
    for (const remove of restore) remove();
    restore = [];
  });
  afterAll(async () => {
    await stack.stop();
    await proxy.close();
  });

  const answer = (operation: S3OperationName, outcome: InjectedOutcome, part = ''): void => {
    restore.push(
      proxy.intercept({
        before: (request) =>
          request.operation === operation && request.key.includes(part) ? outcome : undefined,
      }),
    );
  };
  const expectHarmless = <Result>(work: () => Promise<Result>): Promise<Result> =>
    expectBorne(workerAt(port), work);

  interface Step {
    readonly name: string;
    readonly result: { readonly status: string; readonly message: string | null };
  }

  async function testDestination(): Promise<readonly Step[]> {
    const { bucket, endpoint, accessKeyId, secretAccessKey } = stack.bucket;
    const { status, body, text } = await stack.call('POST', '/batch_exports/test/', {
      destination: {
        type: 'S3',
        config: {
          bucket_name: bucket,
          region: 'us-east-1',
          prefix: `tested/${randomUUID()}`,
          endpoint_url: endpoint,
          aws_access_key_id: accessKeyId,
          aws_secret_access_key: secretAccessKey,
        },
      },
    });
    if (status !== 200) throw new Error(`The destination was not tested: ${text.slice(0, 1_000)}`);
    return body.steps as Step[];
  }

  const createExport = ({ bucket }: TestBucket): Promise<string> =>
    stack.createExport({}, { prefix: bucket, bucket_name: bucket, compression: null });

  /** Exports an hour to a bucket. @returns the export, whose prefix is the name of the bucket */
  async function publish(bucket: TestBucket, hour: number): Promise<string> {
    const id = await createExport(bucket);
    await stack.waitForRun(id, (await backfill(id, hour)).id, 'Completed');
    return id;
  }

  /** Exports an hour. @returns the newest run */
  async function backfill(id: string, hour: number): Promise<RunResponse> {
    const before = (await stack.runs(id)).length;
    await stack.call('POST', `/batch_exports/${id}/backfill/`, {
      start_at: hourAgo(hour).toISOString(),
      end_at: hourAgo(hour - 1).toISOString(),
    });
    return waitFor(async () => {
      const runs = await stack.runs(id);
      return runs.length > before ? runs[0] : null;
    }, 'the backfill has a run');
  }

  /** Waits until a run shows an error, and returns it. */
  const errorOf = (id: string): Promise<string> =>
    waitFor(async () => (await stack.runs(id))[0]?.latest_error ?? null, 'the run shows an error');

  /** Somebody else's text is short, and has neither markup nor line breaks. */
  function expectSafe(text: string | null | undefined): void {
    expect(text?.length).toBeGreaterThan(0);
    expect(text?.length).toBeLessThan(maxErrorLength);
    expect(text).not.toMatch(/[<>\p{Cc}]/u);
  }

  const listBegin = '<?xml version="1.0"?><ListBucketResult><Name>';
  const entry = Buffer.from('<Contents><Key>a</Key></Contents>'.repeat(2_000));
  const million = 1_000_000;
  const ofSize = (text: string, bytes = million): string => text.repeat(Math.ceil(bytes / text.length));

  it.each<[string, InjectedOutcome]>([
    ['refuses with an endless body', endless(403)],
    ['fails with an endless body', endless(500)],
    ['redirects with an endless body', endless(301)],
    ['lists an endless name', endless(200, listBegin)],
    ['lists endless keys', endless(200, '<ListBucketResult>', entry)],
    ['sends endless headers', endlessHeaders],
    ['has an error code of 300 kB', errorWithCode(ofSize('x', 300_000))],
    ['has an error code of 3 MB', errorWithCode(ofSize('x', 3 * million))],
    ['has markup in its error code', errorWithCode('&lt;img src=x&gt;\nEVIL line')],
    ['nests elements deeply', { status: 403, body: ofSize('<a>') }],
    ['has many document types', { status: 403, body: ofSize('<!DOCTYPE>') }],
  ])('that %s, a destination test ends, and the worker serves others', async (_, outcome) => {
    answer('ListObjectsV2', outcome);
    const steps = await expectHarmless(testDestination);
    for (const { result } of steps) if (result.message !== null) expectSafe(result.message);
    expect(steps.length).toBeGreaterThan(0);
  });

  it('that has many elements, a destination test names the limit, and the worker serves others', async () => {
    const body = `<ListBucketResult>${ofSize('<a/>', 2 * million)}</ListBucketResult>`;
    answer('ListObjectsV2', { status: 200, body });
    const steps = await expectHarmless(testDestination);
    expect(steps.map(({ result }) => result.message).join(' ')).toMatch(/more than 50,000 tags/);
  });

  it('whose manifest has 476 MiB, a run fails once and names the size', async () => {
    const isManifest = ({ operation, key }: ProxiedRequest): boolean =>
      operation === 'GetObject' && key.includes('_manifests/');
    const before = proxy.requests.filter(isManifest).length;
    answer('GetObject', large(476 * 1_024 * 1_024), '_manifests/');
    const { latest_error } = await expectHarmless(async () =>
      stack.waitForRun(published, (await backfill(published, largeHour)).id, 'Failed'),
    );
    expect(latest_error).toMatch(/ManifestTooLarge: .*476/);
    expect(proxy.requests.filter(isManifest).length - before).toBe(1);
  });

  describe('that, all at once,', () => {
    const cases: [string, S3OperationName, InjectedOutcome][] = [
      ['sends a manifest that never ends', 'GetObject', endless(200)],
      ['drips a manifest', 'GetObject', dripping(200, '{', { 'content-length': '10000' })],
      ['drips an error', 'GetObject', dripping(403, '<Error>')],
      ['drips headers', 'GetObject', drippingHeaders],
      [
        'drips the response to an upload',
        'CreateMultipartUpload',
        dripping(200, '<InitiateMultipartUploadResult>'),
      ],
      [
        'has an upload id of 1 MB',
        'CreateMultipartUpload',
        {
          status: 200,
          body: `<InitiateMultipartUploadResult><UploadId>${ofSize('u')}</UploadId></InitiateMultipartUploadResult>`,
        },
      ],
      [
        'refuses with an error code of 3 MB',
        'CreateMultipartUpload',
        errorWithCode(ofSize('x', 3 * million)),
      ],
      [
        'refuses with markup in its error code',
        'CreateMultipartUpload',
        errorWithCode('&lt;b&gt;\nEVIL', 400),
      ],
      ['fails with an endless body', 'UploadPart', endless(500)],
    ];
    const results = new Map<string, { readonly id: string; readonly error: string }>();
    let watched: Watched<unknown>;
    beforeAll(async () => {
      // Each in a bucket of its own: the failures of one open its circuit.
      const hostile = await Promise.all(
        cases.map(async ([what, operation, outcome]) => {
          const bucket = await createBucket();
          const hour = operation === 'GetObject' ? smallHour : largeHour;
          const id = operation === 'GetObject' ? await publish(bucket, hour) : await createExport(bucket);
          answer(operation, outcome, bucket.bucket);
          return { what, id, hour };
        }),
      );
      watched = await watchProcess(workerAt(port), () =>
        Promise.all(
          hostile.map(async ({ what, id, hour }) => {
            await backfill(id, hour);
            results.set(what, { id, error: await errorOf(id) });
            await stack.call('DELETE', `/batch_exports/${id}/`);
          }),
        ),
      );
    });

    it.each(cases)('%s, each run shows a short error', async (what) => {
      const { id, error } = results.get(what) ?? {};
      expectSafe(error);
      const { rows } = await stack.pool.query<{ length: number }>(
        `select max(length(data::text)) as length from exportd.journal_events
         where stream_id in (select id from exportd.batch_export_runs where batch_export_id = $1)`,
        [id],
      );
      expect(rows[0]?.length).toBeLessThan(10_000);
    });

    it('does all of this, the worker serves others', () => {
      expectWithinLimits(workerAt(port), watched);
    });
  });
});
