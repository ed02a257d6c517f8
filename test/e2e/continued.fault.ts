import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { takenOverWorkers } from '../setup/patience.ts';
import { until } from '../setup/until.ts';
import { insertLargeEvents } from './large_rows.ts';
import { holdRequests } from './request_hold.ts';
import { readManifest } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from './s3_proxy.ts';
import { startStack, type ShownRun, type Stack } from './stack.ts';
import { verified } from './verified.ts';

const rows = 7_000;
const partsPerExecution = 2;
const fileMebibytes = 8;

let stack: Stack;
let proxy: S3Proxy;
let connection: Connection;
let exportId: string;
/** The runs of the chain, oldest first. */
let chain: readonly ShownRun[];
let killedIn: ProxiedRequest | undefined;

/** The worker is killed in the last part of the third file, while nothing else is sent beside. */
beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  stack = await startStack(
    'continued',
    { ...takenOverWorkers, EXPORTD_PARTS_PER_EXECUTION: String(partsPerExecution) },
    { bucket: { ...bucket, endpoint: proxy.endpoint } },
  );
  connection = await Connection.connect({ address: stack.temporalAddress });
  await insertLargeEvents(stack, hourAgo(3), rows);
  exportId = await stack.createExport({}, { prefix: 'continued', max_file_size_mb: fileMebibytes });
  const hold = holdRequests(proxy, 'the last part of the third file', {
    when: 'passing',
    matches: ({ operation, key, partNumber, received }) =>
      operation === 'UploadPart' && key.endsWith('-2.jsonl.gz') && partNumber !== 1 && received > 512 * 1024,
  });
  await stack.call('POST', `/batch_exports/${exportId}/backfill/`, {
    start_at: hourAgo(3).toISOString(),
    end_at: hourAgo(2).toISOString(),
  });
  await hold.reached();
  await until(
    () => proxy.requests.every((request) => request.ended || hold.held.includes(request)),
    'nothing else is under way',
  );
  await stack.killWorker();
  [killedIn] = hold.held;
  hold.release('broken');
  await stack.startWorker();
  await until(
    async () => (await stack.runs(exportId))[0]?.status === 'Completed',
    'the last run is Completed',
  );
  chain = (await stack.runs(exportId)).toReversed();
});
afterAll(async () => {
  await connection.close();
  await stack.stop();
  await proxy.close();
});

describe('an export of more parts than one execution sends, in several files, whose worker was killed', () => {
  it('is handed over run by run, each with the cursor where the next one goes on', () => {
    expect(chain.length).toBeGreaterThanOrEqual(3);
    expect(chain.map(({ status }) => status)).toEqual([
      ...chain.slice(1).map(() => 'ContinuedAsNew'),
      'Completed',
    ]);
    const counts = chain.map(({ records_completed }) => records_completed);
    expect(counts).toEqual(counts.toSorted((one, other) => one - other));
    expect(counts.at(-1)).toBe(rows);
    expect(chain.slice(0, -1).every(({ cursor }) => typeof cursor === 'string')).toBe(true);
  });

  it('ends each history but the last in WorkflowExecutionContinuedAsNew', async () => {
    const client = new Client({ connection });
    for (const { id } of chain.slice(0, -1)) {
      const execution = await until(async () => {
        for await (const found of client.workflow.list({ query: `ExportdRun = "${id}"` })) return found;
        return undefined;
      }, 'the execution is listed');
      const { events } = await client.workflow
        .getHandle(execution.workflowId, execution.runId)
        .fetchHistory();
      expect(events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes).toBeTruthy();
    }
  });

  it('sends no part twice but the one that was cut off', () => {
    const parts = proxy.requests.filter(({ operation }) => operation === 'UploadPart');
    expect(parts.filter(({ status }) => status !== 200)).toEqual([killedIn]);
    const digests = parts.flatMap(({ digest }) => digest ?? []);
    expect(new Set(digests).size).toBe(digests.length);
  });

  it('writes files of the size that was asked for, and every row into one of them', async () => {
    const { files } = await readManifest(stack.bucket, chain.at(-1)?.manifest_key ?? '');
    const least = fileMebibytes * 1024 * 1024;
    expect(files.length).toBeGreaterThanOrEqual(3);
    expect(files.slice(0, -1).every(({ bytes }) => bytes >= least && bytes < 2 * least)).toBe(true);
    const report = await verified(stack, exportId);
    expect(report.findings).toEqual([]);
    expect(report.totals).toMatchObject({ manifests: 1, rows });
  });
});
