import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { waitFor } from '../setup/wait_for.ts';
import { createExportHarness, interval, type ExportHarness } from '../export/export_harness.ts';
import { createMaintenanceHarness, type MaintenanceHarness } from './maintenance_harness.ts';

let harness: ExportHarness;
let maintenance: MaintenanceHarness;
beforeAll(async () => {
  harness = await createExportHarness();
  maintenance = createMaintenanceHarness(harness);
});
afterAll(() => harness.close());
beforeEach(() => harness.database.pool.query('truncate events'));

/** Exports an interval, whose first re-check is due right after. */
async function publishInterval(config: object = {}) {
  const batchExportId = randomUUID();
  const { run_id } = await maintenance.publish(batchExportId, config);
  await maintenance.createExport(batchExportId, 1);
  const { rows } = await harness.database.pool.query<{ after: number }>(
    'select completed_after_ms as after from exportd.rechecks where run_id = $1',
    [run_id],
  );
  const { recheckRuns } = maintenance.activities({}, { recheckFirstMs: (rows[0]?.after ?? 0) + 1 });
  const recheck = () =>
    waitFor(async () => {
      const outcome = await recheckRuns({ batch_export_id: batchExportId });
      return outcome.counted > 0 && outcome;
    }, 'the re-check to be due');
  return { batchExportId, run_id, recheck };
}

const insertLate = (event: string) =>
  harness.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
     values (1, gen_random_uuid(), $1, 'person', $2, $2)`,
    [event, interval.start],
  );

const retriesOf = async (batchExportId: string) =>
  (
    await harness.database.pool.query<{ id: string; body: object }>(
      `select id, body from exportd.commands where batch_export_id = $1 and name = 'retry'`,
      [batchExportId],
    )
  ).rows;

describe('the re-check', () => {
  it('does nothing when the source and the manifest agree', async () => {
    await harness.insertEvents(10);
    const { batchExportId, recheck } = await publishInterval();
    expect(await recheck()).toEqual({ counted: 1, differing: 0, has_more: false });
    expect(await retriesOf(batchExportId)).toEqual([]);
  });

  it('exports the interval again when rows arrived late', async () => {
    await harness.insertEvents(10);
    const { batchExportId, run_id, recheck } = await publishInterval();
    await insertLate('late');
    expect(await recheck()).toEqual({ counted: 1, differing: 1, has_more: false });
    const [retry] = await retriesOf(batchExportId);
    expect(retry?.body).toEqual({ run_id, reason: 'late_rows' });
    expect(maintenance.signalledCommands).toContainEqual({
      batch_export_id: batchExportId,
      name: 'retry',
      id: retry?.id,
    });
  });

  it('leaves an interval alone when rows were deleted from the source', async () => {
    await harness.insertEvents(10);
    const { batchExportId, recheck } = await publishInterval();
    await harness.database.pool.query('truncate events');
    expect(await recheck()).toEqual({ counted: 1, differing: 0, has_more: false });
    expect(await retriesOf(batchExportId)).toEqual([]);
  });

  it('counts only the rows that the export selects', async () => {
    await harness.insertEvents(10);
    const { recheck } = await publishInterval({ exclude_events: ['late'] });
    await insertLate('late');
    expect(await recheck()).toEqual({ counted: 1, differing: 0, has_more: false });
  });
});
