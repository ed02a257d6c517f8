import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '../setup/wait_for.ts';
import { exportedUuids, insertEvents, keysUnder, readManifest, sourceUuids } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';

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
    EXPORTD_MAINTENANCE_INTERVAL: '500ms',
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
      (
        await stack.pool.query<{ comparisons: number }>(
          'select comparisons from exportd.interval_comparisons where batch_export_id = $1 and run_id = $2',
          [id, third.id],
        )
      ).rows[0]?.comparisons ?? 0;
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
    expect(held.latest_error).toMatch(/^RowsMissingInSource: The source no longer has 1000 of the 1000 rows/);
    await maintenancePasses();
    expect(await exportedUuids(stack.bucket, first.manifest_key)).toEqual(exported);
    const [line] = (await stack.call('GET', `/batch_exports/${id}/logs/?search=RowsMissingInSource`)).body
      .results as { level: string }[];
    expect(line?.level).toBe('ERROR');
    const { body } = await stack.call('GET', `/batch_exports/${id}/`);
    expect(body).toMatchObject({ paused: false });
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
