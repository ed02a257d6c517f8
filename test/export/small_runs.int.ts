import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runDecider } from '../../src/domain/run.ts';
import { createBackfillBarriers } from '../../src/export/backfill_barriers.ts';
import { createSmallRunCompleter } from '../../src/export/complete_small_run.ts';
import { checkRunBarrier, recordDeferredCount } from '../../src/export/count.ts';
import { createPerExportLimit } from '../../src/export/per_export_limit.ts';
import { type SmallRun, smallRunRows } from '../../src/export/small_run.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { type BlackholeServer, startBlackholeServer } from '../isolation/blackhole_server.ts';
import { readEvents } from '../journal/read_stream.ts';
import { withKill } from '../tables/kill_points.ts';
import { createExportHarness, type ExportHarness, insertEvents } from './export_harness.ts';
import { createHours, createReruns } from './rerun.ts';
import { forgetTraits, knowTraits } from './stores.ts';

let harness: ExportHarness;
const nextHour = createHours();
const rows = 20;
const logger = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });
const traits = { conditional_put: true, checksums: true } as const;

beforeAll(async () => {
  harness = await createExportHarness();
  await knowTraits(harness, harness.bucket, traits);
});
afterAll(() => harness.close());

type Dependencies = Parameters<typeof createSmallRunCompleter>[0];

/** Completes small runs. */
const completer = (more: Partial<Dependencies> = {}, timeoutMs = 60_000) => {
  const perExportLimit = createPerExportLimit(Infinity);
  const dependencies = { ...harness, perExportLimit, logger, ...more };
  const complete = createSmallRunCompleter(dependencies, { waitMs: 1, timeoutMs });
  return (runId: string, small?: SmallRun) => complete(runId, new AbortController().signal, small);
};

/** Counts a run whose source has settled, and leaves what it records to the step that completes it. */
async function countDeferred(run_id: string): Promise<SmallRun> {
  const barriers = createBackfillBarriers(harness.recorder.readBackfillRange, 0);
  const { small } = await checkRunBarrier(
    { ...harness, barriers },
    { run_id, state: { phase: 'settling' } },
    new AbortController().signal,
    { defers: true },
  );
  if (!small) throw new Error('The run is no small one.');
  return small;
}

const typesOf = async (run_id: string): Promise<readonly string[]> =>
  (await readEvents(harness.database.pool, run_id)).map(({ type }) => type);

/** Continues in an export worker, as the workflow does. */
const continueElsewhere = (run_id: string) => harness.attempt().exportInterval({ run_id, publishes: true });

describe('an interval without rows', () => {
  let blackhole: BlackholeServer;
  beforeAll(async () => {
    blackhole = await startBlackholeServer();
  });
  afterAll(() => blackhole.close());

  const createEmptyRun = async (config: object = {}) => {
    const { run_id } = await harness.createRun({ config, of: nextHour() });
    await harness.recorder.recordEmpty(run_id, {
      fingerprint: fingerprintOf(0),
      settled: true,
      encoder: 'none',
    });
    return run_id;
  };

  it('is published by the worker that counted it, once', async () => {
    const complete = completer();
    const run_id = await createEmptyRun();
    expect([await complete(run_id), await complete(run_id)]).toEqual([true, true]);
    const { manifest_key } = await harness.attempt().publishManifest({ run_id });
    expect(await harness.reader.manifestAt(manifest_key)).toMatchObject({
      run_id,
      rows: 0,
      files: [],
      generation: 1,
    });
  });

  it('is left to the export workers if its bucket hangs', async () => {
    const run_id = await createEmptyRun({ endpoint_url: blackhole.endpoint });
    expect(await completer({}, 2_000)(run_id)).toBe(false);
  });

  it('is not published if its run has ended', async () => {
    const run_id = await createEmptyRun();
    await harness.journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, run_id);
      await stream.append('ended', [{ type: 'RunCancelled', data: { reason: 'a test' } }]);
    });
    await expect(completer()(run_id)).rejects.toThrow('The run is Cancelled');
  });
});

describe('an interval of few rows', () => {
  /** A counted run of an hour with rows, which nothing precedes. */
  const createCounted = async (count = rows) => {
    const of = nextHour();
    const reruns = createReruns(harness, of);
    await reruns.insert(1, count);
    const { run_id } = await reruns.create();
    const counted = await reruns.count(run_id);
    const expectPublished = async () => {
      const { manifest_key } = await harness.attempt().publishManifest({ run_id });
      const manifest = await harness.reader.manifestAt(manifest_key);
      expect(manifest).toMatchObject({ run_id, rows: count });
      const { rows: inserted } = await harness.database.pool.query<{ uuid: string }>(
        'select uuid::text from events where inserted_at >= $1 and inserted_at < $2 order by uuid',
        [of.start, of.end],
      );
      const uuids = (await harness.reader.uuidsIn(manifest)).toSorted();
      expect(uuids).toEqual(inserted.map(({ uuid }) => uuid));
      expect(await harness.recorder.read(run_id)).toMatchObject({ status: 'Completed' });
    };
    return { ...reruns, run_id, counted, expectPublished };
  };

  it('is exported and published by the worker that counted it, once', async () => {
    const run = await createCounted();
    expect(run.counted).toMatchObject({ rows, is_small: true });
    const complete = completer();
    expect([await complete(run.run_id), await complete(run.run_id)]).toEqual([true, true]);
    expect(await typesOf(run.run_id)).toEqual([
      ...['RunCreated', 'RunCounted', 'RunExportStarted', 'RunUploadCreated', 'RunFileCompleted'],
      ...['RunExportFinished', 'RunPublishStarted', 'RunCompleted'],
    ]);
    await run.expectPublished();
  });

  it('is no small one if it has more rows, or if there is a manifest that it would replace', async () => {
    const { counted } = await createCounted(smallRunRows + 1);
    expect(counted).toMatchObject({ is_small: false });
    const first = await createCounted();
    await completer()(first.run_id);
    await first.insert(rows + 1, rows + 2);
    const { run_id } = await first.create();
    expect(await first.count(run_id)).toMatchObject({ is_small: false, check_replacement: true });
  });

  const calls = ['planWholeFile', 'putFile', 'startPublish', 'putManifest', 'complete'] as const;
  const points = calls.flatMap((call) => [['before', call] as const, ['after', call] as const]);
  it.each(points)('is continued by an export worker if it fails %s %s', async (when, call) => {
    const run = await createCounted();
    const killed = withKill(harness, [when, call]);
    expect(await completer(killed)(run.run_id)).toBe(false);
    expect(killed.isDead()).toBe(true);
    await continueElsewhere(run.run_id);
    await run.expectPublished();
    const types = await typesOf(run.run_id);
    for (const type of ['RunExportStarted', 'RunFileCompleted', 'RunExportFinished', 'RunCompleted'])
      expect(types.filter((one) => one === type)).toHaveLength(1);
  });

  it('is left to the export workers, before it records anything, where a file takes an upload', async () => {
    const run = await createCounted();
    await forgetTraits(harness);
    expect(await completer()(run.run_id)).toBe(false);
    expect(await typesOf(run.run_id)).toEqual(['RunCreated', 'RunCounted']);
    await continueElsewhere(run.run_id);
    await run.expectPublished();
    await knowTraits(harness, harness.bucket, traits);
  });

  it('is left to the export workers if its file has several parts', async () => {
    const of = nextHour();
    const large = 1_500;
    await insertEvents(harness.database.pool, large, of.start);
    const reruns = createReruns(harness, of);
    const { run_id } = await reruns.create({ config: { compression: null } });
    await reruns.count(run_id);
    expect(await completer()(run_id)).toBe(false);
    expect(await continueElsewhere(run_id)).toMatchObject({ rows: large, published: true });
  });

  it('does not wait while other runs of its export have all permits', async () => {
    const run = await createCounted();
    const perExportLimit = createPerExportLimit(1);
    const { signal } = new AbortController();
    const { release } = await perExportLimit.acquire(run.batchExportId, signal);
    expect(await completer({ perExportLimit })(run.run_id)).toBe(false);
    release();
    expect(await completer({ perExportLimit })(run.run_id)).toBe(true);
    await run.expectPublished();
  });
});

describe('a run that is counted and completed in one step', () => {
  /** A run of an hour with these rows, which nothing precedes. */
  const createRun = async (count: number) => {
    const of = nextHour();
    const reruns = createReruns(harness, of);
    // Not the first of its export, which also looks for rows that belong to no interval.
    await harness.createRun({ batchExportId: reruns.batchExportId, of: nextHour() });
    if (count > 0) await reruns.insert(1, count);
    const { run_id } = await reruns.create();
    const expectPublished = async () => {
      const { manifest_key } = await harness.attempt().publishManifest({ run_id });
      const manifest = await harness.reader.manifestAt(manifest_key);
      expect(manifest).toMatchObject({ run_id, rows: count });
      expect(await harness.reader.uuidsIn(manifest)).toHaveLength(count);
      const types = await typesOf(run_id);
      for (const type of ['RunCounted', 'RunExportFinished', 'RunCompleted'])
        expect(types.filter((one) => one === type)).toHaveLength(1);
    };
    return { run_id, expectPublished };
  };
  const commitsOf = async (run_id: string): Promise<number> => {
    const { rows: found } = await harness.database.pool.query<{ commits: string }>(
      'select count(distinct xmin::text) as commits from exportd.journal_events where stream_id = $1',
      [run_id],
    );
    return Number(found[0]?.commits);
  };

  it.each([
    [rows, 4],
    [0, 3],
  ])('of %d rows records its count with the step that needs it: %d commits', async (count, commits) => {
    const run = await createRun(count);
    const small = await countDeferred(run.run_id);
    expect(await typesOf(run.run_id)).toEqual(['RunCreated']);
    expect(await completer()(run.run_id, small)).toBe(true);
    expect(await commitsOf(run.run_id)).toBe(commits);
    await run.expectPublished();
  });

  const calls = ['planWholeFile', 'putFile', 'startPublish', 'putManifest', 'complete'] as const;
  const cases = calls.flatMap((call) =>
    (['before', 'after'] as const).flatMap((when) => [
      [rows, when, call] as const,
      ...(call === 'planWholeFile' || call === 'putFile' ? [] : [[0, when, call] as const]),
    ]),
  );
  it.each(cases)(
    'of %d rows is counted and continued elsewhere if it fails %s %s',
    async (count, when, call) => {
      const run = await createRun(count);
      const killed = withKill(harness, [when, call]);
      const small = await countDeferred(run.run_id);
      expect(await completer(killed)(run.run_id, small)).toBe(false);
      expect(killed.isDead()).toBe(true);
      await recordDeferredCount(harness, run.run_id, small).catch((error: unknown) => {
        // Its manifest is there, and its completion is recorded.
        if (!(when === 'after' && call === 'complete')) throw error;
      });
      if (count > 0) await continueElsewhere(run.run_id);
      await run.expectPublished();
    },
  );

  it.each(cases)('of %d rows is done again if its worker is killed %s %s', async (count, when, call) => {
    const run = await createRun(count);
    const killed = withKill(harness, [when, call]);
    await completer(killed)(run.run_id, await countDeferred(run.run_id));
    expect(killed.isDead()).toBe(true);
    if (!(when === 'after' && call === 'complete')) {
      const small = await countDeferred(run.run_id).catch(() => undefined);
      await completer()(run.run_id, small);
    }
    if (count > 0) await continueElsewhere(run.run_id);
    await run.expectPublished();
  });

  it('is rejected where another attempt has counted it meanwhile, which publishes', async () => {
    for (const count of [rows, 0]) {
      const run = await createRun(count);
      const small = await countDeferred(run.run_id);
      expect(await completer()(run.run_id, await countDeferred(run.run_id))).toBe(true);
      await expect(completer()(run.run_id, small)).rejects.toThrow('The run is Completed');
      await run.expectPublished();
    }
  });
});
