import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { wakeSignal } from '../../src/contract/workflow_inputs.ts';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import { insertEvents } from './rows.ts';
import { startStack, type ApiResponse, type Stack } from './stack.ts';

/** A span as OTLP sends it in JSON, with the name of its process. */
interface SentSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly links?: readonly { readonly traceId: string }[];
  readonly service: string;
}

interface SentTraces {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly { key: string; value: { stringValue?: string } }[] };
    readonly scopeSpans: readonly { readonly spans: readonly Omit<SentSpan, 'service'>[] }[];
  }[];
}

const spans: SentSpan[] = [];
let received = '';
let collector: Server;
let stack: Stack;
let connection: Connection;

/** Keeps in memory what the processes send by OTLP over HTTP. */
function collect(text: string): void {
  received += text;
  for (const { resource, scopeSpans } of (JSON.parse(text) as SentTraces).resourceSpans) {
    const service = resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '';
    for (const { spans: sent } of scopeSpans) spans.push(...sent.map((span) => ({ ...span, service })));
  }
}

/** Connections that have sent a batch. */
const used = new WeakSet<Socket>();

beforeAll(async () => {
  collector = createServer((request, response) => {
    // As a collector that closes an idle connection while the next batch is on its way.
    if (used.has(request.socket)) {
      request.socket.destroy();
      return;
    }
    used.add(request.socket);
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      collect(text);
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  await new Promise<void>((resolve) => void collector.listen(0, '127.0.0.1', resolve));
  const { port } = collector.address() as AddressInfo;
  stack = await startStack('traces', {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    OTEL_BSP_SCHEDULE_DELAY: '100',
    // A workflow receives signals during a step after four fifths of it.
    EXPORTD_WORKFLOW_TASK_TIMEOUT: '2s',
  });
  connection = await Connection.connect({ address: stack.temporalAddress });
  await insertEvents(stack.pool, stack.projectId, hourAgo(2), 50);
});
afterAll(async () => {
  await connection.close();
  await stack.stop();
  collector.close();
});

const route = 'POST /api/environments/:project_id/batch_exports/:id/backfill';

/** The spans of the trace that the only request for a backfill belongs to. */
const traceOfBackfill = (): SentSpan[] => {
  const request = spans.find(({ name }) => name === route);
  return request ? spans.filter(({ traceId }) => traceId === request.traceId) : [];
};

/**
 * Sends a command whose signal arrives while a step of the schedule is under way. That step applies the command, and the next
 * one belongs to the trace of the command.
 */
async function whileStepWaits(exportId: string, send: () => Promise<ApiResponse>): Promise<ApiResponse> {
  await waitFor(
    () => spans.some(({ name }) => name === 'RunActivity:advanceSchedule'),
    'the schedule has taken its first step',
  );
  const lock = await stack.pool.connect();
  try {
    await lock.query('begin');
    await lock.query('select from exportd.journal_streams where stream_id = $1 for update', [exportId]);
    const client = new Client({ connection });
    await client.workflow.getHandle(workflowIds(stack.settings).schedule(exportId)).signal(wakeSignal);
    await waitFor(async () => {
      const { rowCount } = await stack.pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rowCount === 1;
    }, 'the step waits');
    const sending = send();
    await waitFor(
      () => spans.some(({ name }) => name === 'HandleSignal:backfill'),
      'the schedule has received the signal',
    );
    await lock.query('commit');
    return await sending;
  } finally {
    lock.release();
  }
}

describe('the trace of a backfill', () => {
  it('leads from the request to SQL and S3, though the collector closes its connections', async () => {
    const id = await stack.createExport();
    const range = { start_at: hourAgo(2).toISOString(), end_at: hourAgo(1).toISOString() };
    const response = await whileStepWaits(id, () =>
      stack.call('POST', `/batch_exports/${id}/backfill/`, range),
    );
    expect(response.status).toBe(200);
    const expected: [service: string, span: string | RegExp][] = [
      ['server', route],
      ['server', 'command backfill'],
      ['server', 'with exportd.commands'],
      ['server', 'SignalWithStartWorkflow:batchExportSchedule'],
      ['worker', 'HandleSignal:backfill'],
      ['worker', 'RunActivity:advanceSchedule'],
      ['worker', 'apply backfill'],
      ['worker', 'SignalWithStartWorkflow:batchExportBackfill'],
      ['worker', 'RunWorkflow:batchExportBackfill'],
      ['worker', 'RunActivity:advanceBackfill'],
      ['worker', 'RunWorkflow:batchExportRun'],
      ['worker', 'RunActivity:exportWhenSettled'],
      ['worker', 'RunActivity:exportInterval'],
      ['worker', 'copy public.events'],
      ['worker', 'S3 PutObject'],
    ];
    const missing = () =>
      expected.filter(
        ([service, name]) =>
          !traceOfBackfill().some((span) => span.service === `exportd-${service}` && span.name === name),
      );
    /** Spans whose parent was not received. Those of workflows and requests end after their children. */
    const orphans = () => {
      const known = new Set(traceOfBackfill().map(({ spanId }) => spanId));
      return traceOfBackfill().filter(({ parentSpanId }) => parentSpanId && !known.has(parentSpanId));
    };
    await waitFor(
      () => missing().length === 0 && orphans().length === 0,
      () =>
        `spans ${JSON.stringify(missing())} and parents of ${JSON.stringify(orphans())} among ${JSON.stringify(traceOfBackfill().map(({ name }) => name))}`,
    );
    const trace = traceOfBackfill();
    expect(trace.filter(({ parentSpanId }) => !parentSpanId).map(({ name }) => name)).toEqual([route]);
  });

  it('holds no secret and nothing of a row', () => {
    for (const secret of [
      stack.key,
      stack.bucket.secretAccessKey,
      '$pageview',
      'person-1',
      'https://example.com',
    ])
      expect(received.includes(secret)).toBe(false);
  });
});
