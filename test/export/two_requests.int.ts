import { randomUUID } from 'node:crypto';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { formatManifest } from '../../src/destination/manifest.ts';
import { readOpenFaults } from '../../src/failures/operator_faults.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { migrateControl } from '../../src/migrate/migrate.ts';
import type { S3OperationName } from '../e2e/s3_operation.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from '../e2e/s3_proxy.ts';
import { withCrash } from './crash_injection.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import { createHours, createReruns } from './rerun.ts';
import { errorResponse, forgetTraits, knowTraits, warningsOf, withoutConditions } from './stores.ts';
import { createFaultAlarm } from '../../src/failures/fault_alarm.ts';

let harness: ExportHarness;
let proxy: S3Proxy;
const rows = 30;
const nextHour = createHours();
const traits = { conditional_put: true, conditional_complete: true, checksums: true };
beforeAll(async () => {
  harness = await createExportHarness();
  proxy = await createS3Proxy(harness.bucket.endpoint);
  await harness.insertEvents(rows);
  await knowTraits(harness, proxy, traits);
});
let earlierRequests = 0;
beforeEach(() => {
  earlierRequests = proxy.requests.length;
});
afterEach(() => {
  proxy.stopIntercepting();
});
afterAll(async () => {
  await proxy.close();
  await harness.close();
});

const createRun = (batchExportId?: string) =>
  harness.createRun({
    config: { endpoint_url: proxy.endpoint },
    ...(batchExportId !== undefined && { batchExportId }),
  });
const isManifest = ({ operation, key }: Pick<ProxiedRequest, 'operation' | 'key'>): boolean =>
  operation === 'PutObject' && key.includes('/_manifests/');
/** The operations of this test on an export, also those about the whole bucket. */
const operationsOn = (batchExportId: string): S3OperationName[] =>
  proxy.requests
    .slice(earlierRequests)
    .filter(({ key }) => key === '' || key.startsWith(batchExportId))
    .map(({ operation }) => operation);

describe('the requests of a small interval', () => {
  it('are two, a PUT for the file and one for its manifest, and no GET', async () => {
    const { run_id, batchExportId } = await createRun();
    await harness.attempt().exportInterval({ run_id });
    const manifest = await harness.publishAndVerify(run_id, { generation: 1, rows });
    expect(manifest.files).toHaveLength(1);
    expect(operationsOn(batchExportId)).toEqual(['PutObject', 'PutObject']);
  });

  it('are two from the second interval on in a store that was never tested', async () => {
    await forgetTraits(harness);
    const publish = async () => {
      const { run_id, batchExportId } = await createRun();
      await harness.attempt().exportInterval({ run_id });
      await harness.publishAndVerify(run_id, { generation: 1, rows });
      return operationsOn(batchExportId);
    };
    expect(await publish()).toEqual([
      'HeadObject',
      'CreateMultipartUpload',
      'UploadPart',
      'CompleteMultipartUpload',
      'GetObject',
      'PutObject',
      'GetObject',
      // Finds out whether the store refuses to overwrite.
      'PutObject',
    ]);
    const { rows: found } = await harness.database.pool.query(
      'select conditional_put, checksums from exportd.store_traits',
    );
    expect(found).toEqual([{ conditional_put: true, checksums: null }]);
    expect(await publish()).toEqual(['PutObject', 'PutObject']);
  });

  it('of a store that ignores conditions include those that prove the manifest', async () => {
    await forgetTraits(harness);
    proxy.intercept(withoutConditions(harness));
    for (let interval = 0; interval < 2; interval += 1) {
      const { run_id, batchExportId } = await createRun();
      await harness.attempt().exportInterval({ run_id });
      await harness.publishAndVerify(run_id, { generation: 1, rows });
      expect(operationsOn(batchExportId).filter((operation) => operation === 'GetObject')).toHaveLength(2);
      const { rows: found } = await harness.database.pool.query(
        'select conditional_put from exportd.store_traits',
      );
      expect(found).toEqual([{ conditional_put: false }]);
    }
    await forgetTraits(harness);
    await knowTraits(harness, proxy, traits);
  });

  it('include a GET after a response about the manifest was lost', async () => {
    const { run_id, batchExportId } = await createRun();
    await harness.attempt().exportInterval({ run_id });
    let lost = false;
    proxy.intercept({
      after: ({ operation, key }) => {
        if (lost || operation !== 'PutObject' || !key.includes('_manifests')) return undefined;
        lost = true;
        return 'broken';
      },
    });
    await harness.publishAndVerify(run_id, { generation: 1, rows });
    expect(lost).toBe(true);
    expect(operationsOn(batchExportId)).toContain('GetObject');
  });

  it('include a GET where the store does not check checksums', async () => {
    await knowTraits(harness, proxy, { checksums: false });
    const { run_id, batchExportId } = await createRun();
    await harness.attempt().exportInterval({ run_id });
    await harness.publishAndVerify(run_id, { generation: 1, rows });
    await knowTraits(harness, proxy, { checksums: true });
    expect(operationsOn(batchExportId)).toEqual(['PutObject', 'GetObject', 'PutObject', 'GetObject']);
  });
});

describe('a store that was seen to refuse overwrites', () => {
  const careful = [
    'HeadObject',
    'CreateMultipartUpload',
    'UploadPart',
    'CompleteMultipartUpload',
    'GetObject',
    'PutObject',
    'GetObject',
    'PutObject',
  ];
  const publish = async () => {
    const { run_id, batchExportId } = await createRun();
    await harness.attempt().exportInterval({ run_id });
    await harness.publishAndVerify(run_id, { generation: 1, rows });
    return operationsOn(batchExportId);
  };
  const age = () =>
    harness.database.pool.query(
      `update exportd.store_traits set confirmed_at = confirmed_at - interval '25 hours'`,
    );
  beforeEach(async () => {
    await forgetTraits(harness);
    await knowTraits(harness, proxy, traits);
  });
  afterAll(async () => {
    await forgetTraits(harness);
    await knowTraits(harness, proxy, traits);
  });

  it.each([
    ['a day later', age],
    ['after exportd migrate', () => migrateControl(harness.database.url)],
    [
      'after its control database was restored',
      () =>
        harness.database.pool.query(`
          alter table exportd.store_traits rename to dumped;
          create table exportd.store_traits (like exportd.dumped including all);
          insert into exportd.store_traits select * from exportd.dumped;
          drop table exportd.dumped`),
    ],
  ])('has to show it again %s, once', async (_, change) => {
    await change();
    expect(await publish()).toEqual(careful);
    expect(await publish()).toEqual(['PutObject', 'PutObject']);
  });

  it('has to show it again when it calls itself otherwise, from the next object on', async () => {
    expect(await publish()).toEqual(['PutObject', 'PutObject']);
    proxy.intercept({ headers: () => ({ server: 'another' }) });
    expect(await publish()).toEqual(['PutObject', 'GetObject', 'PutObject', 'GetObject', 'PutObject']);
    expect(await publish()).toEqual(['PutObject', 'PutObject']);
  });

  it('has to show it again to credentials that may not read', async () => {
    await age();
    proxy.intercept({
      before: ({ operation }) =>
        operation === 'GetObject' || operation === 'HeadObject'
          ? errorResponse(403, 'AccessDenied')
          : undefined,
    });
    expect(await publish()).toEqual(careful);
    expect(await publish()).toEqual(['PutObject', 'PutObject']);
  });

  it('overwrites neither a file nor a manifest once it no longer refuses, which is no fault of the operator', async () => {
    const { run_id: other, batchExportId: otherExport } = await createRun();
    await harness.attempt().exportInterval({ run_id: other });
    const { manifest_key } = await harness.attempt().publishManifest({ run_id: other });
    const published = await harness.verifyManifest(manifest_key, { generation: 1, rows });
    const { run_id, batchExportId } = await createRun();
    const ofRun = (key: string): string => key.replaceAll(otherExport, batchExportId);
    // As after the control database lost what the export had published.
    const lost = {
      ...published,
      batch_export_id: batchExportId,
      generation: 3,
      run_id: randomUUID(),
      files: published.files.map((file) => ({ ...file, key: ofRun(file.key) })),
    };
    const fileKey = ofRun(published.files[0]?.key ?? '');
    const stored = { [fileKey]: 'a file that readers use', [ofRun(manifest_key)]: formatManifest(lost) };
    for (const [Key, Body] of Object.entries(stored))
      await harness.bucket.client.send(new PutObjectCommand({ Bucket: harness.bucket.bucket, Key, Body }));
    await age();
    proxy.intercept(withoutConditions(harness));
    await harness.attempt().exportInterval({ run_id });
    await harness.publishAndVerify(run_id, { generation: 4, rows });
    expect(await harness.reader.textOf(fileKey)).toBe('a file that readers use');
    expect(await warningsOf(harness, run_id)).toContainEqual(
      expect.stringContaining('overwrote an object although the request forbade it'),
    );

    const logger = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });
    const alarm = createFaultAlarm(harness.database.pool, harness.settings, logger, undefined);
    alarm.start();
    await alarm.stop();
    expect(await readOpenFaults(harness.database.pool)).toEqual([]);
    const next = await createRun();
    await harness.attempt().exportInterval(next);
    // The keys have a mark.
    expect((await harness.publishAndVerify(next.run_id, { generation: 1, rows })).files[0]?.key).toMatch(
      /Z-[^-.]{8}\.jsonl/,
    );
  });
});

describe('an interval after the first', () => {
  it('that is exported again has a GET, of the manifest that it replaces', async () => {
    const { batchExportId, insert, run } = createReruns(harness, nextHour());
    const config = { endpoint_url: proxy.endpoint };
    await insert(1, 20);
    await run({ config });
    const before = operationsOn(batchExportId).length;
    const { state } = await run({ config });
    expect(state).toMatchObject({ status: 'Completed', generation: 2 });
    expect(operationsOn(batchExportId).slice(before)).toEqual(['PutObject', 'GetObject', 'PutObject']);
  });

  it('that has no rows has a GET, so that a store which does not respond leaves no claim', async () => {
    const { batchExportId, run } = createReruns(harness, nextHour());
    const { state } = await run({ config: { endpoint_url: proxy.endpoint } });
    expect(state).toMatchObject({ status: 'Completed' });
    expect(operationsOn(batchExportId)).toEqual(['GetObject', 'PutObject']);
  });
});

describe('the manifest of a small interval', () => {
  it.each([
    ['before it was claimed', 'putManifest', ['PutObject', 'PutObject']],
    ['after it was written', 'published', ['PutObject', 'PutObject', 'GetObject']],
  ] as const)('is written once if the attempt crashed %s', async (_, at, operations) => {
    const { run_id, batchExportId } = await createRun();
    await harness.attempt().exportInterval({ run_id });
    await expect(harness.attempt(withCrash(harness, at)).publishManifest({ run_id })).rejects.toThrow();
    await harness.publishAndVerify(run_id, { generation: 1, rows });
    expect(operationsOn(batchExportId)).toEqual(operations);
  });

  it.each([
    ['is in conflict with another one', 'before', errorResponse(409, 'ConditionalRequestConflict')],
    ['arrives, and the connection breaks', 'after', 'broken'],
    ['arrives, and the response is an error', 'after', errorResponse(500, 'InternalError')],
    ['is lost', 'before', 'broken'],
    ['is refused although no object has its key', 'before', errorResponse(412, 'PreconditionFailed')],
  ] as const)('has the rows once if its request %s', async (_, when, outcome) => {
    const { run_id } = await createRun();
    await harness.attempt().exportInterval({ run_id });
    let injected = false;
    proxy.intercept({
      [when]: (request: ProxiedRequest) => {
        if (injected || !isManifest(request)) return undefined;
        injected = true;
        return outcome;
      },
    });
    await harness.publishAndVerify(run_id, { generation: 1, rows });
    expect(injected).toBe(true);
  });
});

describe('a zombie that writes its manifest late', () => {
  /** Exports an interval, and starts to publish it: the manifest reaches the store when `release` is called. */
  async function startZombie() {
    const { run_id, batchExportId } = await createRun();
    await harness.attempt().exportInterval({ run_id });
    const reached = Promise.withResolvers<undefined>();
    const released = Promise.withResolvers<undefined>();
    let delayed: ProxiedRequest | undefined;
    proxy.intercept({
      before: async (request) => {
        if (delayed || !isManifest(request)) return undefined;
        delayed = request;
        reached.resolve(undefined);
        return released.promise;
      },
    });
    const zombie = harness.attempt().publishManifest({ run_id });
    zombie.catch(() => undefined);
    await reached.promise;
    const release = async () => {
      released.resolve(undefined);
      const outcome = await zombie.then(
        () => 'published',
        (error: unknown) => (error as { type?: string }).type,
      );
      return { outcome, status: delayed?.status };
    };
    return { run_id, batchExportId, release };
  }

  it('finds the same manifest, which the next attempt has written', async () => {
    const { run_id, release } = await startZombie();
    const manifest = await harness.publishAndVerify(run_id, { generation: 1, rows });
    expect(await release()).toEqual({ outcome: 'published', status: 412 });
    expect(await harness.publishAndVerify(run_id, { generation: 1, rows })).toEqual(manifest);
  });

  it('does not replace the manifest of a later run', async () => {
    const { run_id, batchExportId, release } = await startZombie();
    await harness.publishAndVerify(run_id, { generation: 1, rows });
    const next = await createRun(batchExportId);
    await harness.attempt().exportInterval(next);
    const { manifest_key } = await harness.attempt().publishManifest(next);
    expect(await release()).toEqual({ outcome: 'RunEnded', status: 412 });
    await harness.verifyManifest(manifest_key, { generation: 2, rows, run_id: next.run_id });
  });
});
