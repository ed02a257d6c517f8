import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { insertLargeEvents } from './large_events.ts';
import { blockRequests } from './request_gate.ts';
import { readManifest } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from './s3_proxy.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

const rows = 7_000;
const partsPerExecution = 2;
const fileMebibytes = 8;

let stack: Stack;
let proxy: S3Proxy;
let connection: Connection;
let exportId: string;
/** The runs of the chain, oldest first. */
let chain: readonly RunResponse[];
let interruptedRequest: ProxiedRequest | undefined;

/** Kills the worker during the last part of the third file, while no other request is pending. */
beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  stack = await startStack(
    'continue-as-new',
    { ...failoverWorkers, EXPORTD_PARTS_PER_EXECUTION: String(partsPerExecution) },
    { bucket: { ...bucket, endpoint: proxy.endpoint } },
  );
  connection = await Connection.connect({ address: stack.temporalAddress });
  await insertLargeEvents(stack, hourAgo(3), rows);
  exportId = await stack.createExport({}, { prefix: 'continued', max_file_size_mb: fileMebibytes });
  const gate = blockRequests(proxy, 'the last part of the third file', {
    when: 'during',
    matches: ({ operation, key, partNumber, received }) =>
      operation === 'UploadPart' && key.endsWith('-2.jsonl.gz') && partNumber !== 1 && received > 512 * 1024,
  });
  await stack.call('POST', `/batch_exports/${exportId}/backfill/`, {
    start_at: hourAgo(3).toISOString(),
    end_at: hourAgo(2).toISOString(),
  });
  await gate.reached();
  await waitFor(
    () => proxy.requests.every((request) => request.ended || gate.waiting.includes(request)),
    'no other request is pending',
  );
  await stack.killWorker();
  [interruptedRequest] = gate.waiting;
  gate.open('broken');
  await stack.startWorker();
  await waitFor(
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

describe('an export of several files with more parts than one execution sends, whose worker is killed', () => {
  it('continues as new run by run, each with the cursor at which the next one resumes', () => {
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
      const execution = await waitFor(async () => {
        for await (const found of client.workflow.list({ query: `ExportdRun = "${id}"` })) return found;
        return undefined;
      }, 'the execution is listed');
      const { events } = await client.workflow
        .getHandle(execution.workflowId, execution.runId)
        .fetchHistory();
      expect(events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes).toBeTruthy();
    }
  });

  it('sends no part twice except the interrupted one', () => {
    const parts = proxy.requests.filter(({ operation }) => operation === 'UploadPart');
    expect(parts.filter(({ status }) => status !== 200)).toEqual([interruptedRequest]);
    const digests = parts.flatMap(({ digest }) => digest ?? []);
    expect(new Set(digests).size).toBe(digests.length);
  });

  it('writes files of the configured size, with every row once', async () => {
    const { files } = await readManifest(stack.bucket, chain.at(-1)?.manifest_key ?? '');
    const minBytes = fileMebibytes * 1024 * 1024;
    expect(files.length).toBeGreaterThanOrEqual(3);
    expect(files.slice(0, -1).every(({ bytes }) => bytes >= minBytes && bytes < 2 * minBytes)).toBe(true);
    const report = await verifyExport(stack, exportId);
    expect(report.findings).toEqual([]);
    expect(report.totals).toMatchObject({ manifests: 1, rows });
  });
});
