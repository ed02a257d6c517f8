import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { countExistingRun } from '../../src/export/count.ts';
import type { ExportActivities } from '../../activities/export.ts';
import { continueRun } from '../../src/decisions/advance_backfill.ts';
import { casesOf } from '../setup/effort.ts';
import { createExportHarness, insertEvents, interval, type ExportHarness } from './export_harness.ts';
import { withInterruptions, withCrash, type Interruptions } from './crash_injection.ts';

let harness: ExportHarness;
const eventCount = 6_000;
const config = { max_file_size_mb: 6 };
beforeAll(async () => {
  harness = await createExportHarness();
  await harness.insertEvents(eventCount);
});
afterAll(() => harness.close());

/** Publishes and checks that a reader finds exactly the rows of the source, in files without overlaps. */
async function publishAndVerify(runId: string, generation = 1) {
  const { manifest_key } = await harness.attempt().publishManifest({ run_id: runId });
  const manifest = await harness.reader.manifestAt(manifest_key);
  expect(manifest).toMatchObject({ generation, run_id: runId });
  expect(await harness.reader.uuidsIn(manifest)).toEqual(await harness.reader.sourceUuids());
  expect(await harness.reader.openUploads()).toEqual([]);
  const keys = manifest.files.flatMap(({ first, last }) => [first, last].map((key) => JSON.stringify(key)));
  expect(keys.toSorted()).toEqual(keys);
  expect(new Set(manifest.files.map(({ key }) => key)).size).toBe(manifest.files.length);
  return manifest;
}

describe('an export with a maximum file size', () => {
  it('starts the next file after the block that reaches it', async () => {
    const { run_id } = await harness.createRun({ config });
    await harness.attempt().exportInterval({ run_id });
    const { files } = await publishAndVerify(run_id);
    expect(files.length).toBeGreaterThan(2);
    const sizes = files.map(({ bytes }) => bytes);
    for (const size of sizes.slice(0, -1)) expect(size).toBeGreaterThanOrEqual(6 * 1024 * 1024);
    for (const size of sizes) expect(size).toBeLessThan(12 * 1024 * 1024);
    expect(files.map(({ key }) => /-(\d+)\.jsonl$/.exec(key)?.[1])).toEqual(
      files.map((_, number) => String(number)),
    );
  });

  const crashPoints: [keyof Interruptions, number][] = [
    ['planPart', 1],
    ['planPart', 3],
    ['arrived', 2],
    ['complete', 1],
    ['completed', 1],
    ['complete', 2],
    ['completed', 2],
  ];
  /** Inside a file, at its end, and at the end of a later one. */
  const usualCrashPoints = crashPoints.filter(([at, occurrence]) =>
    at === 'planPart'
      ? occurrence === 3
      : at === 'complete'
        ? occurrence === 2
        : at === 'completed' && occurrence === 1,
  );
  it.each(casesOf(usualCrashPoints, crashPoints))(
    'resumes the file in which it crashed (%s %i)',
    async (at, occurrence) => {
      const { run_id } = await harness.createRun({ config });
      const first = withCrash(harness, at, occurrence);
      await expect(harness.attempt(first).exportInterval({ run_id })).rejects.toThrow();
      const before = await harness.recorder.readFiles(run_id, await harness.recorder.read(run_id));
      await harness.attempt().exportInterval({ run_id });
      const { files } = await publishAndVerify(run_id);
      // Files that were complete before are unchanged.
      expect(files.slice(0, before.length)).toMatchObject(before.map(({ key, crc32 }) => ({ key, crc32 })));
    },
  );

  it('starts a lost file over under the next number and keeps the files before it', async () => {
    const { run_id } = await harness.createRun({ config });
    await expect(
      harness.attempt(withCrash(harness, 'arrived', 4)).exportInterval({ run_id }),
    ).rejects.toThrow();
    const run = await harness.recorder.read(run_id);
    const [range] = run.ranges;
    const [first] = await harness.recorder.readFiles(run_id, run);
    expect(range?.files.count).toBeGreaterThan(0);
    const destination = await harness.openDestination(run.spec, () => undefined);
    const { signal } = new AbortController();
    await destination.abortUpload(range?.upload?.key ?? '', range?.upload?.upload_id ?? '', signal);
    destination.close();
    await harness.attempt().exportInterval({ run_id });
    const { files } = await publishAndVerify(run_id);
    expect(files.map(({ key }) => key)).not.toContain(range?.upload?.key);
    expect(files[0]?.key).toBe(first?.key);
  });

  it('continues as new between files too', async () => {
    let { run_id } = (await harness.createRun({ config })) as { run_id: string };
    const settings = { ...harness.settings, EXPORTD_PARTS_PER_EXECUTION: 1 };
    let executions = 1;
    while (!(await harness.attempt({ settings }).exportInterval({ run_id })).finished) {
      ({ run_id } = await continueRun(harness.journal, run_id));
      executions += 1;
    }
    const { files } = await publishAndVerify(run_id);
    expect(executions).toBeGreaterThan(files.length);
  });
});

describe('a split interval', () => {
  const settings = () => ({ ...harness.settings, EXPORTD_RANGE_ROWS: 2_250 });

  async function createSplitRun(more: { config?: object } = {}) {
    const { run_id } = await harness.createRun(more);
    const counted = await countExistingRun(
      { ...harness, settings: settings() },
      { run_id, settled: true, blocked_by: [] },
      await harness.recorder.readActive(run_id),
      new AbortController().signal,
    );
    expect(counted).toMatchObject({ rows: eventCount, ranges: 3 });
    return { run_id };
  }
  const exportAllRanges = (run_id: string, activities: Pick<ExportActivities, 'exportRange'>) =>
    Promise.all([0, 1, 2].map((range) => activities.exportRange({ run_id, range })));

  it.each(casesOf([{ config }], [{}, { config }]))(
    'is exported by concurrent attempts to one manifest (%j)',
    async (more) => {
      const { run_id } = await createSplitRun(more);
      await exportAllRanges(run_id, harness.attempt());
      expect(await harness.attempt().finishExport({ run_id })).toMatchObject({
        finished: true,
        rows: eventCount,
      });
      const { files } = await publishAndVerify(run_id);
      expect(files.map(({ key }) => /-(\d)\.\d+\.jsonl$/.exec(key)?.[1])).toEqual(
        expect.arrayContaining(['0', '1', '2']),
      );
    },
  );

  it('resumes each range after a crash', async () => {
    const { run_id } = await createSplitRun();
    await harness.attempt().exportRange({ run_id, range: 1 });
    const crashing = withCrash(harness, 'arrived');
    for (const range of [0, 2])
      await expect(harness.attempt(crashing).exportRange({ run_id, range })).rejects.toThrow();
    const second = withInterruptions(harness, {});
    await exportAllRanges(run_id, harness.attempt(second));
    await harness.attempt().finishExport({ run_id });
    await publishAndVerify(run_id);
  });

  it('is not finished until every range is', async () => {
    const { run_id } = await createSplitRun();
    await harness.attempt().exportRange({ run_id, range: 0 });
    expect(await harness.attempt().finishExport({ run_id })).toMatchObject({ finished: false });
    await exportAllRanges(run_id, harness.attempt());
    await harness.attempt().finishExport({ run_id });
    await publishAndVerify(run_id);
  });
});

describe('rows that arrive during the export of their interval', () => {
  it('are exported with all others as the next generation before anything is published', async () => {
    const { run_id } = await harness.createRun();
    let late = 1;
    const intercepted = withInterruptions(harness, {
      complete: async () => {
        if (late-- > 0) await insertEvents(harness.database.pool, 1, interval.start);
      },
    });
    const exported = await harness.attempt(intercepted).exportInterval({ run_id });
    expect(exported).toMatchObject({ finished: true, generation: 2, rows: eventCount + 1 });
    await publishAndVerify(run_id, 2);
  });
});
