import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readEvents } from '../journal/read_stream.ts';
import { knowTraits } from './stores.ts';
import { withKill } from '../tables/kill_points.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import { createHours, createReruns } from './rerun.ts';

let harness: ExportHarness;
const nextHour = createHours();
const rows = 20;
beforeAll(async () => {
  harness = await createExportHarness();
  await knowTraits(harness, harness.bucket, { conditional_put: true, checksums: true });
});
afterAll(() => harness.close());

/** Calls of the first attempt at few rows, in their order. */
const calls = ['planWholeFile', 'putFile', 'startPublish', 'putManifest', 'complete'] as const;
const points = calls.flatMap((call) => [['before', call] as const, ['after', call] as const]);

/** A counted run of an hour with rows. */
async function createCounted() {
  const of = nextHour();
  const reruns = createReruns(harness, of);
  await reruns.insert(1, rows);
  const { run_id } = await reruns.create();
  await reruns.count(run_id);
  const uuids = async () =>
    (
      await harness.database.pool.query<{ uuid: string }>(
        'select uuid::text from events where inserted_at >= $1 and inserted_at < $2 order by uuid',
        [of.start, of.end],
      )
    ).rows.map(({ uuid }) => uuid);
  return { run_id, uuids, ...reruns };
}

const typesOf = async (run_id: string): Promise<readonly string[]> =>
  (await readEvents(harness.database.pool, run_id)).map(({ type }) => type);

/** Expects that the manifest of a run has the rows of its hour, each once. */
async function expectPublished({ run_id, uuids }: Awaited<ReturnType<typeof createCounted>>, key: string) {
  const manifest = await harness.reader.manifestAt(key);
  expect(manifest).toMatchObject({ run_id, rows });
  expect((await harness.reader.uuidsIn(manifest)).toSorted()).toEqual(await uuids());
  expect(await harness.recorder.read(run_id)).toMatchObject({ status: 'Completed' });
}

describe('the first attempt at few rows', () => {
  it('records its start with the file that it plans, and the file with the claim', async () => {
    const run = await createCounted();
    const { rows: before } = await harness.database.pool.query<{ commits: string }>(
      'select count(distinct xmin::text) as commits from exportd.journal_events where stream_id = $1',
      [run.run_id],
    );
    expect(before).toEqual([{ commits: 2 }]);
    await harness.attempt().exportInterval({ run_id: run.run_id, publishes: true });
    expect(await typesOf(run.run_id)).toEqual([
      'RunCreated',
      'RunCounted',
      'RunExportStarted',
      'RunUploadCreated',
      'RunFileCompleted',
      'RunExportFinished',
      'RunPublishStarted',
      'RunCompleted',
    ]);
    const { rows: after } = await harness.database.pool.query<{ commits: string }>(
      'select count(distinct xmin::text) as commits from exportd.journal_events where stream_id = $1',
      [run.run_id],
    );
    expect(after).toEqual([{ commits: 5 }]);
    const { manifest_key } = await harness.attempt().publishManifest({ run_id: run.run_id });
    await expectPublished(run, manifest_key);
  });

  it.each(points)('is continued by the next one if its worker is killed %s %s', async (when, call) => {
    const run = await createCounted();
    const killed = withKill(harness, [when, call]);
    await harness
      .attempt(killed)
      .exportInterval({ run_id: run.run_id, publishes: true })
      .catch(() => undefined);
    expect(killed.isDead()).toBe(true);
    await harness.attempt().exportInterval({ run_id: run.run_id, publishes: true });
    const { manifest_key } = await harness.attempt().publishManifest({ run_id: run.run_id });
    await expectPublished(run, manifest_key);
    const types = await typesOf(run.run_id);
    for (const type of ['RunExportStarted', 'RunFileCompleted', 'RunExportFinished', 'RunCompleted'])
      expect(types.filter((one) => one === type)).toHaveLength(1);
  });

  it('is rejected where another one has planned its file meanwhile, which publishes', async () => {
    const run = await createCounted();
    let other: Promise<unknown> | undefined;
    const recorder = {
      ...harness.recorder,
      planWholeFile: async (...input: Parameters<ExportHarness['recorder']['planWholeFile']>) => {
        other ??= harness.attempt().exportInterval({ run_id: run.run_id, publishes: true });
        await other;
        return harness.recorder.planWholeFile(...input);
      },
    };
    await expect(harness.attempt({ recorder }).exportInterval({ run_id: run.run_id })).rejects.toMatchObject({
      type: 'RunEnded',
    });
    const { manifest_key } = await harness.attempt().publishManifest({ run_id: run.run_id });
    await expectPublished(run, manifest_key);
    expect(await typesOf(run.run_id)).not.toContain('RunAttemptStarted');
  });

  it('is rejected where another one has started, and the third continues', async () => {
    const run = await createCounted();
    const recorder = {
      ...harness.recorder,
      planWholeFile: async (...input: Parameters<ExportHarness['recorder']['planWholeFile']>) => {
        await harness.recorder.startExport(run.run_id, 0, { reserves: true });
        return harness.recorder.planWholeFile(...input);
      },
    };
    await expect(harness.attempt({ recorder }).exportInterval({ run_id: run.run_id })).rejects.toMatchObject({
      type: 'GenerationSuperseded',
    });
    await harness.attempt().exportInterval({ run_id: run.run_id });
    const { manifest_key } = await harness.attempt().publishManifest({ run_id: run.run_id });
    await expectPublished(run, manifest_key);
  });

  it('records its file also if the source cannot be compared', async () => {
    const run = await createCounted();
    const source = { ...harness.source, fingerprint: () => Promise.reject(new Error('The source is gone.')) };
    await expect(
      harness.attempt({ source }).exportInterval({ run_id: run.run_id, publishes: true }),
    ).rejects.toThrow();
    expect((await typesOf(run.run_id)).at(-1)).toBe('RunFileCompleted');
    await harness.attempt().exportInterval({ run_id: run.run_id, publishes: true });
    const { manifest_key } = await harness.attempt().publishManifest({ run_id: run.run_id });
    await expectPublished(run, manifest_key);
  });
});
