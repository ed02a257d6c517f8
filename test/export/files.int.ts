import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { countExistingRun } from '../../src/export/count_rows.ts';
import type { ExportActivities } from '../../workflows/export_ranges.ts';
import { continueRun } from '../../src/decisions/continue_run.ts';
import { createStage, insertEvents, interval, type Stage } from './export_harness.ts';
import { interrupted, killed, type Interruptions } from './crash_injection.ts';
import { createReader } from './reader.ts';

let stage: Stage;
let read: ReturnType<typeof createReader>;
const eventCount = 24_000;
const config = { max_file_size_mb: 6 };
beforeAll(async () => {
  stage = await createStage();
  read = createReader(stage.database.pool, stage.bucket, interval);
  await stage.insertEvents(eventCount);
});
afterAll(() => stage.close());

/** Publishes and checks that a reader finds exactly the rows of the source in files that follow each other. */
async function publishWhole(runId: string, generation = 1) {
  const { manifest_key } = await stage.attempt().publishManifest({ run_id: runId });
  const manifest = await read.manifestAt(manifest_key);
  expect(manifest).toMatchObject({ generation, run_id: runId });
  expect(await read.uuidsBehind(manifest)).toEqual(await read.sourceUuids());
  expect(await read.openUploads()).toEqual([]);
  const keys = manifest.files.flatMap(({ first, last }) => [first, last].map((key) => JSON.stringify(key)));
  expect(keys.toSorted()).toEqual(keys);
  expect(new Set(manifest.files.map(({ key }) => key)).size).toBe(manifest.files.length);
  return manifest;
}

describe('an export with a largest size of files', () => {
  it('begins the next file behind the block that reaches it', async () => {
    const { run_id } = await stage.openRun({ config });
    await stage.attempt().exportInterval({ run_id });
    const { files } = await publishWhole(run_id);
    expect(files.length).toBeGreaterThan(2);
    const sizes = files.map(({ bytes }) => bytes);
    for (const size of sizes.slice(0, -1)) expect(size).toBeGreaterThanOrEqual(6 * 1024 * 1024);
    for (const size of sizes) expect(size).toBeLessThan(12 * 1024 * 1024);
    expect(files.map(({ key }) => /-(\d+)\.jsonl$/.exec(key)?.[1])).toEqual(
      files.map((_, number) => String(number)),
    );
  });

  const moments: [keyof Interruptions, number][] = [
    ['planPart', 1],
    ['planPart', 3],
    ['arrived', 2],
    ['complete', 1],
    ['completed', 1],
    ['complete', 2],
    ['completed', 2],
  ];
  it.each(moments)('goes on with the file that it was killed in (%s %i)', async (at, which) => {
    const { run_id } = await stage.openRun({ config });
    const first = killed(stage, at, which);
    await expect(stage.attempt(first).exportInterval({ run_id })).rejects.toThrow();
    const { ranges } = await stage.recorder.read(run_id);
    await stage.attempt().exportInterval({ run_id });
    const { files } = await publishWhole(run_id);
    // What was finished before was not touched.
    expect(files.slice(0, ranges[0]?.files.length)).toMatchObject(
      (ranges[0]?.files ?? []).map(({ key, crc32 }) => ({ key, crc32 })),
    );
  });

  it('begins a lost file anew under the next number and keeps those before it', async () => {
    const { run_id } = await stage.openRun({ config });
    await expect(stage.attempt(killed(stage, 'arrived', 4)).exportInterval({ run_id })).rejects.toThrow();
    const { ranges, spec: subject } = await stage.recorder.read(run_id);
    const [range] = ranges;
    expect(range?.files.length).toBeGreaterThan(0);
    const destination = await stage.openDestination(subject, () => undefined);
    const { signal } = new AbortController();
    await destination.abortUpload(range?.upload?.key ?? '', range?.upload?.upload_id ?? '', signal);
    destination.close();
    await stage.attempt().exportInterval({ run_id });
    const { files } = await publishWhole(run_id);
    expect(files.map(({ key }) => key)).not.toContain(range?.upload?.key);
    expect(files[0]?.key).toBe(range?.files[0]?.key);
  });

  it('is handed over between files too', async () => {
    let { run_id } = (await stage.openRun({ config })) as { run_id: string };
    const settings = { ...stage.settings, EXPORTD_PARTS_PER_EXECUTION: 1 };
    let executions = 1;
    while (!(await stage.attempt({ settings }).exportInterval({ run_id })).finished) {
      ({ run_id } = await continueRun(stage.journal, run_id));
      executions += 1;
    }
    const { files } = await publishWhole(run_id);
    expect(executions).toBeGreaterThan(files.length);
  });
});

describe('an interval that is cut', () => {
  const settings = () => ({ ...stage.settings, EXPORTD_RANGE_ROWS: 9_000 });

  async function openCutRun(more: { config?: object } = {}) {
    const { run_id } = await stage.openRun(more);
    const counted = await countExistingRun(
      { ...stage, settings: settings() },
      { run_id, settled: true, blocked_by: [] },
      await stage.recorder.readActive(run_id),
      new AbortController().signal,
    );
    expect(counted).toEqual({ rows: eventCount, ranges: 3 });
    return { run_id };
  }
  const exportAll = (run_id: string, activities: Pick<ExportActivities, 'exportRange'>) =>
    Promise.all([0, 1, 2].map((range) => activities.exportRange({ run_id, range })));

  it.each([{}, { config }])('is exported by several at once and ends in one manifest (%j)', async (more) => {
    const { run_id } = await openCutRun(more);
    await exportAll(run_id, stage.attempt());
    expect(await stage.attempt().finishExport({ run_id })).toMatchObject({
      finished: true,
      rows: eventCount,
    });
    const { files } = await publishWhole(run_id);
    expect(files.map(({ key }) => /-(\d)\.\d+\.jsonl$/.exec(key)?.[1])).toEqual(
      expect.arrayContaining(['0', '1', '2']),
    );
  });

  it('goes on range by range after a kill', async () => {
    const { run_id } = await openCutRun();
    await stage.attempt().exportRange({ run_id, range: 1 });
    const dying = killed(stage, 'arrived');
    for (const range of [0, 2])
      await expect(stage.attempt(dying).exportRange({ run_id, range })).rejects.toThrow();
    const second = interrupted(stage, {});
    await exportAll(run_id, stage.attempt(second));
    await stage.attempt().finishExport({ run_id });
    await publishWhole(run_id);
  });

  it('is not finished while a range is not', async () => {
    const { run_id } = await openCutRun();
    await stage.attempt().exportRange({ run_id, range: 0 });
    expect(await stage.attempt().finishExport({ run_id })).toMatchObject({ finished: false });
    await exportAll(run_id, stage.attempt());
    await stage.attempt().finishExport({ run_id });
    await publishWhole(run_id);
  });
});

describe('rows that arrive while their interval is exported', () => {
  it('are exported with all others as the next generation, before anything is published', async () => {
    const { run_id } = await stage.openRun();
    let late = 1;
    const way = interrupted(stage, {
      complete: async () => {
        if (late-- > 0) await insertEvents(stage.database.pool, 1, interval.start);
      },
    });
    const exported = await stage.attempt(way).exportInterval({ run_id });
    expect(exported).toMatchObject({ finished: true, generation: 2, rows: eventCount + 1 });
    await publishWhole(run_id, 2);
  });
});
