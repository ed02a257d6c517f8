import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import type { Settings } from '../../src/config/settings.ts';
import { DestinationError } from '../../src/destination/destination.ts';
import { createDestinationOpener, createLocationOpener } from '../../src/destination/open_destination.ts';
import { requireRun, toRunResponse } from '../../src/http/runs/read_model.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { s3Settings } from '../destination/bucket_requests.ts';
import { outageAfterFirstPart } from '../e2e/outage.ts';
import { createS3Proxy, type InjectedOutcome, type S3Proxy } from '../e2e/s3_proxy.ts';
import { endless } from '../setup/hostile_store.ts';
import { type BlackholeServer, startBlackholeServer } from '../isolation/blackhole_server.ts';
import { waitFor } from '../setup/wait_for.ts';
import { withInterruptions } from './crash_injection.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import { errorResponse } from './stores.ts';
import { createOutages } from '../../src/failures/outages.ts';

describe('circuits of buckets', () => {
  let harness: ExportHarness;
  let blackhole: BlackholeServer;
  const proxies: S3Proxy[] = [];
  beforeAll(async () => {
    harness = await createExportHarness();
    blackhole = await startBlackholeServer();
    await harness.insertEvents(4_000);
  });
  afterAll(async () => {
    await Promise.all(proxies.map((proxy) => proxy.close()));
    await blackhole.close();
    await harness.close();
  });

  /** The attempts of a worker with short waits. */
  function createWorker(more: Record<string, string> = {}) {
    const { pool } = harness.database;
    const settings: Settings = s3Settings({
      EXPORTD_S3_PART_SIZE: '5MiB',
      EXPORTD_SOURCE_PAGE_SIZE: '1000000B',
      EXPORTD_S3_PROBE_TIMEOUT: '300ms',
      EXPORTD_S3_PROBE_INITIAL: '50ms',
      EXPORTD_S3_PROBE_MAX: '50ms',
      EXPORTD_S3_RETRY_BUDGET: '200ms',
      ...more,
    });
    const outages = createOutages(pool, settings, createLogger('test', settings));
    const { circuits } = outages;
    const openDestination = createDestinationOpener(pool, harness.keyRing, settings, circuits);
    const openLocation = createLocationOpener(pool, harness.keyRing, settings, { circuits });
    // From the second attempt on, failures are recorded.
    const info = { attempt: 2, scheduledTimestampMs: Date.now(), scheduleToCloseTimeoutMs: 3_600_000 };
    return { attempt: () => harness.attempt({ openDestination, openLocation, outages, settings, info }) };
  }

  /** A bucket whose faults a test controls. */
  async function createDisturbedBucket(config: object = {}) {
    const proxy = await createS3Proxy(harness.bucket.endpoint);
    proxies.push(proxy);
    const run = await harness.createRun({ config: { endpoint_url: proxy.endpoint, ...config } });
    const operationsOf = () => proxy.requests.filter(({ key }) => !key.endsWith('_exportd_probe'));
    return { ...run, proxy, operationsOf };
  }

  const positionOfJournal = async (): Promise<number> => {
    const { rows } = await harness.database.pool.query<{ position: number }>(
      'select coalesce(max(global_position), 0) as position from exportd.journal_events',
    );
    return rows[0]?.position ?? 0;
  };

  const failureOf = async (attempt: Promise<unknown>): Promise<ApplicationFailure> => {
    const failure: unknown = await attempt.then(
      () => null,
      (error: unknown) => error,
    );
    if (!(failure instanceof ApplicationFailure)) throw new Error('The attempt did not fail.');
    return failure;
  };

  /** Repeats an attempt until its destination responds, as Temporal does. */
  const untilAvailable = <Result>(attempt: () => Promise<Result>): Promise<{ result: Result }> =>
    waitFor(
      () =>
        attempt().then(
          (result) => ({ result }),
          (error: unknown) => {
            if (error instanceof ApplicationFailure && error.type === 'DestinationUnavailable') return null;
            throw error;
          },
        ),
      'the destination responds',
    );

  const responseOf = async (batchExportId: string, runId: string) => {
    const run = await requireRun(harness.database.pool, { batch_export_id: batchExportId, id: runId });
    return toRunResponse(run, () => null);
  };

  it.each<[string, number, Record<string, string>]>([
    ['200, no ETag and a body without end', 200, {}],
    ['a redirect to a page', 302, { location: 'https://portal.example/' }],
  ])('open for what answers each request with %s', async (_, status, headers) => {
    const { run_id, proxy, operationsOf } = await createDisturbedBucket();
    const respond: InjectedOutcome = (response) => {
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      if (response.req.method === 'HEAD') response.writeHead(status).end();
      else endless(status)(response);
    };
    const stop = proxy.intercept({ before: () => respond });
    const { attempt } = createWorker();
    for (let attempts = 0; attempts < 3; attempts += 1)
      expect(await failureOf(attempt().exportInterval({ run_id }))).toMatchObject({
        type: 'DestinationUnavailable',
        message: expect.stringMatching(/check (that )?endpoint_url/),
      });
    expect(operationsOf()).toEqual([]);
    stop();
    await untilAvailable(() => attempt().exportInterval({ run_id }));
  });

  it('stay closed for what answers HEAD as a store and all else with 200 and a body without end: the run fails', async () => {
    const { run_id, proxy, operationsOf } = await createDisturbedBucket();
    const respond: InjectedOutcome = (response) => {
      if (response.req.method === 'HEAD') response.writeHead(404).end();
      else endless(200)(response);
    };
    proxy.intercept({ before: () => respond });
    expect(await failureOf(createWorker().attempt().exportInterval({ run_id }))).toMatchObject({
      type: 'ResponseTooLarge',
      nonRetryable: true,
    });
    expect(operationsOf().length).toBeLessThan(10);
  });

  describe('an attempt at a bucket that does not respond', () => {
    it.each(['exportInterval', 'finishExport', 'publishManifest', 'checkReplacement'] as const)(
      '%s waits in the back-off of its activity: it claims, reads and writes nothing',
      async (step) => {
        const { run_id, batchExportId } = await harness.createRun({
          config: { endpoint_url: blackhole.endpoint },
        });
        const worker = createWorker({ EXPORTD_S3_PROBE_INITIAL: '60s', EXPORTD_S3_PROBE_MAX: '60s' });
        const position = await positionOfJournal();
        await waitFor(
          async () =>
            (await failureOf(worker.attempt().exportInterval({ run_id }))).message.includes('since'),
          'the circuit opens',
        );
        const connections = blackhole.accepted();
        const failure = await failureOf(worker.attempt()[step]({ run_id }));
        expect(failure).toMatchObject({ type: 'DestinationUnavailable', nonRetryable: false });
        expect(Number(failure.nextRetryDelay)).toBeGreaterThan(10_000);
        expect([await positionOfJournal(), blackhole.accepted()]).toEqual([position, connections]);
        const { latest_error, status_detail, status } = await responseOf(batchExportId, run_id);
        expect(latest_error).toBe(`DestinationUnavailable: ${failure.message}`);
        expect([status_detail, status]).toEqual([latest_error, 'Starting']);
      },
    );

    it('leaves no claim of its manifest', async () => {
      const { run_id, proxy } = await createDisturbedBucket();
      const worker = createWorker({ EXPORTD_S3_PROBE_AFTER: '10ms' });
      await untilAvailable(() => worker.attempt().exportInterval({ run_id }));
      const stop = proxy.intercept({ before: () => 'broken' });
      const failure = await failureOf(worker.attempt().publishManifest({ run_id }));
      expect(failure.type).toBe('DestinationUnavailable');
      expect(await harness.recorder.read(run_id)).toMatchObject({ phase: { name: 'exported' } });
      stop();
      await untilAvailable(() => worker.attempt().publishManifest({ run_id }));
      expect(await harness.recorder.read(run_id)).toMatchObject({ status: 'Completed' });
    });

    it.each([
      ['a bucket that denies everything', errorResponse(403, 'AccessDenied'), 'AccessDenied'],
      ['a bucket that does not exist', errorResponse(404, 'NoSuchBucket'), 'NoSuchBucket'],
    ])('%s responds', async (_, outcome, type) => {
      const { run_id, proxy } = await createDisturbedBucket();
      proxy.intercept({ before: () => outcome });
      expect(await failureOf(createWorker().attempt().exportInterval({ run_id }))).toMatchObject({
        type,
        nonRetryable: true,
      });
    });

    it('a server that fails at every request does not respond', async () => {
      const { run_id, proxy, operationsOf } = await createDisturbedBucket();
      proxy.intercept({ before: () => errorResponse(503, 'ServiceUnavailable') });
      const failure = await failureOf(createWorker().attempt().exportInterval({ run_id }));
      expect(failure.type).toBe('DestinationUnavailable');
      expect(operationsOf()).toEqual([]);
    });
  });

  describe('an outage in the middle of a file', () => {
    it('ends the attempt soon, and the next one continues after the parts that arrived', async () => {
      const { run_id, proxy, operationsOf } = await createDisturbedBucket({ compression: null });
      const outage = outageAfterFirstPart(proxy);
      const worker = createWorker();
      const failure = await failureOf(worker.attempt().exportInterval({ run_id }));
      expect(failure.type).toBe('DestinationUnavailable');
      const arrived = operationsOf().filter(
        ({ operation, status }) => operation === 'UploadPart' && status === 200,
      );
      expect(arrived.length).toBeGreaterThan(0);
      outage.end();
      const { result } = await untilAvailable(() => worker.attempt().exportInterval({ run_id }));
      expect(result).toMatchObject({ finished: true, generation: 1, rows: 4_000 });
      const again = operationsOf().filter(({ partNumber }) =>
        arrived.some((part) => part.partNumber === partNumber),
      );
      expect(again).toEqual(arrived);
    });

    it.each([
      ['Brotli has no state to resume from', { compression: 'brotli' }, false],
      ['exportd may not list parts', { compression: null }, true],
    ])('is waited out for longer if %s', async (_, config, unlistable) => {
      const { run_id, batchExportId, proxy, operationsOf } = await createDisturbedBucket(config);
      if (unlistable)
        proxy.intercept({
          before: ({ operation }) =>
            operation === 'ListParts' ? errorResponse(403, 'AccessDenied') : undefined,
        });
      // The outage would waste the first part.
      const outage = outageAfterFirstPart(proxy);
      const exporting = createWorker().attempt().exportInterval({ run_id });
      await waitFor(async () => {
        const response = await responseOf(batchExportId, run_id);
        return response.status_detail?.startsWith('DestinationUnavailable');
      }, 'the outage is known to all workers');
      outage.end();
      expect(await exporting).toMatchObject({ finished: true, generation: 1, rows: 4_000 });
      expect(operationsOf().filter(({ operation }) => operation === 'CreateMultipartUpload')).toHaveLength(1);
    });
  });
});

describe('a file that another execution could not resume', () => {
  let harness: ExportHarness;
  const eventCount = 3_500;
  beforeAll(async () => {
    harness = await createExportHarness();
    await harness.insertEvents(eventCount);
  });
  afterAll(() => harness.close());

  const onePart = () => ({ ...harness.settings, EXPORTD_PARTS_PER_EXECUTION: 1 });

  it('is finished before the run continues as new, if its compression is one stream', async () => {
    const { run_id } = await harness.createRun({ config: { compression: 'brotli' } });
    const settings = onePart();
    const outcome = await harness.attempt({ settings }).exportInterval({ run_id });
    expect(outcome).toMatchObject({ finished: true, generation: 1, rows: eventCount });
  });

  it('is finished first, file by file, if files have a maximum size', async () => {
    const { run_id } = await harness.createRun({ config: { compression: 'brotli', max_file_size_mb: 1 } });
    const settings = onePart();
    const outcome = await harness.attempt({ settings }).exportInterval({ run_id });
    expect(outcome).toMatchObject({ finished: false, generation: 1 });
    const { ranges } = await harness.recorder.read(run_id);
    expect(ranges[0]).toMatchObject({ upload: null, finished: false });
    expect(ranges[0]?.files.count).toBeGreaterThan(0);
  });

  it('is finished first, if its parts must not be listed', async () => {
    const { run_id } = await harness.createRun();
    const accessDenied = new DestinationError('AccessDenied', 'Denied.', { transient: false });
    const { openDestination } = withInterruptions(harness, { listParts: () => Promise.reject(accessDenied) });
    const settings = onePart();
    const outcome = await harness.attempt({ settings, openDestination }).exportInterval({ run_id });
    expect(outcome).toMatchObject({ finished: true, generation: 1, rows: eventCount });
  });
});
