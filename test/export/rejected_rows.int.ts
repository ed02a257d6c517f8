import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { storeTraits } from '../../src/destination/store_traits.ts';
import type { OpenDestination } from '../../src/destination/open_destination.ts';
import { createMaintenanceHarness } from '../maintenance/maintenance_harness.ts';
import { createExportHarness, interval, type ExportHarness } from './export_harness.ts';

let harness: ExportHarness;
const validRows = 500;
const invalidRows = 7;
beforeAll(async () => {
  harness = await createExportHarness();
  await harness.insertEvents(validRows);
  await harness.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     select 1, gen_random_uuid(), 'bad', 'd', '{"big": 12345678901234567890}', 'infinity',
       $1::timestamptz + make_interval(mins => n) from generate_series(1, $2) n`,
    [interval.start, invalidRows],
  );
});
afterAll(() => harness.close());

const config = { on_bad_row: 'reject' };

/** Opens a destination that crashes right before or right after it has written the file of rejected rows. */
const crashing =
  (moment: 'before' | 'after'): OpenDestination =>
  async (spec, onError) => {
    const real = await harness.openDestination(spec, onError);
    return {
      ...real,
      putObject: async (...input) => {
        if (moment === 'after') expect(await real.putObject(...input)).toBe(true);
        throw new Error('crashed');
      },
    };
  };

async function expectRejected(runId: string, generation: number): Promise<void> {
  const { manifest_key } = await harness.attempt().publishManifest({ run_id: runId });
  const manifest = await harness.reader.manifestAt(manifest_key);
  expect(manifest).toMatchObject({
    generation,
    rows: validRows,
    rejected: invalidRows,
    source_rows: validRows + invalidRows,
  });
  const lines = (await harness.reader.textOf(manifest.rejected_file?.key ?? '')).trimEnd().split('\n');
  expect(lines).toHaveLength(invalidRows);
  for (const line of lines) {
    expect(JSON.parse(line)).toMatchObject({ column: 'timestamp', row: { timestamp: 'infinity' } });
    expect(line).toContain('12345678901234567890');
  }
}

describe('rows that the file format cannot represent', () => {
  it('fail the run, which names the row and the column', async () => {
    const { run_id } = await harness.createRun();
    await expect(harness.attempt().exportInterval({ run_id })).rejects.toMatchObject({
      type: 'UnencodableRow',
      nonRetryable: true,
      message: expect.stringContaining('timestamp'),
    });
  });

  it('are counted and written to a separate file if they are rejected', async () => {
    const { run_id } = await harness.createRun({ config });
    await harness.attempt().exportInterval({ run_id });
    await expectRejected(run_id, 1);
  });

  it.each(['before', 'after'] as const)(
    'are written once after a crash %s their file is written',
    async (moment) => {
      const { run_id } = await harness.createRun({ config });
      const openDestination = crashing(moment);
      await expect(harness.attempt({ openDestination }).exportInterval({ run_id })).rejects.toThrow();
      await harness.attempt().exportInterval({ run_id });
      await expectRejected(run_id, 1);
    },
  );

  it('are exported again when a retry finds other rows', async () => {
    const { run_id } = await harness.createRun({ config });
    const openDestination = crashing('after');
    await expect(harness.attempt({ openDestination }).exportInterval({ run_id })).rejects.toThrow();
    await harness.database.pool.query(`update events set elements_chain = 'changed' where event = 'bad'`);
    await harness.attempt().exportInterval({ run_id });
    await expectRejected(run_id, 2);
  });

  it('fail the run if they are too many', async () => {
    const { run_id } = await harness.createRun({ config });
    const settings = { ...harness.settings, EXPORTD_MAX_REJECTED_ROWS: invalidRows - 1 };
    await expect(harness.attempt({ settings }).exportInterval({ run_id })).rejects.toMatchObject({
      type: 'TooManyRejectedRows',
      nonRetryable: true,
    });
  });

  it.each([
    ['before it is planned', undefined],
    [
      'after that',
      async (...input: Parameters<OpenDestination>) => ({
        ...(await harness.openDestination(...input)),
        isTaken: () => Promise.resolve(false),
      }),
    ],
  ])(
    'are in the next generation when another object has the key of their file (%s)',
    async (_, openDestination) => {
      const { run_id, batchExportId } = await harness.createRun({ config });
      const maintenance = createMaintenanceHarness(harness);
      await maintenance.createExport(batchExportId, 1);
      const key = `${batchExportId}/2026/20260101T100000Z-20260101T110000Z-rejected.jsonl`;
      const foreign = { Bucket: harness.bucket.bucket, Key: key, Body: 'foreign' };
      await harness.bucket.client.send(new PutObjectCommand(foreign));
      expect(
        await harness.attempt(openDestination && { openDestination }).exportInterval({ run_id }),
      ).toMatchObject({
        finished: true,
        generation: 2,
      });
      await expectRejected(run_id, 2);
      const { rows } = await harness.database.pool.query(
        `select taken_keys::int, (select count(*)::int from exportd.notifications where batch_export_id = $1
         and type = 'run.key_taken') as notifications
       from exportd.intervals where batch_export_id = $1`,
        [batchExportId],
      );
      expect(rows).toEqual([{ taken_keys: 1, notifications: 1 }]);
      await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
      expect(await harness.reader.textOf(key)).toBe('foreign');
    },
  );

  it('are in a file whose key has a mark where the store has no conditional writes', async () => {
    await storeTraits(
      harness.database.pool,
      `${new URL(harness.bucket.endpoint).host}/${harness.bucket.bucket}`,
      {
        conditional_put: false,
      },
    );
    const { run_id } = await harness.createRun({ config });
    const crash = harness.attempt({ openDestination: crashing('after') });
    await expect(crash.exportInterval({ run_id })).rejects.toThrow();
    const { rejected_file } = await harness.recorder.read(run_id);
    expect(rejected_file?.key).toMatch(/Z-[0-9a-f]{8}-rejected\.jsonl$/);
    await harness.attempt().exportInterval({ run_id });
    await expectRejected(run_id, 1);
    expect((await harness.recorder.read(run_id)).rejected_file?.key).toBe(rejected_file?.key);
  });
});
