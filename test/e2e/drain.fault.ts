import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { hourAgo } from '../setup/hours.ts';
import { insertLargeEvents } from './large_events.ts';
import { blockRequests } from './request_gate.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from './s3_proxy.ts';
import { startStack, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

/** About 6 MB: two parts. */
const rows = 1_050;

let stack: Stack;
let proxy: S3Proxy;
let exportId: string;

/** Creates an export, backfills an hour and returns both ids. */
async function exportHour(prefix: string, hoursAgo: number): Promise<{ id: string; runId: string }> {
  const id = await stack.createExport({}, { prefix, compression: null });
  const range = { start_at: hourAgo(hoursAgo).toISOString(), end_at: hourAgo(hoursAgo - 1).toISOString() };
  await stack.call('POST', `/batch_exports/${id}/backfill/`, range);
  const [run] = await stack.runs(id);
  if (!run) throw new Error('The backfill has no run.');
  return { id, runId: run.id };
}

const requestsOf = (operation: string): ProxiedRequest[] =>
  proxy.requests.filter((request) => request.key.startsWith('drained/') && request.operation === operation);

beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  stack = await startStack(
    'drain',
    { EXPORTD_SHUTDOWN_TIMEOUT: '10m', EXPORTD_S3_REQUEST_TIMEOUT: '2m' },
    { bucket: { ...bucket, endpoint: proxy.endpoint } },
  );
  await insertLargeEvents(stack, hourAgo(3), rows);
  const gate = blockRequests(proxy, 'the second part', {
    when: 'during',
    matches: ({ operation, key, partNumber }) =>
      operation === 'UploadPart' && key.startsWith('drained/') && partNumber === 2,
  });
  const drained = await exportHour('drained', 3);
  exportId = drained.id;
  await gate.reached();
  const [first] = stack.workers;
  const stopped = first?.stop();
  await stack.startWorker();
  // The first worker takes no work any more, so the second one exports this hour.
  const other = await exportHour('other', 5);
  await stack.waitForRun(other.id, other.runId, 'Completed');
  gate.open();
  await stopped;
  await stack.waitForRun(exportId, drained.runId, 'Completed');
});
afterAll(async () => {
  await stack.stop();
  await proxy.close();
});

describe('a worker that gets SIGTERM while it sends a file', () => {
  it('finishes the file within its shutdown timeout', () => {
    // A second attempt would number its parts from 1,000 on.
    expect(requestsOf('UploadPart').map(({ partNumber }) => partNumber)).toEqual([1, 2]);
    expect(requestsOf('CompleteMultipartUpload')).toHaveLength(1);
    expect(requestsOf('AbortMultipartUpload')).toEqual([]);
  });

  it('exports every row once', async () => {
    const report = await verifyExport(stack, exportId);
    expect(report.findings).toEqual([]);
    expect(report.totals.rows).toBe(rows);
  });
});
