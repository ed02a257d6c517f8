import { ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { expect } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { hourAgo } from '../setup/hours.ts';
import { insertLargeEvents } from './large_events.ts';
import { keysUnder } from './rows.ts';
import { createS3Proxy, type S3Proxy } from './s3_proxy.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

/** Slightly more than two parts. */
export const rows = 2_600;

/** Starts a stack whose bucket is behind a proxy, with the rows of an hour. */
export async function startBehindProxy(
  name: string,
  settings: Record<string, string>,
): Promise<{ stack: Stack; proxy: S3Proxy }> {
  const bucket = await createBucket();
  const proxy = await createS3Proxy(bucket.endpoint);
  const stack = await startStack(name, settings, { bucket: { ...bucket, endpoint: proxy.endpoint } });
  await insertLargeEvents(stack, hourAgo(3), rows);
  return { stack, proxy };
}

/** Creates an export below the prefix and backfills that hour. */
export const startExport = async (stack: Stack, prefix: string): Promise<{ id: string; run: RunResponse }> =>
  backfill(stack, await stack.createExport({}, { prefix }));

/** Backfills the hour. @returns its run. */
export async function backfill(stack: Stack, id: string): Promise<{ id: string; run: RunResponse }> {
  await stack.call('POST', `/batch_exports/${id}/backfill/`, {
    start_at: hourAgo(3).toISOString(),
    end_at: hourAgo(2).toISOString(),
  });
  const [run] = await stack.runs(id);
  if (!run) throw new Error('The backfill created no run.');
  return { id, run };
}

/** Expects one manifest and one file with every row, and no open upload. */
export async function expectEveryRowOnce(stack: Stack, id: string, prefix: string): Promise<void> {
  const report = await verifyExport(stack, id);
  expect(report.findings).toEqual([]);
  expect(report.totals).toMatchObject({ manifests: 1, files: 1, rows });
  const { Uploads = [] } = await stack.bucket.client.send(
    new ListMultipartUploadsCommand({ Bucket: stack.bucket.bucket, Prefix: `${prefix}/` }),
  );
  expect(Uploads).toEqual([]);
  expect(await keysUnder(stack.bucket, `${prefix}/`)).toHaveLength(2);
}
