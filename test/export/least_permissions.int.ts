import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { S3OperationName } from '../e2e/s3_operation.ts';
import { createS3Proxy, type Interceptor, type S3Proxy } from '../e2e/s3_proxy.ts';
import { createMaintenanceHarness, type MaintenanceHarness } from '../maintenance/maintenance_harness.ts';
import { withCrash } from './crash_injection.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import { forgetTraits } from './stores.ts';

let harness: ExportHarness;
let maintenance: MaintenanceHarness;
let proxy: S3Proxy;
let stopDenying: () => void = () => undefined;
beforeAll(async () => {
  harness = await createExportHarness();
  maintenance = createMaintenanceHarness(harness);
  proxy = await createS3Proxy(harness.bucket.endpoint);
  await harness.insertEvents(1_000);
});
beforeEach(() => {
  stopDenying();
});
afterAll(async () => {
  await proxy.close();
  await harness.close();
});

const denied = { status: 403, body: '<Error><Code>AccessDenied</Code><Message>Denied.</Message></Error>' };

/** Credentials without s3:ListBucket: the server does not reveal that a key is missing. */
const withoutListing: Interceptor = {
  before: ({ operation }) => (operation === 'ListMultipartUploads' ? denied : undefined),
  after: ({ operation, status }) =>
    status === 404 && (operation === 'GetObject' || operation === 'HeadObject') ? denied : undefined,
};

/** Credentials without the permission for these operations. */
const without = (denials: readonly S3OperationName[]): Interceptor => ({
  before: ({ operation }) => (denials.includes(operation) ? denied : undefined),
});

/**
 * Life of an interval: an attempt crashes after a part, the next one cannot resume and starts over, and the interval is
 * exported once more. Returns the warnings of the log, and the keys that remain after the clean-up.
 */
async function exportTwice(permissions: Interceptor) {
  stopDenying = proxy.intercept(permissions);
  const config = { endpoint_url: proxy.endpoint };
  // A file of a store that is known to refuse overwriting would be no upload.
  await forgetTraits(harness);
  const { run_id, batchExportId } = await harness.createRun({ config });
  await expect(harness.attempt(withCrash(harness, 'arrived')).exportInterval({ run_id })).rejects.toThrow();
  // Someone else aborts the upload, so that no attempt can resume it.
  await maintenance.abortUploads(batchExportId);
  await harness.attempt().exportInterval({ run_id });
  await harness.attempt().publishManifest({ run_id });
  const { manifest_key } = await maintenance.publish(batchExportId, config);
  const manifest = await harness.reader.manifestAt(manifest_key);
  expect(await harness.reader.uuidsIn(manifest)).toEqual(await harness.reader.sourceUuids());
  await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
  const { rows } = await harness.database.pool.query<{ message: string }>(
    `select message from exportd.log_lines where batch_export_id = $1 and level <> 'INFO' order by id`,
    [batchExportId],
  );
  const files = manifest.files.map(({ key }) => key);
  const remaining = await maintenance.keysOf(batchExportId);
  return {
    warnings: rows.map(({ message }) => message),
    obsolete: remaining.filter((key) => key !== manifest_key && !files.includes(key)),
  };
}

describe('an export without s3:ListBucket', () => {
  it('treats a denied missing key as absent: it verifies manifests, deletes what is obsolete and warns of nothing', async () => {
    expect(await exportTwice(withoutListing)).toEqual({ warnings: [], obsolete: [] });
  });
});

describe('an export that lacks a permission', () => {
  /** The denied operations, what each warning names, and how many obsolete files remain. */
  it.each<[string, readonly S3OperationName[], readonly string[], number]>([
    // Both manifests, and the file of the older generation.
    ['s3:GetObject', ['GetObject', 'HeadObject'], ['s3:GetObject', 's3:GetObject', 's3:GetObject'], 1],
    ['s3:ListMultipartUploadParts', ['ListParts'], ['s3:ListMultipartUploadParts'], 0],
    ['s3:ListBucketMultipartUploads', ['ListMultipartUploads'], [], 0],
    ['s3:DeleteObject', ['DeleteObject'], ['s3:DeleteObject'], 1],
    ['s3:AbortMultipartUpload', ['AbortMultipartUpload'], ['s3:AbortMultipartUpload'], 0],
  ])('%s: exports every row and names what it lacks', async (_permission, operations, named, kept) => {
    const { warnings, obsolete } = await exportTwice(without(operations));
    expect(warnings).toEqual(named.map((permission): unknown => expect.stringContaining(permission)));
    expect(obsolete).toHaveLength(kept);
  });
});
