import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '../setup/wait_for.ts';
import { insertEvents } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { startStack, type Stack } from './stack.ts';
import { storedText } from '../journal/stored_text.ts';

// With characters that URLs and base64 encode, so that each encoding differs.
const canary = `canary/${randomBytes(18).toString('base64')}+=`;
const rowMarker = `row-${randomBytes(12).toString('hex')}`;
let stack: Stack;
let connection: Connection;
let histories = '';
let responses = '';

/** The secret and its possible encodings. */
function encodingsOf(secret: string): string[] {
  // Base64 depends on the offset of the secret: three alignments, without the characters at the boundaries.
  const aligned = [0, 1, 2].map((shift) =>
    Buffer.from('x'.repeat(shift) + secret)
      .toString('base64')
      .slice(4, -4),
  );
  return [
    secret,
    encodeURIComponent(secret),
    encodeURI(secret),
    JSON.stringify(secret).slice(1, -1),
    ...aligned,
  ];
}

beforeAll(async () => {
  stack = await startStack('secrets');
  await insertEvents(stack.pool, stack.projectId, hourAgo(3), 20);
  await stack.pool.query('update events set distinct_id = $1', [rowMarker]);
  const failing = await stack.createExport(
    { name: 'With a canary' },
    { aws_secret_access_key: canary, prefix: 'secret-prefix' },
  );
  const working = await stack.createExport({ name: 'Working' });
  const range = { start_at: hourAgo(3).toISOString(), end_at: hourAgo(2).toISOString() };
  for (const id of [failing, working]) await stack.call('POST', `/batch_exports/${id}/backfill/`, range);
  await stack.call('PATCH', `/batch_exports/${failing}/`, {
    destination: { type: 'S3', config: { aws_secret_access_key: canary, prefix: 'patched-prefix' } },
  });
  const hasRunIn = async (id: string, status: string) =>
    (await stack.runs(id)).some((run) => run.status === status);
  await waitFor(() => hasRunIn(failing, 'Failed'), 'the run with the canary is Failed');
  await waitFor(() => hasRunIn(working, 'Completed'), 'the other run is Completed');

  for (const id of [failing, working])
    for (const path of ['', 'runs/', 'logs/', 'backfills/'])
      responses += (await stack.call('GET', `/batch_exports/${id}/${path}`)).text;
  responses += (await stack.call('GET', '/batch_exports/')).text;

  connection = await Connection.connect({ address: stack.temporalAddress });
  const client = new Client({ connection });
  const query = `ExportdProject = "${stack.projectId}" and (ExportdBatchExport = "${failing}" or ExportdBatchExport = "${working}")`;
  // Schedules, backfills and runs of both exports. Visibility lags behind the executions.
  const listed = async () => {
    const executions = [];
    for await (const execution of client.workflow.list({ query })) executions.push(execution);
    return executions;
  };
  await waitFor(async () => (await listed()).length >= 6, 'all executions are listed');
  for (const execution of await listed()) {
    const handle = client.workflow.getHandle(execution.workflowId, execution.runId);
    const history = await handle.fetchHistory();
    const decoded = JSON.stringify(history, (_, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString() : value,
    );
    histories += decoded + JSON.stringify(await handle.describe().then(({ memo }) => memo ?? null));
  }
});

afterAll(async () => {
  await connection.close();
  await stack.stop();
});

const journalAndLogs = (): Promise<string> =>
  storedText(
    stack.pool,
    'journal_events',
    'commands',
    'log_lines',
    'batch_exports',
    'batch_export_runs',
    'stream_states',
  );

describe('a planted secret', () => {
  it('is in no history', () => {
    expect(histories).toContain('WORKFLOW_EXECUTION_STARTED');
    for (const encoding of encodingsOf(canary)) expect(histories).not.toContain(encoding);
  });

  it('is in no journal event, command, log line or read model', async () => {
    const text = await journalAndLogs();
    expect(text).toContain('With a canary');
    for (const encoding of encodingsOf(canary)) expect(text).not.toContain(encoding);
  });

  it('is in no response', () => {
    expect(responses).toContain('With a canary');
    for (const encoding of encodingsOf(canary)) expect(responses).not.toContain(encoding);
  });

  it('is encrypted where it is stored', async () => {
    const text = await storedText(stack.pool, 'destination_configs');
    expect(text).toContain('patched-prefix');
    for (const encoding of encodingsOf(canary)) expect(text).not.toContain(encoding);
  });
});

describe('a history', () => {
  it('contains no source row and no destination config', () => {
    for (const text of [rowMarker, 'secret-prefix', 'patched-prefix', stack.bucket.bucket])
      expect(histories).not.toContain(text);
  });
});
