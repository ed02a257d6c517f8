import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { stableWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { insertEvents, readManifest } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { startStack, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack('late', stableWorkers);
});
afterAll(async () => {
  await stack.stop();
});

describe('a run', () => {
  it.each([
    { order: 'BEGIN before the cutoff, first write after it', hour: 3, early: false },
    { order: 'BEGIN and first write before the cutoff', hour: 5, early: true },
  ])('waits for a transaction that commits late: $order', async ({ hour, early }) => {
    const start = hourAgo(hour);
    await insertEvents(stack.pool, stack.projectId, start, 50);
    const writer = new pg.Client({ connectionString: stack.databaseUrl, application_name: 'a writer' });
    await writer.connect();
    const write = (seconds: number) =>
      writer.query(
        `insert into events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
         values ($1, gen_random_uuid(), 'late', 'late', $2, $2)`,
        [stack.projectId, new Date(start.getTime() + seconds * 1_000)],
      );
    await writer.query('begin');
    await writer.query('select now()');
    if (early) await write(10);
    const id = await stack.createExport();
    await stack.call('POST', `/batch_exports/${id}/backfill/`, {
      start_at: start.toISOString(),
      end_at: hourAgo(hour - 1).toISOString(),
    });
    const [createdRun] = await stack.runs(id);
    await waitFor(async () => {
      const { body } = await stack.call('GET', `/batch_exports/${id}/logs/?search=transaction`);
      return (body.results as unknown[]).length > 0;
    }, 'the log reports that the run waits for a transaction');
    await write(20);
    await writer.query('commit');
    await writer.end();
    const run = await stack.waitForRun(id, createdRun?.id ?? '', 'Completed');
    expect(run.records_completed).toBe(early ? 52 : 51);
    expect(await readManifest(stack.bucket, run.manifest_key ?? '')).toMatchObject({ settled: true });
    expect((await verifyExport(stack, id)).findings).toEqual([]);
  });
});
