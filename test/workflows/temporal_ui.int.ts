import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { WorkflowNotFoundError } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  createControlPlaneHarness,
  lastHours,
  type ControlPlaneHarness,
  wakingBackfills,
} from '../temporal/control_plane_harness.ts';

let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness({
    EXPORTD_CONTINUE_AS_NEW_COMMANDS: '5',
    EXPORTD_BASE_URL: 'https://exportd.example.com',
  });
  await stack.startWorker();
});
afterAll(() => stack.close());

const handleOf = (workflowId: string) => stack.client.workflow.getHandle(workflowId);

const currentDetailsOf = async (workflowId: string): Promise<string> =>
  (await handleOf(workflowId).query<{ currentDetails?: string }>('__temporal_workflow_metadata'))
    .currentDetails ?? '';

/** Handles the error of a workflow that has not started: there is nothing yet. */
function isNotFound(error: unknown): undefined {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

/** The summaries in a history, by the type of their event; of a local activity, by its name. */
async function summariesOf(workflowId: string): Promise<string[]> {
  const { events } = await handleOf(workflowId).fetchHistory();
  return (events ?? []).flatMap(({ userMetadata, timerStartedEventAttributes, ...event }) => {
    if (!userMetadata?.summary) return [];
    const type = timerStartedEventAttributes
      ? 'timer'
      : (event.activityTaskScheduledEventAttributes?.activityType?.name ??
        (event.markerRecordedEventAttributes ? 'local activity' : 'start'));
    return [`${type}: ${defaultPayloadConverter.fromPayload<string>(userMetadata.summary)}`];
  });
}

describe('in the Temporal UI', () => {
  it('a schedule says name, bucket, condition, next run, and what it decided', async () => {
    const id = await stack.createExport({ name: 'Shop daily', end_at: null });
    await stack.pool.query(
      `insert into exportd.destination_configs (batch_export_id, version, destination_type, config, secrets)
       select id, config_version, 'S3', '{"bucket_name": "shop", "prefix": "events"}', '{}'
       from exportd.batch_exports where id = $1`,
      [id],
    );
    const workflowId = workflowIds(stack.settings).schedule(id);
    const description = await handleOf(workflowId).describe();
    expect(await description.staticSummary()).toBe('Schedule of "Shop daily", every hour');
    expect(await description.staticDetails()).toContain(
      `[**Shop daily**](https://exportd.example.com/exports/${id})`,
    );
    await stack.command(id, 'update', { changes: { name: 'Shop: *renamed*' } });
    const details =
      /^\*\*Shop: \\\*renamed\\\*\*\*: ok\. .*\n\n- Next run: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n- Waits for: the next interval\n- Decided at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: update\n- Rows: events, every hour, .*\n- Destination: `s3:\/\/shop\/events`\n/;
    await waitFor(async () => details.test(await currentDetailsOf(workflowId)), 'the details of the update');
    const summaries = await summariesOf(workflowId);
    expect(summaries).toContain('local activity: update');
    expect(summaries.at(-1)).toMatch(/^timer: until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: the next interval$/);
    await stack.command(id, 'pause');
    const paused = () => currentDetailsOf(workflowId);
    await waitFor(async () => (await paused()).includes('- Waits for: unpause'), 'the pause');
    expect(await paused()).toContain('- Next run: none\n');
  });

  it('a schedule still says what it is after it continued as new', async () => {
    const id = await stack.createExport({ name: 'Long lived' });
    const workflowId = workflowIds(stack.settings).schedule(id);
    const first = (await handleOf(workflowId).describe()).runId;
    for (const name of ['pause', 'unpause', 'pause', 'unpause', 'pause'] as const)
      await stack.command(id, name);
    await waitFor(async () => (await handleOf(workflowId).describe()).runId !== first, 'a new execution');
    // Temporal drops the summary and the details of the first execution.
    await waitFor(
      async () => (await currentDetailsOf(workflowId)).startsWith('**Long lived**: '),
      'its details',
    );
  });

  it('a backfill still says what it is after it continued as new', async () => {
    stack.behaviour.duringExport = wakingBackfills(stack);
    const id = await stack.createExport({ name: 'Long backfill' });
    const { outcome } = await stack.command(id, 'backfill', lastHours(24));
    const workflowId = workflowIds(stack.settings).backfill(String(outcome?.backfill_id));
    // A command has its outcome before the workflow that it makes is started.
    await waitFor(
      () =>
        handleOf(workflowId)
          .result()
          .then(() => true, isNotFound),
      'the end of the backfill',
    );
    const { events } = await handleOf(workflowId).fetchHistory();
    expect(events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId).toMatch(/./);
    const details = await currentDetailsOf(workflowId);
    expect(details).toMatch(
      /^24 of 24 intervals.*\n\nThis backfill exports intervals of \[\*\*Long backfill/,
    );
    expect(details).toContain(`](https://exportd.example.com/exports/${id}?tab=backfills)`);
    stack.resetBehaviour();
  });

  it('a run says its interval, its bucket and its rows', async () => {
    const id = await stack.createExportWithRun();
    const run = await stack.waitForRun(id, 'Completed');
    const workflowId = workflowIds(stack.settings).run(run);
    expect(await handleOf(workflowId).result()).toEqual({
      status: 'Completed',
      latest_error: null,
      rows: expect.any(Number),
    });
    expect(await currentDetailsOf(workflowId)).toMatch(/^Completed: \d+ rows?$/);
    const start = encodeURIComponent(run.data_interval_start);
    expect(await (await handleOf(workflowId).describe()).staticDetails()).toContain(
      `](https://exportd.example.com/exports/${id}/intervals/${start})`,
    );
    expect(await summariesOf(workflowId)).toContainEqual(
      expect.stringMatching(/^exportInterval: \d+ rows?$/),
    );
  });

  it('the views of the README find workflows, and need nothing that the filter of the UI lacks', async () => {
    const id = await stack.createExport({ name: 'Name with blanks' });
    await stack.command(id, 'backfill', lastHours(1));
    const { data_interval_start } = await stack.waitForRun(id, 'Completed');
    const readme = readFileSync('src/temporal/README.md', 'utf8');
    const views = [...readme.matchAll(/^- ([a-z ]+): `(\w+ = '.+)`$/gm)].map(([, name = '', query = '']) => ({
      name,
      query: query
        .replace(/ExportdBatchExport = '[^']+'/, `ExportdBatchExport = '${id}'`)
        .replace(/'\d{4}-[^']+Z'/, `'${data_interval_start}'`),
    }));
    expect(views.map(({ name }) => name)).toEqual([
      'exports',
      'runs in progress',
      'failed runs',
      'everything of an export',
      'one interval',
    ]);
    const count = async (query: string) => (await stack.client.workflow.count(query)).count;
    for (const { query } of views) {
      expect(query).not.toMatch(/ORDER BY|ExportdName|\(/);
      // Rejects what the server cannot parse.
      await count(query);
    }
    const [, , , everything = { query: '' }, interval = { query: '' }] = views;
    // The schedule, the backfill and the run.
    await waitFor(async () => (await count(everything.query)) === 3, 'everything of the export');
    await waitFor(async () => (await count(interval.query)) === 1, 'its interval');
  });

  it('the call stack says where an execution waits, by the lines of our sources', async () => {
    let finish: (() => void) | undefined;
    stack.behaviour.duringExport = () => new Promise((resolve) => (finish = resolve));
    const id = await stack.createExport({ name: 'Waits', end_at: null });
    await stack.command(id, 'backfill', lastHours(1));
    const run = await stack.waitForRun(id, 'Running');
    await waitFor(() => finish !== undefined, 'the export');
    const ids = workflowIds(stack.settings);
    const stackOf = (workflowId: string) => handleOf(workflowId).query<string>('__stack_trace');
    const schedule = /^ {4}at batchExportSchedule \(workflows\/schedule\.ts:\d+:0\)$/m;
    expect(await stackOf(ids.schedule(id))).toMatch(schedule);
    expect(await stackOf(ids.run(run))).toMatch(/^ {4}at exportInterval \(workflows\/run\.ts:\d+:0\)$/m);
    finish?.();
    await stack.waitForRun(id, 'Completed');
    await stack.command(id, 'pause');
    await waitFor(
      async () => (await currentDetailsOf(ids.schedule(id))).includes('- Waits for: unpause'),
      'the pause',
    );
    expect(await stackOf(ids.schedule(id))).toMatch(schedule);
    stack.resetBehaviour();
  });

  it('a backfill says of which export and time it is, and until when it waits', async () => {
    let finish: (() => void) | undefined;
    stack.behaviour.duringExport = () => new Promise((resolve) => (finish = resolve));
    const id = await stack.createExport({ name: 'Filled' });
    await stack.command(id, 'backfill', lastHours(1));
    const { backfill_id } = await stack.waitForRun(id, 'Running');
    const workflowId = workflowIds(stack.settings).backfill(String(backfill_id));
    const start = hourAgo(1).toISOString().slice(0, 16).replace('T', ' ');
    const description = await handleOf(workflowId).describe();
    expect(await description.staticSummary()).toMatch(/^Backfill of "Filled", \d{4}-\d\d-\d\d \d\d:\d\d–/);
    expect(await description.staticDetails()).toContain(`[${start}–`);
    await waitFor(
      async () =>
        (await summariesOf(workflowId)).some((summary) => /^timer: until .* UTC: a run to end/.test(summary)),
      'the timer of the backfill',
    );
    await waitFor(() => finish !== undefined, 'the export');
    finish?.();
    expect(await handleOf(workflowId).result()).toEqual({
      status: 'Completed',
      runs_ended: 1,
      total_runs: 1,
    });
    stack.resetBehaviour();
  });
});
