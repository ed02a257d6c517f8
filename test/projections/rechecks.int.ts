import { beforeEach, describe, expect, it } from '@jest/globals';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { runDecider, type RunEvent } from '../../src/domain/run.ts';
import { openJournal } from '../../src/projections/open_journal.ts';
import { rebuild } from '../../src/projections/rebuild.ts';
import { createCommander, quickPolicies } from '../decisions/commander.ts';
import { createSimulatedRuns, fileOf } from '../decisions/simulated_runs.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';

const database = useTestDatabase();
const journal = openJournal(database.pool);
const recorder = createRunRecorder(journal);
let commander: ReturnType<typeof createCommander>;
let runs: ReturnType<typeof createSimulatedRuns>;

beforeEach(async () => {
  commander = createCommander(journal, quickPolicies());
  runs = createSimulatedRuns(journal, recorder, commander);
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

describe('pending re-checks', () => {
  it('have the row count of the current manifest, including rejected rows', async () => {
    const id = await runs.create(3);
    const run = await runs.start(id);
    await runs.file(id, run, 'a', 5);
    await recorder.planRejectedFile(id, run.generation, fileOf('a-rejected', 2));
    await runs.claim(id, run);
    expect(await rechecks()).toEqual([]);
    await recorder.complete(id, run.generation, 'the manifest');
    expect(await rechecks()).toEqual([{ run_id: id, rows: 7, checks_done: 0 }]);
  });

  it('have the time from the end of the interval to the completion of the run', async () => {
    const id = await runs.create(30);
    await runs.publish(id, await runs.start(id), 'a');
    const { rows } = await database.pool.query<{ completed_after_ms: number }>(
      'select completed_after_ms from exportd.rechecks where run_id = $1',
      [id],
    );
    const minutes = (rows[0]?.completed_after_ms ?? 0) / 60_000;
    expect(minutes).toBeGreaterThanOrEqual(30);
    expect(minutes).toBeLessThan(33);
  });

  it('belong to the newest run of an interval', async () => {
    const first = await runs.create(3);
    await runs.publish(first, await runs.start(first), 'a');
    await append(first, rechecked(1));
    const second = await runs.retry(first);
    await runs.publish(second, await runs.start(second), 'b');
    expect(await rechecks()).toEqual([{ run_id: second, rows: 3, checks_done: 0 }]);
  });

  it('are deleted after the second re-check', async () => {
    const id = await runs.create(3);
    await runs.publish(id, await runs.start(id), 'a');
    await append(id, rechecked(1));
    expect(await rechecks()).toEqual([{ run_id: id, rows: 3, checks_done: 1 }]);
    await append(id, rechecked(2));
    expect(await rechecks()).toEqual([]);
  });

  it('are deleted with the export', async () => {
    const id = await runs.create(3);
    await runs.publish(id, await runs.start(id), 'a');
    await commander.command('delete');
    expect(await rechecks()).toEqual([]);
  });

  it('do not exist for persons', async () => {
    await commander.command('update', { changes: { model: 'persons' } });
    const id = await runs.create(3);
    await runs.publish(id, await runs.start(id), 'a');
    expect(await rechecks()).toEqual([]);
  });

  it('are equal after a rebuild', async () => {
    const readRows = async () =>
      (await database.pool.query<object>('select * from exportd.rechecks order by run_id')).rows;
    const before = await readRows();
    expect(before.length).toBeGreaterThan(2);
    await rebuild(database.pool);
    expect(await readRows()).toEqual(before);
  });
});
