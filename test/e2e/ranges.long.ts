import { ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { insertLargeEvents } from './large_events.ts';
import { blockRequests, type RequestGate } from './request_gate.ts';
import { keysUnder, readManifest } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { isWrite } from './s3_operation.ts';
import { createS3Proxy, type S3Proxy } from './s3_proxy.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

const rows = 5_600;
const ranges = 4;

let stack: Stack;
let proxy: S3Proxy;

beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  stack = await startStack(
    'ranges',
    // One worker has slots for half of the ranges.
    {
      ...failoverWorkers,
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

/** Starts a run and blocks each of its ranges during a part. */
async function startBlocked(prefix: string): Promise<{ id: string; run: RunResponse; gate: RequestGate }> {
  const gate = blockRequests(proxy, `a part below ${prefix}`, {
    when: 'during',
    matches: ({ operation, key, received }) =>
      operation === 'UploadPart' && key.startsWith(`${prefix}/`) && received > 1024 * 1024,
  });
  const id = await stack.createExport({}, { prefix });
  await stack.call('POST', `/batch_exports/${id}/backfill/`, {
    start_at: hourAgo(3).toISOString(),
    end_at: hourAgo(2).toISOString(),
  });
  await waitFor(
    () => new Set(gate.waiting.map(({ key }) => key)).size === ranges,
    'every range sends a part',
  );
  const [run] = await stack.runs(id);
  if (!run) throw new Error('The backfill created no run.');
  return { id, run, gate };
}

const uploadsBelow = async (prefix: string): Promise<readonly unknown[]> => {
  const { client, bucket } = stack.bucket;
  const list = new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: `${prefix}/` });
  return (await client.send(list)).Uploads ?? [];
};

describe('the ranges of a large interval, exported by two workers', () => {
  it('all stop before the response to a cancellation', async () => {
    const { id, run, gate } = await startBlocked('cancelled');
    const { status } = await stack.call('POST', `/batch_exports/${id}/runs/${run.id}/cancel/`);
    expect(status).toBe(200);
    const requestsAtResponse = proxy.requests.length;
    gate.open();
    expect([await uploadsBelow('cancelled'), await keysUnder(stack.bucket, 'cancelled/')]).toEqual([[], []]);
    expect(proxy.requests.slice(requestsAtResponse).filter(isWrite)).toEqual([]);
  });

  it('complete in one manifest when one worker is killed', async () => {
    const { id, run, gate } = await startBlocked('killed');
    await stack.killWorker();
    gate.open();
    const { manifest_key } = await stack.waitForRun(id, run.id, 'Completed');
    const { files } = await readManifest(stack.bucket, manifest_key ?? '');
    expect(files).toHaveLength(ranges);
    const report = await verifyExport(stack, id);
    expect(report.findings).toEqual([]);
    expect(report.totals).toMatchObject({ manifests: 1, rows });
    expect(await uploadsBelow('killed')).toEqual([]);
    expect(await keysUnder(stack.bucket, 'killed/')).toHaveLength(ranges + 1);
  });
});
