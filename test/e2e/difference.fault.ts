import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { hourAgo } from '../setup/hours.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { blockEvent } from './journal_gate.ts';
import { exportedUuids, insertEvents, sourceUuids } from './rows.ts';
import { type RunResponse, startStack, type Stack } from './stack.ts';

const rows = 40;
let stack: Stack;
/** The hours of the tests, of which each has its own. */
let hours = 3;
beforeAll(async () => {
  stack = await startStack('difference-fault', failoverWorkers);
});
afterAll(() => stack.stop());

const newestRun = async (id: string, status: string): Promise<RunResponse> =>
  waitFor(async () => {
    const [newest] = await stack.runs(id);
    return newest?.status === status ? newest : undefined;
  }, `the newest run is ${status}`);

const deleteRows = (start: Date, count: number) =>
  stack.pool.query(
    `delete from events where uuid in (
       select uuid from events where team_id = $1 and inserted_at >= $2 order by inserted_at limit $3)`,
    [stack.projectId, start, count],
  );

/** An exported hour of which two rows were deleted from the source. */
async function exportHour() {
  const [start, end] = [hourAgo(hours), hourAgo(hours - 1)];
  hours += 1;
  await insertEvents(stack.pool, stack.projectId, start, rows);
  const id = await stack.createExport();
  const range = { start_at: start.toISOString(), end_at: end.toISOString() };
  await stack.call('POST', `/batch_exports/${id}/backfill/`, range);
  await newestRun(id, 'Completed');
  await deleteRows(start, 2);
  const path = `/batch_exports/${id}/intervals/${range.start_at}/`;
  const decide = (body: object) => stack.call('POST', `${path}difference/`, { reason: 'erasure', ...body });
  const left = () => sourceUuids(stack.pool, stack.projectId, range.start_at, range.end_at);
  return { id, start, path, decide, left };
}

describe('the removal of rows that the source lacks', () => {
  it('ends when another worker continues it, and nothing else is decided meanwhile', async () => {
    const { id, decide, left } = await exportHour();
    const gate = await blockEvent(stack, { type: 'RunPublishStarted' });
    expect((await decide({ decision: 'remove', rows: 2 })).status).toBe(200);
    await gate.reached();
    for (const body of [{ decision: 'keep' }, { decision: 'remove', rows: 2 }])
      expect(await decide(body)).toMatchObject({
        status: 409,
        body: { code: 'conflict', detail: expect.stringContaining('still active') },
      });
    await stack.killWorker();
    await gate.open();
    await stack.startWorker();
    const run = await newestRun(id, 'Completed');
    expect(await exportedUuids(stack.bucket, run.manifest_key)).toEqual(await left());
    expect((await stack.call('GET', `/batch_exports/${id}/`)).body.condition).toMatchObject({ cause: 'ok' });
  });

  it('removes nothing if the source lacks other rows by then', async () => {
    const { id, start, path, decide } = await exportHour();
    const [exported] = await stack.runs(id);
    const before = await exportedUuids(stack.bucket, exported?.manifest_key ?? null);
    const gate = await blockEvent(stack, { type: 'RunCounted' });
    expect((await decide({ decision: 'remove', rows: 2 })).status).toBe(200);
    await gate.reached();
    await deleteRows(start, 1);
    await gate.open();
    const held = await newestRun(id, 'Failed');
    expect(held.latest_error).toContain('no longer has 3 of the 40 rows');
    expect(await exportedUuids(stack.bucket, exported?.manifest_key ?? null)).toEqual(before);
    expect((await stack.call('GET', path)).body).toMatchObject({
      interval: { status: 'held', decision: null, held: { missing_rows: 3 } },
    });
    expect((await decide({ decision: 'remove', rows: 2 })).status).toBe(409);
    expect((await decide({ decision: 'remove', rows: 3 })).status).toBe(200);
    const run = await newestRun(id, 'Completed');
    expect(await exportedUuids(stack.bucket, run.manifest_key)).toHaveLength(37);
  });
});
