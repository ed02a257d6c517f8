import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '../setup/until.ts';
import { exportedUuids, hourAgo, insertEvents, keysUnder, readManifest, sourceUuids } from './rows.ts';
import { startStack, type ShownRun, type Stack } from './stack.ts';

const start = hourAgo(1);
const end = new Date(start.getTime() + 3_600_000);
/** Late enough that the run has completed by then: a count that is due before is left out. */
const recheckMs = Date.now() - end.getTime() + 40_000;
const prefix = 'late-rows';
let stack: Stack;

beforeAll(async () => {
  stack = await startStack('late-rows', {
    EXPORTD_RECHECK_FIRST_MS: String(recheckMs),
    EXPORTD_RECHECK_SECOND_MS: '0',
    EXPORTD_GRACE_MS: '0',
    EXPORTD_SWEEP_AFTER_MS: '0',
    EXPORTD_UPKEEP_INTERVAL_MS: '500',
  });
  await insertEvents(stack.pool, stack.projectId, start, 100);
});
afterAll(() => stack.stop());

const completedRun = (exportId: string, generation: number): Promise<ShownRun> =>
  until(
    async () =>
      (await stack.runs(exportId)).find((run) => run.status === 'Completed' && run.generation === generation),
    `generation ${generation} is Completed`,
  );

describe('rows that come late', () => {
  it('are found by the re-check and exported as the next generation; the older one is removed', async () => {
    const id = await stack.createExport({}, { prefix });
    const range = { start_at: start.toISOString(), end_at: end.toISOString() };
    expect((await stack.call('POST', `/batch_exports/${id}/backfill/`, range)).status).toBe(200);
    const first = await completedRun(id, 1);
    expect(Date.now()).toBeLessThan(end.getTime() + recheckMs);
    const before = await readManifest(stack.bucket, first.manifest_key ?? '');
    await insertEvents(stack.pool, stack.projectId, start, 3, 1);

    const second = await completedRun(id, 2);
    expect(second.data_interval_start).toBe(first.data_interval_start);
    const expected = await sourceUuids(stack.pool, stack.projectId, range.start_at, range.end_at);
    expect(expected).toHaveLength(103);
    expect(await exportedUuids(stack.bucket, second.manifest_key)).toEqual(expected);
    const { body } = await stack.call('GET', `/batch_exports/${id}/logs/?search=late`);
    expect(JSON.stringify(body.results)).toContain('3 late rows: the source now has 103 records');

    const [older] = before.files;
    await until(
      async () => !(await keysUnder(stack.bucket, prefix)).includes(older?.key ?? ''),
      'the older generation to be removed',
    );
    const after = await readManifest(stack.bucket, second.manifest_key ?? '');
    const named = [...after.files.map(({ key }) => key), second.manifest_key];
    expect((await keysUnder(stack.bucket, prefix)).sort()).toEqual(named.sort());
    expect(await exportedUuids(stack.bucket, second.manifest_key)).toEqual(expected);
  });
});
