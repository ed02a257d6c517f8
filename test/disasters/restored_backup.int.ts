import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Manifest } from '../../src/destination/manifest.ts';
import { adoptedRun } from '../../src/domain/replaced_generation.ts';
import { isWarning, readLog } from '../decisions/read_log.ts';
import { insertEvents } from '../export/export_harness.ts';
import { createMaintenanceHarness, type MaintenanceHarness } from '../maintenance/maintenance_harness.ts';
import { backUpControlDatabase } from '../setup/control_backup.ts';
import { createVerifyHarness, hours, type VerifyHarness } from '../verify/verify_harness.ts';

const eventsPerHour = 100;
const fourthHour = { start: '2026-01-01T13:00:00.000Z', end: '2026-01-01T14:00:00.000Z' };

let harness: VerifyHarness;
let maintenance: MaintenanceHarness;
beforeAll(async () => {
  harness = await createVerifyHarness(eventsPerHour);
  maintenance = createMaintenanceHarness(harness);
  await insertEvents(harness.database.pool, eventsPerHour, fourthHour.start);
});
afterAll(() => harness.close());

const hourAt = (index: number) => hours[index] ?? fourthHour;

/** Inserts late events into an hour. */
const insertLate = (hour: number, count: number) =>
  insertEvents(harness.database.pool, count, hourAt(hour).start);

/** Exports an hour, which the export may never have had, at the first try. */
async function exportHour(
  batchExportId: string,
  hour: number,
  more: { allow_shrink?: boolean } = {},
): Promise<Manifest> {
  const run = await harness.createRun({ batchExportId, of: hourAt(hour), ...more });
  try {
    await harness.attempt().exportInterval(run);
    const { manifest_key } = await harness.attempt().publishManifest(run);
    return await harness.reader.manifestAt(manifest_key);
  } catch (error) {
    await maintenance.fail(run.run_id);
    throw error;
  }
}

const logOf = (runId: string) => readLog(harness.database.pool, { run_id: runId }, isWarning);

describe('a control database that was restored from a backup', () => {
  it('adopts what was exported since, loses no row of it and leaves nothing for verify to find', async () => {
    const exported = await harness.exportHours({
      definition: { end_at: fourthHour.end },
    });
    const { batchExportId } = exported;
    const restore = await backUpControlDatabase(harness.database.pool);
    // Since the backup: the first hour twice, with late rows; the second with rows that the source lost afterwards; the
    // fourth for the first time.
    await insertLate(0, 3);
    await exportHour(batchExportId, 0);
    await insertLate(0, 4);
    expect(await exportHour(batchExportId, 0)).toMatchObject({ generation: 3, rows: eventsPerHour + 7 });
    const { rows: before } = await harness.database.pool.query<{ uuid: string }>('select uuid from events');
    await insertLate(1, 5);
    const lost = await exportHour(batchExportId, 1);
    expect(lost).toMatchObject({ generation: 2, rows: eventsPerHour + 5 });
    await harness.database.pool.query('delete from events where uuid <> all($1::uuid[])', [
      before.map(({ uuid }) => uuid),
    ]);
    await exportHour(batchExportId, 3);
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    await restore();

    const first = await exportHour(batchExportId, 0);
    expect(first).toMatchObject({ generation: 4, rows: eventsPerHour + 7, kept: [], earlier: [] });
    expect(await logOf(first.run_id)).toContainEqual(
      expect.stringContaining(
        'has a manifest of 2026-01-01T10:00:00.000Z to 2026-01-01T11:00:00.000Z that the journal does not know: generation 3',
      ),
    );
    await expect(exportHour(batchExportId, 1)).rejects.toMatchObject({ type: 'RowsMissingInSource' });
    expect(await harness.reader.manifestAt(exported.manifestKey(1))).toEqual(lost);
    const shrunk = await exportHour(batchExportId, 1, { allow_shrink: true });
    expect(shrunk).toMatchObject({ rows: eventsPerHour });
    expect(shrunk.generation).toBeGreaterThan(lost.generation);
    expect(await exportHour(batchExportId, 3)).toMatchObject({ generation: 3, rows: eventsPerHour });

    expect(await exported.verify({ deep: true })).toMatchObject({
      ok: true,
      findings: [],
      totals: { manifests: 4 },
    });
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    expect(await exported.verify({ deep: true })).toMatchObject({
      ok: true,
      findings: [],
      totals: { manifests: 4 },
    });
    // The files of the adopted manifests are deleted with the manifests that named them.
    const keys = await maintenance.keysOf(batchExportId);
    expect(keys).not.toContain(lost.files[0]?.key);
  });

  it('does not lose rows that a run had published which is active in the backup', async () => {
    const run = await harness.createRun({ of: fourthHour });
    const restore = await backUpControlDatabase(harness.database.pool);
    const exportRun = async (): Promise<Manifest> => {
      await harness.attempt().exportInterval(run);
      const { manifest_key } = await harness.attempt().publishManifest(run);
      return harness.reader.manifestAt(manifest_key);
    };
    const published = await exportRun();
    await harness.database.pool.query(
      `delete from events where uuid = (select uuid from events where inserted_at >= $1 limit 1)`,
      [fourthHour.start],
    );
    await restore();
    await expect(exportRun()).rejects.toMatchObject({ type: 'RowsMissingInSource' });
    const { adopted, spec } = await harness.recorder.read(run.run_id);
    expect(adopted).toMatchObject({ run_id: run.run_id, generation: published.generation });
    const replaced = adopted && adoptedRun(adopted, spec, run.run_id);
    expect(replaced && (await harness.recorder.readReplacedFiles(replaced))).toMatchObject(published.files);
  });
});
