import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { waitFor } from '../setup/wait_for.ts';
import { createStage, interval, type Stage } from '../export/export_harness.ts';
import { createUpkeepStage, type UpkeepStage } from './maintenance_harness.ts';

let stage: Stage;
let scene: UpkeepStage;
beforeAll(async () => {
  stage = await createStage();
  scene = createUpkeepStage(stage);
});
afterAll(() => stage.close());
beforeEach(() => stage.database.pool.query('truncate events'));

/** An export whose interval is exported; its first count comes right after that. */
async function exported(config: object = {}) {
  const batchExportId = randomUUID();
  const { run_id } = await scene.publish(batchExportId, config);
  await scene.createExport(batchExportId, 1);
  const { rows } = await stage.database.pool.query<{ after: number }>(
    'select completed_after_ms as after from exportd.rechecks where run_id = $1',
    [run_id],
  );
  const { recheckRuns } = scene.upkeep({}, { recheckFirstMs: (rows[0]?.after ?? 0) + 1 });
  const recheck = () =>
    waitFor(async () => {
      const outcome = await recheckRuns({ batch_export_id: batchExportId });
      return outcome.counted > 0 && outcome;
    }, 'the count to be due');
  return { batchExportId, run_id, recheck };
}

const insertLate = (event: string) =>
  stage.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
     values (1, gen_random_uuid(), $1, 'person', $2, $2)`,
    [event, interval.start],
  );

const retriesOf = async (batchExportId: string) =>
  (
    await stage.database.pool.query<{ id: string; body: object }>(
      `select id, body from exportd.commands where batch_export_id = $1 and name = 'retry'`,
      [batchExportId],
    )
  ).rows;

describe('the re-check', () => {
  it('says nothing when the source has what the manifest has', async () => {
    await stage.insertEvents(10);
    const { batchExportId, recheck } = await exported();
    expect(await recheck()).toEqual({ counted: 1, differing: 0, more: false });
    expect(await retriesOf(batchExportId)).toEqual([]);
  });

  it('has the interval exported again when rows came late', async () => {
    await stage.insertEvents(10);
    const { batchExportId, run_id, recheck } = await exported();
    await insertLate('late');
    expect(await recheck()).toEqual({ counted: 1, differing: 1, more: false });
    const [retry] = await retriesOf(batchExportId);
    expect(retry?.body).toEqual({ run_id, reason: 'late_rows' });
    expect(scene.signalled).toContainEqual({ batch_export_id: batchExportId, name: 'retry', id: retry?.id });
  });

  it('leaves an interval alone of which the source has dropped rows', async () => {
    await stage.insertEvents(10);
    const { batchExportId, recheck } = await exported();
    await stage.database.pool.query('truncate events');
    expect(await recheck()).toEqual({ counted: 1, differing: 0, more: false });
    expect(await retriesOf(batchExportId)).toEqual([]);
  });

  it('counts what the export selects', async () => {
    await stage.insertEvents(10);
    const { recheck } = await exported({ exclude_events: ['late'] });
    await insertLate('late');
    expect(await recheck()).toEqual({ counted: 1, differing: 0, more: false });
  });
});
