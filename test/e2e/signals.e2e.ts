import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { projections, rebuild } from '../../src/projections/registry.ts';
import { temporalCommand } from '../setup/temporal_command.ts';
import { waitFor } from '../setup/wait_for.ts';
import { insertEvents } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { startStack, type Stack } from './stack.ts';

const execute = promisify(execFile);
let stack: Stack;
let exportId: string;
let connection: Connection;
let client: Client;

beforeAll(async () => {
  stack = await startStack('signals', { EXPORTD_MANUAL_SIGNALS: 'true', EXPORTD_RECONCILE_INTERVAL: '1s' });
  await insertEvents(stack.pool, stack.projectId, hourAgo(3), 30);
  exportId = await stack.createExport({ name: 'Controlled by manual signals' });
  connection = await Connection.connect({ address: stack.temporalAddress });
  client = new Client({ connection });
});
afterAll(async () => {
  await connection.close();
  await stack.stop();
});

const workflowId = () => workflowIds(stack.settings).schedule(exportId);
const signal = async (name: string, input: string, options: string[] = []) =>
  execute(await temporalCommand(), [
    'workflow',
    'signal',
    '--address',
    stack.temporalAddress,
    '--workflow-id',
    workflowId(),
    '--name',
    name,
    '--input',
    input,
    ...options,
  ]);
const readExport = async () => (await stack.call('GET', `/batch_exports/${exportId}/`)).body;

describe('signals sent with the temporal command line', () => {
  it('pause and unpause', async () => {
    await signal('pause', '{}');
    await waitFor(async () => (await readExport()).paused === true, 'the export is paused');
    await signal('unpause', '{}');
    await waitFor(async () => (await readExport()).paused === false, 'the export is unpaused');
  });

  it('backfill, and retry a run', async () => {
    const range = { start_at: hourAgo(3).toISOString(), end_at: hourAgo(2).toISOString() };
    await signal('backfill', JSON.stringify(range));
    const completed = async (count: number) =>
      (await stack.runs(exportId)).filter(({ status }) => status === 'Completed').length === count;
    await waitFor(() => completed(1), 'the backfilled run is Completed');
    const [run] = await stack.runs(exportId);
    await signal('retry', JSON.stringify({ run_id: run?.id }));
    await waitFor(() => completed(2), 'the retried run is Completed');
    expect((await stack.runs(exportId)).map(({ generation }) => generation)).toEqual([2, 1]);
  });

  it('change nothing when they are invalid, and the workflow continues', async () => {
    const before = await readExport();
    await signal('pause', '"nonsense"');
    await signal('backfill', '{"start_at": "yesterday"}');
    await signal('no-such-name', '[1, 2, 3]');
    await signal('retry', 'bm9uc2Vuc2U=', ['--input-base64', '--input-meta', 'encoding=binary/plain']);
    await waitFor(async () => {
      const logs = await stack.call('GET', `/batch_exports/${exportId}/logs/?search=rejected`);
      return logs.body.count === 4;
    }, 'four rejections are in the log');
    expect(await readExport()).toEqual(before);
    await signal('pause', '{}');
    await waitFor(async () => (await readExport()).paused === true, 'the workflow continues');
  });

  it('are in the history like those of the HTTP API', async () => {
    await stack.call('POST', `/batch_exports/${exportId}/unpause/`);
    /** Of all executions that the schedule continued as, oldest first. */
    const names = async () => {
      const executions = [];
      for await (const execution of client.workflow.list({ query: `WorkflowId = '${workflowId()}'` }))
        executions.push(execution);
      const signalled = [];
      for (const { runId } of executions.toSorted((a, b) => a.startTime.getTime() - b.startTime.getTime())) {
        const { events } = await client.workflow.getHandle(workflowId(), runId).fetchHistory();
        signalled.push(...(events ?? []).map((event) => event.workflowExecutionSignaledEventAttributes));
      }
      return signalled.map((signal) => signal?.signalName).filter((name) => typeof name === 'string');
    };
    // Not the last signal: the reconciler can signal a command again that was pending when it ran.
    await waitFor(async () => {
      const signalled = await names();
      return signalled.lastIndexOf('unpause') > signalled.indexOf('no-such-name');
    }, 'the HTTP command is in the history after the manual signals');
    expect(await names()).toEqual(
      expect.arrayContaining(['create', 'pause', 'unpause', 'backfill', 'retry', 'no-such-name']),
    );
  });

  it('name their sender in the log of the export', async () => {
    const { body } = await stack.call('GET', `/batch_exports/${exportId}/logs/?search=was received: pause`);
    expect((body.results as { message: string }[]).map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/^Manual signal of temporal-cli:.+@.+ was received: pause$/),
    );
  });

  it('terminate a schedule, and the next command restarts it', async () => {
    await client.workflow.getHandle(workflowId()).terminate('by the test');
    expect((await stack.call('POST', `/batch_exports/${exportId}/pause/`)).status).toBe(200);
    expect((await readExport()).paused).toBe(true);
    expect((await client.workflow.getHandle(workflowId()).describe()).status.name).toBe('RUNNING');
  });

  it('terminate a schedule, and without a command the reconciler restarts it', async () => {
    await client.workflow.getHandle(workflowId()).terminate('by the test');
    await waitFor(
      async () => (await client.workflow.getHandle(workflowId()).describe()).status.name === 'RUNNING',
      'the schedule is running again',
    );
  });
});

describe('exportd rebuild', () => {
  it('leaves every response identical', async () => {
    const paths = [
      '/batch_exports/',
      `/batch_exports/${exportId}/`,
      `/batch_exports/${exportId}/runs/`,
      `/batch_exports/${exportId}/backfills/`,
      `/batch_exports/${exportId}/logs/`,
    ];
    const [run] = await stack.runs(exportId);
    paths.push(
      `/batch_exports/${exportId}/runs/${run?.id}/`,
      `/batch_exports/${exportId}/backfills/${run?.backfill_id}/`,
    );
    const responses = () => Promise.all(paths.map(async (path) => (await stack.call('GET', path)).text));
    const before = await responses();
    for (const { owns } of projections)
      for (const table of owns) await stack.pool.query(`drop table ${table} cascade`);
    await rebuild(stack.pool);
    expect(await responses()).toEqual(before);
  });
});

describe('a manual delete signal', () => {
  it('deletes the export and closes its workflows', async () => {
    await signal('delete', '{}');
    await waitFor(
      async () => (await stack.call('GET', `/batch_exports/${exportId}/`)).status === 404,
      'the export is deleted',
    );
    await waitFor(
      async () => (await client.workflow.getHandle(workflowId()).describe()).status.name === 'COMPLETED',
      'its schedule is closed',
    );
  });
});
