import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createPolicies } from '../../src/decisions/policies.ts';
import { configRules } from '../../src/temporal/capabilities.ts';
import { createRetry } from '../../src/decisions/retries.ts';
import { cancelUnlessPublishing, endRun } from '../../src/decisions/run_outcomes.ts';
import { runDecider } from '../../src/domain/run.ts';
import { type Interruptions, withCrash, withInterruptions } from './crash_injection.ts';
import { createHours, createReruns } from './rerun.ts';
import { createExportHarness, type ExportHarness, interval } from './export_harness.ts';

/** How an attempt ends that has claimed publishing: its manifest arrived, or it did not. */
const ends: [string, boolean][] = [
  ['whose manifest arrived', true],
  ['whose manifest did not arrive', false],
];

describe('a run that fails after it claimed publishing', () => {
  let harness: ExportHarness;
  const eventCount = 2_000;
  let run_id: string;
  let batchExportId: string;
  beforeAll(async () => {
    harness = await createExportHarness();
    await harness.insertEvents(eventCount);
  });
  afterAll(() => harness.close());
  afterEach(async () => {
    await harness.database.pool.query(`delete from events where event = 'late'`);
  });
  beforeEach(async () => {
    ({ run_id, batchExportId } = await harness.createRun());
    await harness.attempt().exportInterval({ run_id });
  });

  const policies = () => createPolicies(harness.settings, configRules);

  async function claim(arrived: boolean): Promise<void> {
    const at: keyof Interruptions = 'published';
    if (arrived)
      await harness
        .attempt(withCrash(harness, at))
        .publishManifest({ run_id })
        .catch(() => undefined);
    else await harness.recorder.startPublish(run_id, 1);
    expect(await harness.recorder.read(run_id)).toMatchObject({ phase: { name: 'publishing' } });
  }

  /** Ends the run after its budget, and creates its automatic retry. */
  async function retry(of: string): Promise<string> {
    await endRun(harness.journal, policies(), of, { status: 'FailedRetryable', latest_error: 'Silent.' });
    const { spec } = await harness.recorder.read(of);
    const id = crypto.randomUUID();
    await harness.journal.transaction((transaction) =>
      createRetry(transaction, { definition: spec } as unknown as Parameters<typeof createRetry>[1], of, {
        id,
        retry_number: 1,
      }),
    );
    return id;
  }

  it.each(ends)('%s, is retried with its files', async (_, arrived) => {
    await claim(arrived);
    const second = withInterruptions(harness, {});
    const next = await retry(await retry(run_id));
    expect((await harness.recorder.read(next)).claimed_by).toEqual([run_id]);
    expect(await harness.attempt(second).exportInterval({ run_id: next })).toMatchObject({
      finished: true,
      generation: 1,
      rows: eventCount,
    });
    const { manifest_key } = await harness.attempt(second).publishManifest({ run_id: next });
    expect(second.sent.size).toBe(0);
    const manifest = await harness.reader.manifestAt(manifest_key);
    expect(manifest).toMatchObject({ run_id: next, generation: 1, rows: eventCount });
    expect(await harness.reader.uuidsIn(manifest)).toEqual(await harness.reader.sourceUuids());
    expect(await harness.reader.keysWithPrefix(batchExportId)).toHaveLength(2);
    expect(await harness.reader.eventTypes(next)).not.toContain('RunManifestAdopted');
    const { rows } = await harness.database.pool.query(
      `select distinct run_id, publish_claimed, obsolete_at from exportd.destination_objects
       where batch_export_id = $1`,
      [batchExportId],
    );
    expect(rows).toEqual([{ run_id: next, publish_claimed: true, obsolete_at: null }]);
  });

  it.each(ends)('%s, is retried with other files if rows arrived meanwhile', async (_, arrived) => {
    await claim(arrived);
    await harness.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       values (1, gen_random_uuid(), 'late', 'person', '{}', $1, $1)`,
      [interval.start],
    );
    const next = await retry(run_id);
    await harness.attempt().exportInterval({ run_id: next });
    const { manifest_key } = await harness.attempt().publishManifest({ run_id: next });
    const manifest = await harness.reader.manifestAt(manifest_key);
    expect(manifest).toMatchObject({ run_id: next, rows: eventCount + 1 });
    expect(manifest.generation).toBeGreaterThan(1);
    expect((await harness.reader.uuidsIn(manifest)).toSorted()).toEqual(
      (await harness.reader.sourceUuids()).toSorted(),
    );
    const { rows } = await harness.database.pool.query(
      `select distinct generation = 1 as inherited, obsolete_at is not null as obsolete
       from exportd.destination_objects where batch_export_id = $1 order by inherited`,
      [batchExportId],
    );
    expect(rows).toEqual([
      { inherited: false, obsolete: false },
      { inherited: true, obsolete: true },
    ]);
  });

  it('whose manifest arrived, is retried with the late rows that it added to another manifest', async () => {
    const { insert, remove, run, proceed } = createReruns(harness, createHours()());
    await insert(1, 10);
    await run();
    await remove(1, 1);
    await insert(11, 12);
    const failed = await run({}, withCrash(harness, 'published'));
    expect(failed.check).toMatchObject({ outcome: 'late_rows_added' });
    const next = await retry(failed.run_id);
    const { latest_error, manifest_key } = await proceed(next);
    expect(latest_error).toBeNull();
    const manifest = await harness.reader.manifestAt(manifest_key ?? '');
    expect(manifest).toMatchObject({
      run_id: next,
      generation: 2,
      rows: 12,
      files: [{ rows: 10 }, { rows: 2 }],
    });
    expect(await harness.reader.uuidsIn(manifest)).toHaveLength(12);
  });

  const requestCancel = (of: string) =>
    cancelUnlessPublishing(harness.journal, policies(), of, 'Cancelled by a user.');

  it('can be cancelled once the bucket shows that no manifest arrived', async () => {
    await claim(false);
    expect(await requestCancel(run_id)).toBe(false);
    expect(await harness.recorder.read(run_id)).toMatchObject({ status: 'Running' });
    await expect(harness.attempt().publishManifest({ run_id })).rejects.toMatchObject({ type: 'RunEnded' });
    expect(await harness.recorder.read(run_id)).toMatchObject({ status: 'Cancelled' });
    expect(await harness.reader.keysWithPrefix(`${batchExportId}/2026/_manifests`)).toEqual([]);
  });

  it('completes in spite of a cancellation if its manifest arrived', async () => {
    await claim(true);
    expect(await requestCancel(run_id)).toBe(false);
    await harness.attempt().publishManifest({ run_id });
    expect(await harness.recorder.read(run_id)).toMatchObject({ status: 'Completed' });
  });

  it('passes a requested cancellation to its retry', async () => {
    await claim(false);
    await requestCancel(run_id);
    const next = await retry(run_id);
    await harness.attempt().exportInterval({ run_id: next });
    await expect(harness.attempt().publishManifest({ run_id: next })).rejects.toMatchObject({
      type: 'RunEnded',
    });
    expect(await harness.recorder.read(next)).toMatchObject({ status: 'Cancelled' });
  });

  it('is not withdrawn by its retry, whose manifest was refused', async () => {
    await claim(true);
    const next = await retry(run_id);
    await harness.attempt().exportInterval({ run_id: next });
    const claimed = await harness.recorder.startPublish(next, 1);
    await harness.recorder.withdrawPublish(next, claimed);
    expect(await harness.recorder.read(next)).toMatchObject({ phase: { name: 'publishing' } });
    await harness.journal.transaction(async (transaction) => {
      expect((await transaction.lock(runDecider, next)).state()).toMatchObject({ claimed_by: [run_id] });
    });
  });
});
