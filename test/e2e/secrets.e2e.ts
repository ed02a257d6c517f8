import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '../setup/until.ts';
import { insertEvents } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { startStack, type Stack } from './stack.ts';

// Characters that URLs and base64 write in another way, so that each form is told apart.
const canary = `canary/${randomBytes(18).toString('base64')}+=`;
const rowMarker = `row-${randomBytes(12).toString('hex')}`;
let stack: Stack;
let connection: Connection;
let histories = '';
let answers = '';

/** The text itself and the ways in which it could hide. */
function formsOf(secret: string): string[] {
  // Base64 depends on where in a text the secret begins: three alignments, without the characters at the seams.
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
  const ended = async (id: string, status: string) =>
    (await stack.runs(id)).some((run) => run.status === status);
  await until(() => ended(failing, 'Failed'), 'the run with the canary is Failed');
  await until(() => ended(working, 'Completed'), 'the other run is Completed');

  for (const id of [failing, working])
    for (const path of ['', 'runs/', 'logs/', 'backfills/'])
      answers += (await stack.call('GET', `/batch_exports/${id}/${path}`)).text;
  answers += (await stack.call('GET', '/batch_exports/')).text;

  connection = await Connection.connect({ address: stack.temporalAddress });
  const client = new Client({ connection });
  const query = `ExportdProject = "${stack.projectId}" and (ExportdBatchExport = "${failing}" or ExportdBatchExport = "${working}")`;
  // Visibility lags behind the executions for a moment: schedules, backfills and runs of both exports.
  const listed = async () => {
    const executions = [];
    for await (const execution of client.workflow.list({ query })) executions.push(execution);
    return executions;
  };
  await until(async () => (await listed()).length >= 6, 'all executions are listed');
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

async function journalAndLogs(): Promise<string> {
  const tables = [
    'journal_events',
    'commands',
    'log_lines',
    'batch_exports',
    'batch_export_runs',
    'stream_states',
  ];
  const texts: string[] = [];
  for (const table of tables) {
    const { rows } = await stack.pool.query<{ text: string | null }>(
      `select string_agg(line::text, ' ') as text from exportd.${table} line`,
    );
    texts.push(rows[0]?.text ?? '');
  }
  return texts.join('\n');
}

describe('a planted secret', () => {
  it('stands in no history', () => {
    expect(histories).toContain('WORKFLOW_EXECUTION_STARTED');
    for (const form of formsOf(canary)) expect(histories).not.toContain(form);
  });

  it('stands in no journal, command, log line or read model', async () => {
    const text = await journalAndLogs();
    expect(text).toContain('With a canary');
    for (const form of formsOf(canary)) expect(text).not.toContain(form);
  });

  it('stands in no answer', () => {
    expect(answers).toContain('With a canary');
    for (const form of formsOf(canary)) expect(answers).not.toContain(form);
  });

  it('is encrypted where it is kept', async () => {
    const { rows } = await stack.pool.query<{ text: string }>(
      `select string_agg(line::text, ' ') as text from exportd.destination_configs line`,
    );
    expect(rows[0]?.text).toContain('patched-prefix');
    for (const form of formsOf(canary)) expect(rows[0]?.text).not.toContain(form);
  });
});

describe('a history', () => {
  it('holds no row of the source and no config of a destination', () => {
    for (const text of [rowMarker, 'secret-prefix', 'patched-prefix', stack.bucket.bucket])
      expect(histories).not.toContain(text);
  });
});
