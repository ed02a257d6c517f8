import { afterEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createBucket } from '../setup/bucket.ts';
import { until } from '../setup/until.ts';
import { createGate } from './gate.ts';
import { exportedUuids, hourAgo, insertEvents, readManifest, sourceUuids } from './rows.ts';
import { startStack, type ShownRun, type Stack } from './stack.ts';

let stack: Stack;
afterEach(async () => {
  await stack.stop();
});

async function backfillOneHour(exportId: string, hour: number): Promise<ShownRun> {
  const answer = await stack.call('POST', `/batch_exports/${exportId}/backfill/`, {
    start_at: hourAgo(hour).toISOString(),
    end_at: hourAgo(hour - 1).toISOString(),
  });
  expect(answer.status).toBe(200);
  const [run] = await stack.runs(exportId);
  if (!run) throw new Error('The backfill opened no run.');
  return run;
}

async function expectSourceRows(run: ShownRun): Promise<void> {
  const expected = await sourceUuids(
    stack.pool,
    stack.projectId,
    run.data_interval_start,
    run.data_interval_end,
  );
  expect(expected.length).toBeGreaterThan(0);
  expect(await exportedUuids(stack.bucket, run.manifest_key)).toEqual(expected);
}

describe('a run', () => {
  it('survives SIGKILL of the worker in its middle, and shows growing counts', async () => {
    stack = await startStack('sigkill');
    await insertEvents(stack.pool, stack.projectId, hourAgo(3), 500_000);
    const id = await stack.createExport({}, { compression: null });
    const { id: runId } = await backfillOneHour(id, 3);
    const counts = new Set<number>();
    const watch = async (enough: (run: ShownRun) => boolean) => {
      await until(async () => {
        const { body } = await stack.call('GET', `/batch_exports/${id}/runs/${runId}/`);
        const run = body as unknown as ShownRun;
        counts.add(run.records_completed);
        return enough(run);
      }, 'the run gets on');
    };
    await watch(({ records_completed }) => records_completed > 0);
    await stack.killWorker();
    await stack.startWorker();
    await watch(({ status }) => status === 'Completed');
    const seen = [...counts];
    expect(seen.length).toBeGreaterThanOrEqual(3);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    const run = await stack.runIn(id, runId, 'Completed');
    expect(run).toMatchObject({ records_completed: 500_000, records_total_count: 500_000 });
    await expectSourceRows(run);
  }, 240_000);

  it('outlives an S3 server that is stopped in its middle', async () => {
    const bucket = await createBucket();
    const gate = await createGate(bucket.endpoint);
    stack = await startStack('s3-stopped', {}, { bucket });
    await insertEvents(stack.pool, stack.projectId, hourAgo(3), 200_000);
    const id = await stack.createExport({}, { compression: null, endpoint_url: gate.endpoint });
    const { id: runId } = await backfillOneHour(id, 3);
    await until(() => gate.bytesIn() > 5_000_000, 'a part is on its way');
    gate.shut();
    // Connections refused and activity attempts that failed because of it: the outage is felt, not slept through.
    await until(() => gate.turnedAway() >= 5, 'the outage is felt');
    gate.open();
    await expectSourceRows(await stack.runIn(id, runId, 'Completed'));
    await gate.close();
  }, 240_000);

  it('fails at once with words a user understands when the credentials are wrong', async () => {
    stack = await startStack('credentials');
    await insertEvents(stack.pool, stack.projectId, hourAgo(3), 10);
    const id = await stack.createExport({}, { aws_secret_access_key: 'not-the-secret' });
    const { id: runId } = await backfillOneHour(id, 3);
    const run = await stack.runIn(id, runId, 'Failed');
    expect(run.latest_error).toMatch(/^SignatureDoesNotMatch: .*aws_secret_access_key/);
    expect(run.latest_error).not.toContain('not-the-secret');
  });

  it.each(['BEGIN before the cut, first write after it', 'BEGIN and first write before the cut'])(
    'waits for a transaction that commits late: %s',
    async (order) => {
      // The settle time is longer than the writer needs to show up, so that only the barrier can hold the run back.
      stack = await startStack('late', { EXPORTD_SETTLE_MAX_MS: '60000' });
      const start = hourAgo(3);
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
      if (order.startsWith('BEGIN and')) await write(10);
      const id = await stack.createExport();
      const { id: runId } = await backfillOneHour(id, 3);
      await until(async () => {
        const { body } = await stack.call('GET', `/batch_exports/${id}/logs/?search=transaction`);
        return (body.results as unknown[]).length > 0;
      }, 'the log says that the run waits for a transaction');
      await write(20);
      await writer.query('commit');
      await writer.end();
      const run = await stack.runIn(id, runId, 'Completed');
      expect(await readManifest(stack.bucket, run.manifest_key ?? '')).toMatchObject({ settled: true });
      await expectSourceRows(run);
      expect(run.records_completed).toBe(order.startsWith('BEGIN and') ? 52 : 51);
    },
  );
});
