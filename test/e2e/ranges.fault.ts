import { ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { until } from '../setup/until.ts';
import { insertLargeEvents } from './large_rows.ts';
import { holdRequests, type RequestHold } from './request_hold.ts';
import { keysUnder, readManifest } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { isWrite } from './s3_operation.ts';
import { createS3Proxy, type S3Proxy } from './s3_proxy.ts';
import { startStack, type ShownRun, type Stack } from './stack.ts';
import { verified } from './verified.ts';

const rows = 5_600;
const ranges = 4;

let stack: Stack;
let proxy: S3Proxy;

beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  stack = await startStack(
    'ranges',
    // Half of the ranges fit into one worker.
    {
      EXPORTD_RANGE_ROWS: String(rows / ranges),
      EXPORTD_EXPORT_SLOTS: String(ranges / 2),
    },
    { bucket: { ...bucket, endpoint: proxy.endpoint } },
  );
  await stack.startWorker();
  await insertLargeEvents(stack, hourAgo(3), rows);
});
afterAll(async () => {
  await stack.stop();
  await proxy.close();
});

/** Starts a run, and stops each of its ranges in a part. */
async function startHeld(prefix: string): Promise<{ id: string; run: ShownRun; hold: RequestHold }> {
  const hold = holdRequests(proxy, `a part below ${prefix}`, {
    when: 'passing',
    matches: ({ operation, key, received }) =>
      operation === 'UploadPart' && key.startsWith(`${prefix}/`) && received > 1024 * 1024,
  });
  const id = await stack.createExport({}, { prefix });
  await stack.call('POST', `/batch_exports/${id}/backfill/`, {
    start_at: hourAgo(3).toISOString(),
    end_at: hourAgo(2).toISOString(),
  });
  await until(() => new Set(hold.held.map(({ key }) => key)).size === ranges, 'every range sends a part');
  const [run] = await stack.runs(id);
  if (!run) throw new Error('The backfill opened no run.');
  return { id, run, hold };
}

const uploadsBelow = async (prefix: string): Promise<readonly unknown[]> => {
  const { client, bucket } = stack.bucket;
  const list = new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: `${prefix}/` });
  return (await client.send(list)).Uploads ?? [];
};

describe('the ranges of a large interval, exported by two workers', () => {
  it('let go, all of them, before a cancellation is answered', async () => {
    const { id, run, hold } = await startHeld('cancelled');
    const { status } = await stack.call('POST', `/batch_exports/${id}/runs/${run.id}/cancel/`);
    expect(status).toBe(200);
    const answeredAt = proxy.requests.length;
    hold.release();
    expect([await uploadsBelow('cancelled'), await keysUnder(stack.bucket, 'cancelled/')]).toEqual([[], []]);
    expect(proxy.requests.slice(answeredAt).filter(isWrite)).toEqual([]);
  });

  it('end in one manifest when one of the workers is killed', async () => {
    const { id, run, hold } = await startHeld('killed');
    await stack.killWorker();
    hold.release();
    const { manifest_key } = await stack.runIn(id, run.id, 'Completed');
    const { files } = await readManifest(stack.bucket, manifest_key ?? '');
    expect(files).toHaveLength(ranges);
    const report = await verified(stack, id);
    expect(report.findings).toEqual([]);
    expect(report.totals).toMatchObject({ manifests: 1, rows });
    expect(await uploadsBelow('killed')).toEqual([]);
    expect(await keysUnder(stack.bucket, 'killed/')).toHaveLength(ranges + 1);
  });
});
