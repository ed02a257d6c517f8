import { randomUUID } from 'node:crypto';
import {
  CreateBucketCommand,
  ListObjectVersionsCommand,
  PutBucketVersioningCommand,
  PutObjectLockConfigurationCommand,
  PutObjectRetentionCommand,
} from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { testS3 } from '../../src/destination/bucket_test.ts';
import { parseS3Config } from '../../src/destination/config.ts';
import { configOf } from '../destination/bucket_requests.ts';
import { type OwnObjectStore, startOwnObjectStore } from '../e2e/own_object_store.ts';
import { createS3Proxy, type Interceptor, type S3Proxy } from '../e2e/s3_proxy.ts';
import { createExportHarness, type ExportHarness } from '../export/export_harness.ts';
import { errorResponse } from '../export/stores.ts';
import { createMaintenanceHarness, type MaintenanceHarness } from './maintenance_harness.ts';

let store: OwnObjectStore;
let proxy: S3Proxy;
let harness: ExportHarness;
let maintenance: MaintenanceHarness;
let locked: string;
const tomorrow = new Date(Date.now() + 86_400_000);
beforeAll(async () => {
  store = await startOwnObjectStore({ keepsVersions: true });
  const { client, bucket } = store.bucket;
  await client.send(
    new PutBucketVersioningCommand({ Bucket: bucket, VersioningConfiguration: { Status: 'Enabled' } }),
  );
  locked = `locked-${randomUUID()}`;
  await client.send(new CreateBucketCommand({ Bucket: locked, ObjectLockEnabledForBucket: true }));
  await client.send(
    new PutObjectLockConfigurationCommand({
      Bucket: locked,
      ObjectLockConfiguration: {
        ObjectLockEnabled: 'Enabled',
        Rule: { DefaultRetention: { Mode: 'COMPLIANCE', Days: 1 } },
      },
    }),
  );
  proxy = await createS3Proxy(store.bucket.endpoint);
  harness = await createExportHarness(store.bucket);
  maintenance = createMaintenanceHarness(harness);
  await harness.insertEvents(200);
});
afterEach(() => {
  proxy.stopIntercepting();
});
afterAll(async () => {
  await proxy.close();
  await harness.close();
  await store.close();
});

/** Exports an interval twice, and deletes the file of the first generation. */
async function exportTwice(config: object = {}) {
  const through = { endpoint_url: proxy.endpoint, ...config };
  const { batchExportId } = await maintenance.publish(undefined, through);
  const Bucket = 'bucket_name' in config ? locked : store.bucket.bucket;
  const filesOf = async () => {
    const { Versions = [] } = await store.bucket.client.send(
      new ListObjectVersionsCommand({ Bucket, Prefix: `${batchExportId}/2026` }),
    );
    return Versions.map(({ Key = '' }) => Key);
  };
  const [first] = await filesOf();
  // S3 gives the retention of the bucket to each object. This store only keeps to it.
  if (Bucket === locked)
    await store.bucket.client.send(
      new PutObjectRetentionCommand({
        Bucket,
        Key: first,
        Retention: { Mode: 'COMPLIANCE', RetainUntilDate: tomorrow },
      }),
    );
  await maintenance.publish(batchExportId, through);
  const outcome = await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
  return { outcome, first, files: await filesOf(), lines: await maintenance.logLines(batchExportId) };
}

const denies = (versions: 'versions' | 'all'): Interceptor => ({
  before: ({ operation, versionId }) =>
    operation === 'DeleteObject' && (versions === 'all' || versionId !== null)
      ? errorResponse(403, 'AccessDenied')
      : undefined,
});
/** A bucket with object lock, as S3 behaves: it refuses bytes without a checksum. */
const demandsChecksums: Interceptor = {
  before: ({ operation, headers }) =>
    (operation === 'PutObject' || operation === 'UploadPart') &&
    headers['content-md5'] === undefined &&
    headers['x-amz-checksum-crc32'] === undefined
      ? errorResponse(400, 'InvalidRequest')
      : undefined,
};

const stepsOf = async (config: object = {}) => {
  const { settings } = harness;
  const parsed = parseS3Config(configOf(store.bucket, { endpoint_url: proxy.endpoint, ...config }), settings);
  const { steps, traits } = await testS3(parsed, settings);
  return { traits, of: (name: string) => steps.find((step) => step.name === name)?.result };
};

describe('a versioned bucket', () => {
  it('has no version of a deleted file', async () => {
    const { outcome, first, files, lines } = await exportTwice();
    expect(outcome).toMatchObject({ kept: 0 });
    expect(files).toHaveLength(1);
    expect(files).not.toContain(first);
    expect(lines.join('\n')).toContain('Deleted obsolete objects');
  });

  it('keeps the version of a file that may not be deleted, and the log does not claim that it was', async () => {
    proxy.intercept(denies('versions'));
    const { outcome, first, files, lines } = await exportTwice();
    expect(outcome).toMatchObject({ deleted: 1, kept: 1 });
    expect(files).toContain(first);
    expect(lines.join('\n')).toMatch(
      /stay in the bucket: 1 file, .* its version stays with all its rows. .*s3:DeleteObjectVersion/,
    );
    expect(lines.join('\n')).not.toMatch(/^Deleted obsolete objects: .*file/m);
  });

  it('is named by a destination test, which deletes its versions', async () => {
    const { traits, of } = await stepsOf();
    expect(traits).toMatchObject({ versioned: true });
    expect(of('write')).toMatchObject({
      status: 'Passed',
      details: expect.stringContaining('The bucket is versioned'),
    });
    expect(of('delete')).toMatchObject({ status: 'Passed', details: 'Its versions were deleted too.' });
    const { Versions = [] } = await store.bucket.client.send(
      new ListObjectVersionsCommand({ Bucket: store.bucket.bucket, Prefix: 'exports/_exportd_test' }),
    );
    expect(Versions).toEqual([]);
  });

  it('whose versions may not be deleted is named by a destination test, with what that means', async () => {
    proxy.intercept(denies('versions'));
    expect((await stepsOf()).of('delete')).toMatchObject({
      status: 'Failed',
      message: expect.stringMatching(/s3:DeleteObjectVersion.*rows that you want to be gone, stays/),
    });
  });
});

describe('a bucket with object lock', () => {
  const config = () => ({ bucket_name: locked });

  it('gets checksums as soon as it refused bytes without one', async () => {
    proxy.intercept(demandsChecksums);
    const before = proxy.requests.length;
    const { outcome, first, files, lines } = await exportTwice(config());
    expect(outcome).toMatchObject({ kept: 1 });
    expect(files).toHaveLength(2);
    expect(files).toContain(first);
    const day = tomorrow.toISOString().slice(0, 'YYYY-MM-DD'.length);
    expect(lines.join('\n')).toMatch(
      new RegExp(`keeps the object until ${day}: .*its version stays with all its rows`),
    );
    const refused = proxy.requests
      .slice(before)
      .filter(({ operation, headers }) => operation === 'PutObject' && headers['content-md5'] === undefined);
    expect(refused.length).toBeLessThanOrEqual(1);
    const { rows } = await harness.database.pool.query(
      'select demands_checksums, versioned from exportd.store_traits where location like $1',
      [`%${locked}`],
    );
    expect(rows).toEqual([{ demands_checksums: true, versioned: true }]);
  });

  it('is named by a destination test', async () => {
    proxy.intercept(demandsChecksums);
    const { traits, of } = await stepsOf(config());
    expect(traits).toMatchObject({ versioned: true, demands_checksums: true, checksums: true });
    expect(of('write')?.details).toMatch(/refuses bytes without a checksum.*versioned/);
    expect(of('delete')).toMatchObject({ status: 'Failed', message: expect.stringContaining('object lock') });
  });
});
