import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { waitFor } from '../setup/wait_for.ts';
import { exportedRows, exportedUuids, insertEvents, readManifest, sourceUuids } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

let stack: Stack;
/** Sessions of a test's writers, which end with the test. */
let writers: pg.Client[] = [];

beforeAll(async () => {
  stack = await startStack('late', {
    // Longer than a test needs to commit, and short enough to wait for.
    EXPORTD_SETTLE_TIMEOUT: '15s',
    EXPORTD_SETTLE_POLL_INTERVAL: '1s',
    EXPORTD_MAINTENANCE_INTERVAL: '2s',
    EXPORTD_COMPARISON_FIRST: '0s',
  });
});
afterEach(async () => {
  await Promise.all(writers.map((writer) => writer.end()));
  writers = [];
});
afterAll(async () => {
  await stack.stop();
});

/** A session in a transaction whose time is fixed. */
async function openTransaction(): Promise<pg.Client> {
  const writer = new pg.Client({ connectionString: stack.databaseUrl, application_name: 'a writer' });
  await writer.connect();
  writers.push(writer);
  await writer.query('begin');
  await writer.query('select now()');
  return writer;
}

const writeEvent = (writer: pg.Client, insertedAt: Date | null) =>
  writer.query(
    `insert into events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
     values ($1, gen_random_uuid(), 'late', 'late', now(), coalesce($2, now()))`,
    [stack.projectId, insertedAt],
  );

const second = (start: Date, seconds: number): Date => new Date(start.getTime() + seconds * 1_000);

/** Backfills the hour that starts `hours` ago. */
async function backfillHour(exportId: string, hours: number): Promise<RunResponse> {
  await stack.call('POST', `/batch_exports/${exportId}/backfill/`, {
    start_at: hourAgo(hours).toISOString(),
    end_at: hourAgo(hours - 1).toISOString(),
  });
  return waitFor(async () => (await stack.runs(exportId))[0], 'the run of the backfill');
}

async function logOf(exportId: string, search: string): Promise<string[]> {
  const { body } = await stack.call('GET', `/batch_exports/${exportId}/logs/?search=${search}`);
  return (body.results as { message: string }[]).map(({ message }) => message);
}

const waitForBarrier = (exportId: string) =>
  waitFor(
    async () => (await logOf(exportId, 'transaction')).length > 0,
    'the log reports that the run waits for a transaction',
  );

/** Waits until the export has a Completed run of this generation. */
const completedRun = (exportId: string, generation: number): Promise<RunResponse> =>
  waitFor(
    async () =>
      (await stack.runs(exportId)).find((run) => run.status === 'Completed' && run.generation === generation),
    `generation ${generation} is Completed`,
  );

describe('a run', () => {
  it('waits for a transaction that has written before the cutoff and commits after it', async () => {
    const start = hourAgo(5);
    await insertEvents(stack.pool, stack.projectId, start, 50);
    const writer = await openTransaction();
    await writeEvent(writer, second(start, 10));
    const id = await stack.createExport();
    const { id: runId } = await backfillHour(id, 5);
    await waitForBarrier(id);
    await writeEvent(writer, second(start, 20));
    await writer.query('commit');
    const run = await stack.waitForRun(id, runId, 'Completed');
    expect(run.records_completed).toBe(52);
    expect(await readManifest(stack.bucket, run.manifest_key ?? '')).toMatchObject({ settled: true });
    expect((await verifyExport(stack, id)).findings).toEqual([]);
  });

  it('waits for a transaction that starts before the cutoff and writes after it', async () => {
    const id = await stack.createExport({ interval: 'every 1 minutes' });
    const writer = await openTransaction();
    const { rows } = await writer.query<{ minute: string }>(`select date_trunc('minute', now()) as minute`);
    const minute = new Date(rows[0]?.minute ?? '').toISOString();
    await waitForBarrier(id);
    await writeEvent(writer, null);
    await writer.query('commit');
    const run = await waitFor(
      async () =>
        (await stack.runs(id)).find(
          ({ data_interval_start, status }) =>
            new Date(data_interval_start).toISOString() === minute && status === 'Completed',
        ),
      'the run of the minute in which the transaction started',
    );
    expect(run.records_completed).toBe(1);
    await stack.call('DELETE', `/batch_exports/${id}/`);
  });

  it('of an old interval does not wait for a transaction that starts now and has not written', async () => {
    await insertEvents(stack.pool, stack.projectId, hourAgo(48), 10);
    await openTransaction();
    const id = await stack.createExport();
    const { id: runId } = await backfillHour(id, 48);
    const run = await stack.waitForRun(id, runId, 'Completed');
    expect(await readManifest(stack.bucket, run.manifest_key ?? '')).toMatchObject({
      rows: 10,
      settled: true,
    });
    expect(await logOf(id, 'transaction')).toEqual([]);
  });
});

describe('a transaction that outlives the wait of a run', () => {
  it('is followed up: its events arrive, and its persons, however old the interval is', async () => {
    const start = hourAgo(7);
    const end = hourAgo(6);
    await insertEvents(stack.pool, stack.projectId, start, 50);
    const writer = await openTransaction();
    // With its first write it is known to be able to write into old intervals.
    await writer.query(
      `insert into persons (team_id, id, properties, created_at, updated_at)
       values ($1, '00000000-0000-4000-8000-000000000001', '{}', $2, $2)`,
      [stack.projectId, second(start, 30)],
    );
    const events = await stack.createExport();
    const persons = await stack.createExport({ model: 'persons' });
    await Promise.all([backfillHour(events, 7), backfillHour(persons, 7)]);
    for (const id of [events, persons]) {
      const { manifest_key } = await completedRun(id, 1);
      expect(await readManifest(stack.bucket, manifest_key ?? '')).toMatchObject({ settled: false });
      expect((await logOf(id, 'Stopped')).join()).toContain('application a writer');
    }
    for (const seconds of [1, 2, 3]) await writeEvent(writer, second(start, seconds));
    await writer.query(
      `insert into person_distinct_ids (team_id, distinct_id, person_id, updated_at)
       values ($1, 'late', '00000000-0000-4000-8000-000000000001', $2)`,
      [stack.projectId, second(start, 30)],
    );
    await writer.query('commit');

    const { manifest_key } = await completedRun(events, 2);
    const expected = await sourceUuids(stack.pool, stack.projectId, start.toISOString(), end.toISOString());
    expect(expected).toHaveLength(53);
    expect(await exportedUuids(stack.bucket, manifest_key)).toEqual(expected);
    const latest = await completedRun(persons, 2);
    const rows = await exportedRows(stack.bucket, latest.manifest_key ?? '');
    expect(rows).toEqual([expect.objectContaining({ distinct_id: 'late' })]);
    for (const id of [events, persons])
      expect((await logOf(id, 'Exporting%20the%20interval%20again')).length).toBe(1);
    expect((await verifyExport(stack, events)).findings).toEqual([]);
  });
});
