import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '../setup/wait_for.ts';
import { exportedUuids, insertEvents, keysUnder, readManifest, sourceUuids } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';

const start = hourAgo(1);
const end = new Date(start.getTime() + 3_600_000);
/** A delay after the end of the interval that ends `seconds` after the start of the test. */
const recheckAfter = (seconds: number): string => `${Date.now() - end.getTime() + seconds * 1_000}ms`;
const prefix = 'late-rows';
const timeoutMs = 240_000;
let stack: Stack;

beforeAll(async () => {
  stack = await startStack('late-rows', {
    EXPORTD_RECHECK_FIRST: recheckAfter(20),
    // On a slow machine the first re-check can be due before the late rows exist, or before the run has completed.
    EXPORTD_RECHECK_SECOND: recheckAfter(150),
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
  it('are found by the re-check and exported as the next generation; the older one is deleted', async () => {
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
  });
});
