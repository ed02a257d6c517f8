import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { blockRequests } from './request_gate.ts';
import { createS3Proxy, type S3Proxy } from './s3_proxy.ts';
import { startStack, type Stack } from './stack.ts';

let stack: Stack;
let proxy: S3Proxy;
beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  stack = await startStack(
    'jobs',
    { ...failoverWorkers, EXPORTD_JOB_WAIT_TIMEOUT: '500ms', EXPORTD_S3_REQUEST_TIMEOUT: '2m' },
    { bucket: { ...bucket, endpoint: proxy.endpoint } },
  );
});
afterAll(async () => {
  await stack.stop();
  await proxy.close();
});

describe('a job that takes longer than its request', () => {
  it('is polled to its end, although its worker is killed', async () => {
    const id = await stack.createExport(
      {},
      { prefix: 'events', file_format: 'Parquet', compression: 'zstd', table_format: 'delta' },
    );
    const gate = blockRequests(proxy, 'the check reads the table', { when: 'before', matches: () => true });
    const { status, headers, body } = await stack.call('POST', `/batch_exports/${id}/table/check/`, {});
    expect([status, body.kind, body.status]).toEqual([202, 'table_check', 'pending']);
    const poll = async (): Promise<Record<string, unknown>> => {
      const response = await fetch(headers.get('location') ?? '', {
        headers: { authorization: `Bearer ${stack.key}` },
      });
      expect(response.status).toBe(200);
      return (await response.json()) as Record<string, unknown>;
    };
    await gate.reached();
    await stack.killWorker();
    expect(await poll()).toEqual(body);
    gate.open('broken');
    await stack.startWorker();
    const ended = await waitFor(async () => {
      const found = await poll();
      return found.status !== 'pending' && found;
    }, 'another worker does the job');
    expect(ended).toMatchObject({
      id: body.id,
      status: 'completed',
      error: null,
      result: { ok: true, version: null, manifests: 0, files: 0, findings: [] },
    });
  });
});
