import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createRunRecorder, type RunRecorder } from '../../src/decisions/run_recorder.ts';
import { runDecider, type RunEvent } from '../../src/domain/run.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { openJournal } from '../../src/projections/open_journal.ts';
import { rebuild } from '../../src/projections/rebuild.ts';
import { createCommander, quickPolicies } from '../decisions/commander.ts';
import { createSimulatedRuns, fileOf } from '../decisions/simulated_runs.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';

let database: TestDatabase;
let journal: Journal;
let steps: RunRecorder;
let commander: ReturnType<typeof createCommander>;
let runs: ReturnType<typeof createSimulatedRuns>;

beforeAll(async () => {
  database = await createTestDatabase();
  journal = openJournal(database.pool);
  steps = createRunRecorder(journal);
});
afterAll(() => database.drop());
beforeEach(async () => {
  commander = createCommander(journal, quickPolicies());
  runs = createSimulatedRuns(journal, steps, commander);
  await commander.create();
});

const rechecks = async () =>
  (
    await database.pool.query<object>(
      `select run_id, rows, checks_done from exportd.rechecks where batch_export_id = $1
       order by data_interval_start`,
      [commander.batchExportId],
    )
  ).rows;

const append = (id: string, event: RunEvent) =>
  journal.transaction(async (transaction) =>
    (await transaction.lock(runDecider, id)).append(JSON.stringify(event), [event]),
  );
const rechecked = (check: 1 | 2): RunEvent => ({
  type: 'RunRechecked',
  data: { check, rows: 3, source_rows: 3 },
});

describe('the re-checks that are ahead', () => {
  it('hold the rows of the current manifest, the rejected ones included', async () => {
    const id = await runs.open(3);
    const run = await runs.begin(id);
    await runs.file(id, run, 'a', 5);
    await steps.planRejectedFile(id, run.generation, fileOf('a-rejected', 2));
    await runs.claim(id, run);
    expect(await rechecks()).toEqual([]);
    await steps.complete(id, run.generation, 'the manifest');
    expect(await rechecks()).toEqual([{ run_id: id, rows: 7, checks_done: 0 }]);
  });

  it('know how long after its interval a run completed', async () => {
    const id = await runs.open(30);
    await runs.publish(id, await runs.begin(id), 'a');
    const { rows } = await database.pool.query<{ completed_after_ms: number }>(
      'select completed_after_ms from exportd.rechecks where run_id = $1',
      [id],
    );
    const minutes = (rows[0]?.completed_after_ms ?? 0) / 60_000;
    expect(minutes).toBeGreaterThanOrEqual(30);
    expect(minutes).toBeLessThan(33);
  });

  it('are of the newest run of an interval', async () => {
    const first = await runs.open(3);
    await runs.publish(first, await runs.begin(first), 'a');
    await append(first, rechecked(1));
    const second = await runs.retry(first);
    await runs.publish(second, await runs.begin(second), 'b');
    expect(await rechecks()).toEqual([{ run_id: second, rows: 3, checks_done: 0 }]);
  });

  it('are over after the second count', async () => {
    const id = await runs.open(3);
    await runs.publish(id, await runs.begin(id), 'a');
    await append(id, rechecked(1));
    expect(await rechecks()).toEqual([{ run_id: id, rows: 3, checks_done: 1 }]);
    await append(id, rechecked(2));
    expect(await rechecks()).toEqual([]);
  });

  it('are over when the export is deleted', async () => {
    const id = await runs.open(3);
    await runs.publish(id, await runs.begin(id), 'a');
    await commander.command('delete');
    expect(await rechecks()).toEqual([]);
  });

  it('are left out for persons', async () => {
    await commander.command('update', { changes: { model: 'persons' } });
    const id = await runs.open(3);
    await runs.publish(id, await runs.begin(id), 'a');
    expect(await rechecks()).toEqual([]);
  });

  it('are the same after they were folded again', async () => {
    const dump = async () =>
      (await database.pool.query<object>('select * from exportd.rechecks order by run_id')).rows;
    const before = await dump();
    expect(before.length).toBeGreaterThan(2);
    await rebuild(database.pool);
    expect(await dump()).toEqual(before);
  });
});
