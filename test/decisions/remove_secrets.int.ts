import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { collapseHistory } from '../../src/decisions/collapse_history.ts';
import { removeSecrets } from '../../src/decisions/remove_secrets.ts';
import { readConfig, SecretsRemoved } from '../../src/destination/config_versions.ts';
import { batchExportDecider } from '../../src/domain/batch_export.ts';
import { inTransaction } from '../../src/journal/database.ts';
import { createExportHarness, type ExportHarness } from '../export/export_harness.ts';
import { storeTestCommand } from '../journal/store_test_command.ts';
import { createMaintenanceHarness, type MaintenanceHarness } from '../maintenance/maintenance_harness.ts';
import { createBucket } from '../setup/bucket.ts';
import { storedRows } from '../../src/temporal/capabilities.ts';
import { readRuns } from './read_runs.ts';

let harness: ExportHarness;
let maintenance: MaintenanceHarness;
beforeAll(async () => {
  harness = await createExportHarness();
  maintenance = createMaintenanceHarness(harness);
  await harness.insertEvents(100);
});
afterAll(() => harness.close());

const hourMs = 3_600_000;
const nextHour = { start: '2026-01-01T11:00:00.000Z', end: '2026-01-01T12:00:00.000Z' };

/** Removes as the maintenance does. */
const remove = (options: Partial<Parameters<typeof removeSecrets>[1]> = {}) =>
  inTransaction(harness.database.pool, (connection) =>
    removeSecrets(connection, { cleanUpMs: hourMs, ...options }),
  );

/** The versions of an export that still have secrets. */
const versionsWithSecrets = async (batchExportId: string): Promise<number[]> => {
  const { rows } = await harness.database.pool.query<{ version: number }>(
    `select version from exportd.destination_configs where batch_export_id = $1 and secrets <> '{}' order by version`,
    [batchExportId],
  );
  return rows.map(({ version }) => version);
};

/** The age of an export's versions and its deletion, in the read models. */
const age = (batchExportId: string, milliseconds: number) =>
  harness.database.pool.query(
    `update exportd.batch_exports set last_updated_at = last_updated_at - $2 * interval '1 millisecond' where id = $1`,
    [batchExportId, milliseconds],
  );

describe('the secrets of a deleted export', () => {
  it('are removed in the transaction that deletes it', async () => {
    const { batchExportId } = await maintenance.publish();
    await maintenance.publish(batchExportId, {}, nextHour);
    await maintenance.createExport(batchExportId, 2);
    expect(await versionsWithSecrets(batchExportId)).toEqual([1, 2]);
    await maintenance.deleteExport(batchExportId);
    expect(await versionsWithSecrets(batchExportId)).toEqual([]);
    await expect(readConfig(harness.database.pool, harness.keyRing, batchExportId, 2)).rejects.toThrow(
      SecretsRemoved,
    );
  });

  it('stay until its unpublished objects are deleted', async () => {
    const { batchExportId, run_id } = await harness.createRun();
    await maintenance.createExport(batchExportId, 1);
    await harness.attempt().exportInterval({ run_id });
    await maintenance.deleteExport(batchExportId);
    await remove();
    expect(await versionsWithSecrets(batchExportId)).toEqual([1]);
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    expect(await maintenance.keysOf(batchExportId)).toEqual([]);
    await remove();
    expect(await versionsWithSecrets(batchExportId)).toEqual([]);
  });

  it.each([
    ['for a limited time', { afterMs: 2 * hourMs, options: {} }],
    ['unless an operator removes them', { afterMs: 0, options: { cleanUpMs: 0 } }],
  ])('stay for them %s', async (_, { afterMs, options }) => {
    const { batchExportId, run_id } = await harness.createRun();
    await maintenance.createExport(batchExportId, 1);
    await harness.attempt().exportInterval({ run_id });
    await maintenance.deleteExport(batchExportId);
    await age(batchExportId, afterMs);
    await remove(options);
    expect(await versionsWithSecrets(batchExportId)).toEqual([]);
    // The clean-up gives its objects up, instead of trying for days.
    expect(await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId })).toMatchObject({
      deleted: 0,
      kept: 1,
    });
  });
});

describe('the secrets of a replaced version', () => {
  it('are removed once no unfinished run has it, and runs of it use those of the newest version', async () => {
    const unfinished = await harness.createRun();
    const { batchExportId } = unfinished;
    const { run_id } = await harness.createRun({ batchExportId, of: nextHour });
    await maintenance.createExport(batchExportId, 2);
    await remove();
    expect(await versionsWithSecrets(batchExportId)).toEqual([1, 2]);
    await maintenance.fail(unfinished.run_id);
    await remove();
    expect(await versionsWithSecrets(batchExportId)).toEqual([2]);
    const [first, second] = await Promise.all(
      [1, 2].map((version) => readConfig(harness.database.pool, harness.keyRing, batchExportId, version)),
    );
    expect(first?.config.aws_secret_access_key).toBe(second?.config.aws_secret_access_key);
    await harness.attempt().exportInterval({ run_id });
  });

  it('stay in the newest version that leads to a former bucket with files, unless an operator removes them', async () => {
    const id = randomUUID();
    const other = await createBucket();
    await maintenance.publish(id, { bucket_name: other.bucket });
    await maintenance.publish(id, { bucket_name: other.bucket });
    await maintenance.publish(id);
    await maintenance.createExport(id, 3);
    await remove();
    expect(await versionsWithSecrets(id)).toEqual([2, 3]);
    await remove({ formerBuckets: true });
    expect(await versionsWithSecrets(id)).toEqual([3]);
    await expect(readConfig(harness.database.pool, harness.keyRing, id, 2)).rejects.toThrow(SecretsRemoved);
  });

  it('stay for a former bucket whose runs were collapsed: its files are still verified', async () => {
    const id = randomUUID();
    const other = await createBucket();
    await maintenance.publish(id, { bucket_name: other.bucket });
    await maintenance.publish(id, {}, nextHour);
    await maintenance.createExport(id, 2);
    const everything = { historyMs: 0, deletedExportMs: undefined, idempotencyKeyMs: 0, newestRuns: 0 };
    await collapseHistory(harness.journal, everything, storedRows, () => false);
    expect(await readRuns(harness.database.pool, { batch_export_id: id })).toEqual([]);
    await remove();
    expect(await versionsWithSecrets(id)).toEqual([1, 2]);
  });

  it('are removed in a bucket that no run has used', async () => {
    const id = randomUUID();
    const { run_id } = await harness.createRun({ batchExportId: id });
    await harness.database.pool.query(
      `insert into exportd.destination_configs (batch_export_id, version, destination_type, config, secrets)
       select batch_export_id, 2, destination_type, config || '{"bucket_name": "mistyped"}', secrets
       from exportd.destination_configs where batch_export_id = $1`,
      [id],
    );
    await maintenance.fail(run_id);
    await maintenance.createExport(id, 1);
    await remove();
    expect(await versionsWithSecrets(id)).toEqual([1]);
  });
});

describe('the credentials of a run', () => {
  const revoked = { aws_access_key_id: 'revoked', aws_secret_access_key: 'revoked' };
  const rejected = { type: 'InvalidAccessKeyId' };

  it('are the newest in force that lead to its bucket, with the keys of its own version', async () => {
    const { batchExportId, run_id } = await harness.createRun({ config: { ...revoked, prefix: 'before' } });
    await maintenance.createExport(batchExportId, 1);
    await expect(harness.attempt().exportInterval({ run_id })).rejects.toMatchObject(rejected);
    // The command of the second version is not decided yet.
    const later = await harness.createRun({ batchExportId, of: nextHour });
    await expect(harness.attempt().exportInterval({ run_id })).rejects.toMatchObject(rejected);
    await harness.journal.transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, batchExportId);
      const data = { changes: { config_version: 2 }, schedule_effective_from: null };
      await stream.append('updated', [{ type: 'BatchExportUpdated', data }]);
    });
    await harness.attempt().exportInterval({ run_id });
    expect(await harness.attempt().publishManifest({ run_id })).toMatchObject({
      manifest_key: expect.stringMatching(/^before\//),
    });
    await harness.attempt().exportInterval({ run_id: later.run_id });
  });

  it('are its own if the newest lead to another bucket', async () => {
    const { batchExportId, run_id } = await harness.createRun();
    await harness.createRun({ batchExportId, config: { ...revoked, bucket_name: 'another' }, of: nextHour });
    await maintenance.createExport(batchExportId, 2);
    await harness.attempt().exportInterval({ run_id });
    expect((await maintenance.keysOf(batchExportId)).length).toBeGreaterThan(0);
  });
});

describe('the secrets of a version that a command names', () => {
  const storeVersion = async () => {
    const { batchExportId, run_id } = await harness.createRun();
    await maintenance.fail(run_id);
    const command = await storeTestCommand(harness.database.pool, batchExportId, 'create');
    const setStatus = (status: string, ageMs = 0) =>
      harness.database.pool.query(
        `update exportd.commands set status = $2, created_at = created_at - $3 * interval '1 millisecond' where id = $1`,
        [command, status, ageMs],
      );
    return { batchExportId, command, setStatus };
  };

  it('stay while it is pending, and are removed once it is rejected', async () => {
    const { batchExportId, setStatus } = await storeVersion();
    await remove();
    expect(await versionsWithSecrets(batchExportId)).toEqual([1]);
    await setStatus('rejected');
    await remove();
    expect(await versionsWithSecrets(batchExportId)).toEqual([]);
  });

  it('stay for a day after it was withdrawn, which a repeated request takes back; then it is rejected', async () => {
    const { batchExportId, command, setStatus } = await storeVersion();
    await setStatus('withdrawn');
    await remove();
    expect(await versionsWithSecrets(batchExportId)).toEqual([1]);
    await setStatus('withdrawn', 25 * hourMs);
    await remove();
    expect(await versionsWithSecrets(batchExportId)).toEqual([]);
    const { rows } = await harness.database.pool.query('select status from exportd.commands where id = $1', [
      command,
    ]);
    expect(rows).toEqual([{ status: 'rejected' }]);
  });
});

describe('a stored config version', () => {
  const change = (batchExportId: string, assignment: string) =>
    harness.database.pool.query(
      `update exportd.destination_configs set ${assignment} where batch_export_id = $1 and version = 1`,
      [batchExportId],
    );

  it.each([
    `config = '{}'`,
    'version = 7',
    `destination_type = 'other'`,
    `row_query = '{}'`,
    `created_at = now()`,
    `secrets = '{}'`,
    `secrets = secrets - 'aws_access_key_id'`,
    `secrets = '{}', secrets_removed_at = now(), circuit = 'other'`,
    `secrets_removed_at = now()`,
  ])('rejects the change %s', async (assignment) => {
    const { batchExportId } = await harness.createRun();
    await expect(change(batchExportId, assignment)).rejects.toThrow('append-only');
  });

  it('allows the removal of its secrets, which nothing brings back', async () => {
    const { batchExportId } = await harness.createRun();
    await change(batchExportId, `secrets = '{}', secrets_removed_at = now()`);
    for (const assignment of [`secrets = '{"aws_access_key_id": "x"}'`, 'secrets_removed_at = null'])
      await expect(change(batchExportId, assignment)).rejects.toThrow('append-only');
    await expect(
      harness.database.pool.query('delete from exportd.destination_configs where batch_export_id = $1', [
        batchExportId,
      ]),
    ).rejects.toThrow('append-only');
  });
});
