import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { formatManifest, type Manifest } from '../../src/destination/manifest.ts';
import { createMaintenanceHarness, type MaintenanceHarness } from '../maintenance/maintenance_harness.ts';
import { createVerifyHarness, type Exported, hours, type VerifyHarness } from '../verify/verify_harness.ts';

// Whoever may write below the prefix of an export can put a manifest there that names any key of the bucket.

let harness: VerifyHarness;
let maintenance: MaintenanceHarness;
beforeAll(async () => {
  harness = await createVerifyHarness(20);
  maintenance = createMaintenanceHarness(harness);
});
afterAll(() => harness.close());

/** An export whose hours were exported, and the key of a file of another tenant in the same bucket. */
let exported: Exported;
let own: Manifest;
let ownKey: string;
beforeEach(async () => {
  exported = await harness.exportHours();
  own = await exported.manifest(0);
  ownKey = own.files[0]?.key ?? '';
});

const backup = 'backups/db.dump';
const text = Buffer.from('the only backup');

/** The key of the own file, changed. */
const keyIn = (folder: string): string => `${folder}/${ownKey.split('/').at(-1)}`;

/** Keys that exportd never wrote for this export and interval, each by what is wrong with it. */
const foreignKeys: readonly (readonly [string, () => string])[] = [
  ['a key outside of the prefix', () => backup],
  ['a file of the same name below the prefix of another export', () => keyIn('another-tenant')],
  ['a file of the same name in a folder below the prefix', () => ownKey.replace(/([^/]+)$/, 'more/$1')],
  [
    'a file of another interval',
    () => ownKey.replace('20260101T100000Z-20260101T110000Z', '20260101T110000Z-20260101T120000Z'),
  ],
  ['a file of another format', () => ownKey.replace(/\.[^/]*$/, '.parquet')],
  ['a manifest', () => exported.manifestKey(1)],
  ['a generation with leading zeros', () => ownKey.replace(/(\.[^/]*)$/, '-g002$1')],
];

/** Puts a manifest that the journal does not know, with a file that is none of the export's. */
async function plant(changes: (file: Manifest['files'][number]) => Partial<Manifest>): Promise<void> {
  const [file] = own.files;
  if (!file) throw new Error('The manifest has no file.');
  await exported.putManifest({ ...own, run_id: randomUUID(), generation: 7, ...changes(file) });
}

/** Exports the first hour again. */
const exportAgain = async (): Promise<void> => {
  const run = await harness.createRun({
    batchExportId: exported.batchExportId,
    ...(hours[0] && { of: hours[0] }),
  });
  try {
    await harness.attempt().exportInterval(run);
    await harness.attempt().publishManifest(run);
  } catch (error) {
    await maintenance.fail(run.run_id);
    throw error;
  }
};

describe('a manifest of the bucket that names a key which exportd cannot have written', () => {
  it.each(foreignKeys)('fails the run by name and deletes nothing: %s', async (_, foreign) => {
    const key = foreign();
    const before = (await harness.keysBelow(key)).includes(key) ? await harness.getObject(key) : text;
    await harness.putObject(key, before);
    await plant((file) => ({ files: [file, { ...file, key }] }));

    const failure = await exportAgain().catch((error: unknown) => error);
    expect(failure).toMatchObject({ type: 'ManifestForeign', nonRetryable: true });
    expect(failure).toHaveProperty('message', expect.stringContaining(key));
    await maintenance.activities().cleanUpExport({ batch_export_id: exported.batchExportId });
    expect(await harness.getObject(key)).toEqual(before);
  });

  it.each<[string, (file: Manifest['files'][number]) => Partial<Manifest>]>([
    ['files', (file) => ({ files: [{ ...file, key: backup }] })],
    [
      'rejected_file',
      ({ rows, bytes, crc32, fingerprint }) => ({
        rejected_file: { key: backup, rows, bytes, crc32, fingerprint },
      }),
    ],
    ['kept', ({ rows, bytes, crc32 }) => ({ kept: [{ key: backup, rows, bytes, crc32, generation: 1 }] })],
    [
      'earlier',
      ({ rows, bytes, crc32 }) => ({ earlier: [{ key: backup, rows, bytes, crc32, generation: 1 }] }),
    ],
  ])('fails the run wherever the key stands: %s', async (_, changes) => {
    await plant(changes);
    await expect(exportAgain()).rejects.toMatchObject({ type: 'ManifestForeign' });
  });

  it.each<[string, Partial<Manifest>]>([
    ['another export', { batch_export_id: randomUUID() }],
    ['another interval', { data_interval_start: '2026-01-01T09:00:00.000Z' }],
  ])('fails the run when the manifest says that it is of %s', async (_, changes) => {
    const planted = { ...own, run_id: randomUUID(), generation: 7, ...changes };
    await harness.putObject(exported.manifestKey(0), Buffer.from(formatManifest(planted)));
    await expect(exportAgain()).rejects.toMatchObject({ type: 'ManifestForeign' });
  });

  it('is a finding of verify, which opens no file that it names', async () => {
    await harness.putObject(backup, text);
    await plant((file) => ({ files: [{ ...file, key: backup }] }));
    const { findings } = await exported.verify();
    expect(findings).toContainEqual(
      expect.objectContaining({ kind: 'manifest_misnamed', detail: expect.stringContaining(backup) }),
    );
    expect(findings.filter(({ object }) => object?.includes(backup))).toEqual([]);
  });
});

describe('the clean-up', () => {
  it('deletes no object that the journal names below another folder', async () => {
    await harness.putObject(backup, text);
    await exported.exportAgain(0);
    // As if a journal of a version before 0.3.0 had adopted the planted key.
    await harness.database.pool.query(
      `update exportd.destination_objects set key = $2, upload_token = null
       where batch_export_id = $1 and key = $3`,
      [exported.batchExportId, backup, ownKey],
    );
    const { kept } = await maintenance
      .activities()
      .cleanUpExport({ batch_export_id: exported.batchExportId });
    expect(kept).toBe(1);
    expect(await harness.getObject(backup)).toEqual(text);
  });
});
