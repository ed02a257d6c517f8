import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { waitFor } from '../setup/wait_for.ts';
import { insertLargeEvents } from './large_events.ts';
import { effort } from '../setup/effort.ts';
import { hourAgo } from '../setup/hours.ts';
import { createS3Proxy, type S3Proxy } from './s3_proxy.ts';
import { startSampling, type Sample } from './sampling.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';
import { throttle } from './throttle.ts';
import { verifyExport } from './verify_export.ts';

/** About 26 MB compressed: five parts. Events that hardly compress need few rows. `npm run test:long` sends four times as much. */
const rows = 5_800 * Math.min(effort, 4);
const bytesPerSecond = 700_000;
/** The upload takes more than twice as long; a machine that stalls for seconds must not fail the test. */
const maxTransactionSeconds = 15;
const maxGrowth = 1.1;

let stack: Stack;
let proxy: S3Proxy;
let samples: readonly Sample[];
let exportId: string;
const counts: number[] = [];

beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  proxy.intercept(throttle(bytesPerSecond));
  stack = await startStack('slow-s3', {}, { bucket: { ...bucket, endpoint: proxy.endpoint }, v8Options: [] });
  await insertLargeEvents(stack, hourAgo(3), rows);
  exportId = await stack.createExport({}, { prefix: 'slow' });
  await stack.call('POST', `/batch_exports/${exportId}/backfill/`, {
    start_at: hourAgo(3).toISOString(),
    end_at: hourAgo(2).toISOString(),
  });
  const [opened] = await stack.runs(exportId);
  await waitFor(() => proxy.requests.some(({ operation }) => operation === 'UploadPart'), 'a part is sent');
  const sampling = startSampling(stack.pool, stack.workers[0]?.pid ?? 0);
  await waitFor(
    async () => {
      const { body } = await stack.call('GET', `/batch_exports/${exportId}/runs/${opened?.id}/`);
      const run = body as unknown as RunResponse;
      if (run.records_completed !== counts.at(-1)) counts.push(run.records_completed);
      return run.status === 'Completed';
    },
    'the run is Completed',
    240_000,
  );
  samples = await sampling.stop();
});
afterAll(async () => {
  await stack.stop();
  await proxy.close();
});

describe(`${rows} rows sent to a bucket at 700 kB/s`, () => {
  it('keep no source transaction open', () => {
    expect(samples.length).toBeGreaterThan(50);
    const ages = samples.map(({ transactionAge }) => transactionAge);
    expect(Math.max(...ages)).toBeLessThan(maxTransactionSeconds);
  });

  it('need no more memory in the second half than in the first', () => {
    const half = Math.floor(samples.length / 2);
    const peak = (of: readonly Sample[]) => Math.max(...of.map(({ memory }) => memory));
    const [first, second] = [peak(samples.slice(0, half)), peak(samples.slice(half))];
    expect(first).toBeGreaterThan(0);
    expect(second / first).toBeLessThan(maxGrowth);
  });

  it('report progress', () => {
    // Three parts are sent at a time, so the others may be planned in one moment.
    expect(counts.filter((count) => count > 0 && count < rows)).not.toEqual([]);
    expect(counts).toEqual(counts.toSorted((one, other) => one - other));
    expect(counts.at(-1)).toBe(rows);
  });

  it('arrive once each', async () => {
    const report = await verifyExport(stack, exportId, { deep: false });
    expect(report.findings).toEqual([]);
    expect(report.totals.rows).toBe(rows);
  });
});
