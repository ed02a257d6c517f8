import { afterAll, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { createBackfillBarriers } from '../../src/export/backfill_barriers.ts';
import { checkRunBarrier } from '../../src/export/count.ts';
import { createCommander, minutesAgo, quickPolicies } from '../decisions/commander.ts';
import { readRuns } from '../decisions/read_runs.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';

const { signal } = new AbortController();
let harness: ExportHarness;
let writer: pg.Client;
beforeAll(async () => {
  harness = await createExportHarness();
  writer = new pg.Client({ connectionString: harness.database.url, application_name: 'writer' });
  await writer.connect();
});
afterAll(async () => {
  await writer.end();
  await harness.close();
});

it('lets the intervals of a backfill wait once for the transactions that were open when it began', async () => {
  const policies = quickPolicies();
  const commander = createCommander(harness.journal, policies);
  const { batchExportId } = commander;
  await commander.create();
  // The config of the export.
  await harness.createRun({ batchExportId });
  /** Backfills three minutes that ended a while ago. @returns the runs in their order */
  const backfill = async (minutes: number): Promise<readonly string[]> => {
    const { command } = await commander.command('backfill', {
      start_at: minutesAgo(minutes + 3),
      end_at: minutesAgo(minutes),
    });
    const backfill_id = command.outcome?.backfill_id ?? '';
    await advanceBackfill(harness.journal, policies, backfill_id);
    const runs = await readRuns(harness.database.pool, { backfill_id });
    return runs.map((run) => run.id);
  };
  /** Begins a transaction that has written a row. */
  const write = async (): Promise<void> => {
    await writer.query('begin');
    await writer.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp)
       values (1, gen_random_uuid(), 'late', 'person', '{}', now())`,
    );
  };
  const check = (run_id: string | undefined) =>
    checkRunBarrier(harness, { run_id: run_id ?? '', state: { phase: 'settling' } }, signal);

  const [first, second] = await backfill(20);
  await write();
  expect((await check(first)).state.phase).toBe('transactions');
  expect((await check(second)).state.phase).toBe('transactions');
  await writer.query('commit');
  expect(await check(first)).toMatchObject({ state: { phase: 'open' }, counted: { rows: 0 } });
  // A transaction that began later cannot add rows to an interval that ended before.
  await write();
  expect((await check(second)).state.phase).toBe('open');
  const [other] = await backfill(40);
  expect((await check(other)).state.phase).toBe('transactions');
  await writer.query('rollback');
});

it('reads the range of a backfill once, also if it grows', async () => {
  const read: string[] = [];
  const barriers = createBackfillBarriers((id) => {
    read.push(id);
    return Promise.resolve(null);
  }, 30_000);
  const { run_id } = await harness.createRun();
  const run = await harness.recorder.readActive(run_id);
  const repair = { kind: 'repair', backfill_id: 'growing', definition: 'kept' } as const;
  const ofRepair = { ...run, spec: { ...run.spec, purpose: repair } };
  expect([await barriers.of(ofRepair), await barriers.of(ofRepair)]).toEqual([undefined, undefined]);
  expect(read).toEqual(['growing']);
});
