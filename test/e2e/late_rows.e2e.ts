import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { waitFor } from '../setup/wait_for.ts';
import { exportedUuids, insertEvents, keysUnder, readManifest, sourceUuids } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';
import { readComparisons } from '../maintenance/read_comparisons.ts';

const start = hourAgo(1);
const end = new Date(start.getTime() + 3_600_000);
const prefix = 'late-rows';
const timeoutMs = 240_000;
let stack: Stack;

beforeAll(async () => {
  stack = await startStack('late-rows', {
    EXPORTD_COMPARISON_FIRST: '1s',
    EXPORTD_COMPARISON_MAX_INTERVAL: '1s',
    EXPORTD_OLD_GENERATION_RETENTION: '0s',
    EXPORTD_ORPHAN_RETENTION: '0s',
    EXPORTD_MAINTENANCE_INTERVAL: '1s',
    EXPORTD_REPAIR_CONCURRENCY: '3',
    EXPORTD_MAX_BACKFILLS_PER_PROJECT: '5',
  });
  await insertEvents(stack.pool, stack.projectId, start, 100);
});
afterAll(() => stack.stop());

const completedRun = (exportId: string, generation: number): Promise<RunResponse> =>
  waitFor(
    async () =>
      (await stack.runs(exportId)).find((run) => run.status === 'Completed' && run.generation === generation),
    `generation ${generation} is Completed`,
    timeoutMs,
  );

/** What the Temporal UI says of a backfill. */
async function detailsOf(backfillId: string | null): Promise<string | undefined> {
  const connection = await Connection.connect({ address: stack.temporalAddress });
  try {
    const { workflow } = new Client({ connection });
    const handle = workflow.getHandle(workflowIds(stack.settings).backfill(String(backfillId)));
    return (await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata')).currentDetails;
  } finally {
    await connection.close();
  }
}

describe('late rows', () => {
  it('are found by a comparison and exported as the next generation; the older one is deleted', async () => {
    const id = await stack.createExport({}, { prefix });
    const range = { start_at: start.toISOString(), end_at: end.toISOString() };
    expect((await stack.call('POST', `/batch_exports/${id}/backfill/`, range)).status).toBe(200);
    const first = await completedRun(id, 1);
    const before = await readManifest(stack.bucket, first.manifest_key ?? '');
    await insertEvents(stack.pool, stack.projectId, start, 3, 1);

    const second = await completedRun(id, 2);
    expect(second.data_interval_start).toBe(first.data_interval_start);
    const expected = await sourceUuids(stack.pool, stack.projectId, range.start_at, range.end_at);
    expect(expected).toHaveLength(103);
    expect(await exportedUuids(stack.bucket, second.manifest_key)).toEqual(expected);
    // A repair gets its intervals one by one, so the Temporal UI does not say of how many.
    expect(await detailsOf(second.backfill_id)).toMatch(/^[1-9]\d* intervals? started$/);
    const { body } = await stack.call('GET', `/batch_exports/${id}/logs/?search=late`);
    expect(JSON.stringify(body.results)).toContain('3 late rows: source has 103 rows');

    const [olderFile] = before.files;
    await waitFor(
      async () => !(await keysUnder(stack.bucket, prefix)).includes(olderFile?.key ?? ''),
      'the older generation is deleted',
    );
    const after = await readManifest(stack.bucket, second.manifest_key ?? '');
    const referenced = [...after.files.map(({ key }) => key), second.manifest_key];
    // If an hour ends during the test, that hour's run has files there too.
    const interval = start.toISOString().replaceAll(/[-:]|\.\d+/g, '');
    const keys = (await keysUnder(stack.bucket, prefix)).filter((key) => key.includes(`${interval}-`));
    expect(keys.sort()).toEqual(referenced.sort());
    expect(await exportedUuids(stack.bucket, second.manifest_key)).toEqual(expected);

    // As many rows are deleted as arrive late: the counts are equal.
    await stack.pool.query(
      `delete from events where uuid in (select uuid from events where team_id = $1 and inserted_at >= $2
         order by inserted_at limit 4)`,
      [stack.projectId, start],
    );
    await insertEvents(stack.pool, stack.projectId, start, 4, 1);
    // The source lacks 4 of the rows, so they stay, and the late ones come as another file.
    const third = await completedRun(id, 3);
    const all = await exportedUuids(stack.bucket, third.manifest_key);
    expect(all).toHaveLength(107);
    expect(new Set(all)).toEqual(
      new Set([
        ...expected,
        ...(await sourceUuids(stack.pool, stack.projectId, range.start_at, range.end_at)),
      ]),
    );
    // Further comparisons order no further retry, and nothing leaves the bucket.
    const comparisons = async (): Promise<number> =>
      (await readComparisons(stack.pool, { run_id: third.id }))[0]?.comparisons ?? 0;
    const done = await comparisons();
    await waitFor(async () => (await comparisons()) >= done + 3, 'three more comparisons', timeoutMs);
    const ofInterval = (await stack.runs(id)).filter(
      (run) => run.data_interval_start === second.data_interval_start,
    );
    expect(ofInterval.map(({ status }) => status)).toEqual(['Completed', 'Completed', 'Completed']);
    expect(await exportedUuids(stack.bucket, third.manifest_key)).toEqual(all);
    const { body: logs } = await stack.call(
      'GET',
      `/batch_exports/${id}/logs/?search=They stay in the bucket`,
    );
    expect(logs.count).toBe(1);
  });
});

describe('rows that the source drops', () => {
  it.each([
    ['a retry of the run', (run: RunResponse) => ['runs', run.id, 'retry'].join('/')],
    ['a backfill of the hour', () => 'backfill'],
  ] as const)('stay in the bucket through %s and the maintenance', async (name, pathOf) => {
    const hour = hourAgo(name.startsWith('a retry') ? 3 : 5);
    const range = {
      start_at: hour.toISOString(),
      end_at: new Date(hour.getTime() + 3_600_000).toISOString(),
    };
    await insertEvents(stack.pool, stack.projectId, hour, 1_000);
    const id = await stack.createExport({}, { prefix: `dropped-${hour.getTime()}` });
    await stack.call('POST', `/batch_exports/${id}/backfill/`, range);
    const first = await completedRun(id, 1);
    const exported = await exportedUuids(stack.bucket, first.manifest_key);
    expect(exported).toHaveLength(1_000);

    await stack.pool.query(
      'delete from events where team_id = $1 and inserted_at >= $2 and inserted_at < $3',
      [stack.projectId, range.start_at, range.end_at],
    );
    const { status } = await stack.call(
      'POST',
      `/batch_exports/${id}/${pathOf(first)}/`,
      name.startsWith('a retry') ? {} : range,
    );
    expect(status).toBe(200);
    const held = await waitFor(
      async () => (await stack.runs(id)).find((run) => run.status === 'Failed'),
      'the second run ends',
      timeoutMs,
    );
    expect(held.latest_error).toMatch(
      /^RowsMissingInSource: The source no longer has 1,000 of the 1,000 rows/,
    );
    await maintenancePasses();
    expect(await exportedUuids(stack.bucket, first.manifest_key)).toEqual(exported);
    const [line] = (await stack.call('GET', `/batch_exports/${id}/logs/?search=RowsMissingInSource`)).body
      .results as { level: string }[];
    expect(line?.level).toBe('ERROR');
    const { body } = await stack.call('GET', `/batch_exports/${id}/`);
    expect(body).toMatchObject({ paused: false });
  });
});

describe('late rows in many intervals', () => {
  const intervals = 10;
  const first = hourAgo(intervals + 10);
  const seconds = intervals * 3_600;
  const range = {
    start_at: first.toISOString(),
    end_at: new Date(first.getTime() + 1_000 * seconds).toISOString(),
  };

  /** The largest number of runs of an export's repair at the same time, and how many intervals it has found and completed. */
  const repairRuns = async (id: string) => {
    const { rows } = await stack.pool.query<{ at_once: number; completed: number; found: number }>(
      `with repair as (select run.* from exportd.batch_export_runs run
         join exportd.backfills backfill on backfill.id = run.backfill_id
         where backfill.kind = 'repair' and backfill.batch_export_id = $1)
       select count(distinct run.data_interval_start) filter (where run.status = 'Completed')::int as completed,
         (select count(*) from (select data_interval_start from repair union
           select data_interval_start from exportd.interval_repairs where batch_export_id = $1) found)::int as found,
         coalesce(max((select count(*) from repair other where other.created_at <= run.created_at
           and (other.finished_at is null or other.finished_at > run.created_at))), 0)::int as at_once
       from repair run`,
      [id],
    );
    return rows[0] ?? { at_once: 0, completed: 0, found: 0 };
  };

  it('are exported by three runs at a time, and delay neither a pause nor a backfill', async () => {
    const [id, other] = [await stack.createExport(), await stack.createExport()];
    await insertEvents(stack.pool, stack.projectId, first, intervals * 2, seconds);
    await stack.call('POST', `/batch_exports/${id}/backfill/`, range);
    await waitFor(
      async () =>
        (
          await stack.pool.query(
            `select from exportd.intervals where batch_export_id = $1 and status = 'exported'`,
            [id],
          )
        ).rowCount === intervals,
      'all intervals are exported',
      timeoutMs,
    );
    await insertEvents(stack.pool, stack.projectId, new Date(first.getTime() + 60_000), intervals, seconds);
    await waitFor(
      async () => {
        const { completed, found } = await repairRuns(id);
        return completed >= 3 && found === intervals;
      },
      'all late rows are found, and the repair has begun',
      timeoutMs,
    );

    await stack.call('POST', `/batch_exports/${id}/pause/`, {});
    await waitFor(
      async () => (await stack.call('GET', `/batch_exports/${id}/`)).body.paused,
      'the pause applies',
    );
    // Each late row was a command before, and this one waited behind them for minutes.
    const { rows: commands } = await stack.pool.query<{ name: string }>(
      'select name from exportd.commands where batch_export_id = $1 order by position',
      [id],
    );
    expect(commands.map(({ name }) => name)).toEqual(['create', 'backfill', 'pause']);
    const backfill = await stack.call('POST', `/batch_exports/${other}/backfills/`, {
      start_at: range.start_at,
      end_at: new Date(first.getTime() + 3_600_000).toISOString(),
    });
    expect(backfill).toMatchObject({ status: 201 });

    await stack.call('POST', `/batch_exports/${id}/unpause/`, {});
    await waitFor(
      async () => (await repairRuns(id)).completed === intervals,
      'all late rows are exported',
      timeoutMs,
    );
    expect((await repairRuns(id)).at_once).toBeLessThanOrEqual(3);
    const connection = await Connection.connect({ address: stack.temporalAddress });
    const terminated = await new Client({ connection }).workflow.count(
      `ExportdBatchExport = "${id}" and ExecutionStatus = "Terminated"`,
    );
    await connection.close();
    expect(terminated.count).toBe(0);
  });
});

/** Waits until the maintenance has deleted the older generation of another export, which it does after each run. */
async function maintenancePasses(): Promise<void> {
  const hour = hourAgo(7);
  const id = await stack.createExport({}, { prefix: `passes-${Date.now()}` });
  const range = { start_at: hour.toISOString(), end_at: new Date(hour.getTime() + 3_600_000).toISOString() };
  await insertEvents(stack.pool, stack.projectId, hour, 1);
  await stack.call('POST', `/batch_exports/${id}/backfill/`, range);
  const first = await completedRun(id, 1);
  const { files } = await readManifest(stack.bucket, first.manifest_key ?? '');
  await stack.call('POST', `/batch_exports/${id}/runs/${first.id}/retry/`, {});
  await waitFor(
    async () => !(await keysUnder(stack.bucket, '')).includes(files[0]?.key ?? ''),
    'the maintenance deletes an older generation',
    timeoutMs,
  );
}
