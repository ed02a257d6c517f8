import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DestinationError } from '../../src/destination/destination.ts';
import { createStage, type Stage } from './export_harness.ts';
import { interrupted } from './crash_injection.ts';

let stage: Stage;
const eventCount = 24_000;
beforeAll(async () => {
  stage = await createStage();
  await stage.insertEvents(eventCount);
});
afterAll(() => stage.close());

const onePart = () => ({ ...stage.settings, EXPORTD_PARTS_PER_EXECUTION: 1 });

describe('a file that another execution could not go on with', () => {
  it('is ended before the run is handed over, when its compression is one stream', async () => {
    const { run_id } = await stage.openRun({ config: { compression: 'brotli' } });
    const settings = onePart();
    const outcome = await stage.attempt({ settings }).exportInterval({ run_id });
    expect(outcome).toMatchObject({ finished: true, generation: 1, rows: eventCount });
  });

  it('is ended first, file by file, where files have a largest size', async () => {
    const { run_id } = await stage.openRun({ config: { compression: 'brotli', max_file_size_mb: 1 } });
    const settings = onePart();
    const outcome = await stage.attempt({ settings }).exportInterval({ run_id });
    expect(outcome).toMatchObject({ finished: false, generation: 1 });
    const { ranges } = await stage.recorder.read(run_id);
    expect(ranges[0]).toMatchObject({ upload: null, finished: false });
    expect(ranges[0]?.files.length).toBeGreaterThan(0);
  });

  it('is ended first when its parts may not be listed', async () => {
    const { run_id } = await stage.openRun();
    const denied = new DestinationError('AccessDenied', 'Denied.', { transient: false });
    const { openDestination } = interrupted(stage, { listParts: () => Promise.reject(denied) });
    const settings = onePart();
    const outcome = await stage.attempt({ settings, openDestination }).exportInterval({ run_id });
    expect(outcome).toMatchObject({ finished: true, generation: 1, rows: eventCount });
  });
});
