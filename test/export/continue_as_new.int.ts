import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DestinationError } from '../../src/destination/destination.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import { withInterruptions } from './crash_injection.ts';

let harness: ExportHarness;
const eventCount = 6_000;
beforeAll(async () => {
  harness = await createExportHarness();
  await harness.insertEvents(eventCount);
});
afterAll(() => harness.close());

const onePart = () => ({ ...harness.settings, EXPORTD_PARTS_PER_EXECUTION: 1 });

describe('a file that another execution could not resume', () => {
  it('is finished before the run continues as new, if its compression is one stream', async () => {
    const { run_id } = await harness.createRun({ config: { compression: 'brotli' } });
    const settings = onePart();
    const outcome = await harness.attempt({ settings }).exportInterval({ run_id });
    expect(outcome).toMatchObject({ finished: true, generation: 1, rows: eventCount });
  });

  it('is finished first, file by file, if files have a maximum size', async () => {
    const { run_id } = await harness.createRun({ config: { compression: 'brotli', max_file_size_mb: 1 } });
    const settings = onePart();
    const outcome = await harness.attempt({ settings }).exportInterval({ run_id });
    expect(outcome).toMatchObject({ finished: false, generation: 1 });
    const { ranges } = await harness.recorder.read(run_id);
    expect(ranges[0]).toMatchObject({ upload: null, finished: false });
    expect(ranges[0]?.files.count).toBeGreaterThan(0);
  });

  it('is finished first, if its parts must not be listed', async () => {
    const { run_id } = await harness.createRun();
    const accessDenied = new DestinationError('AccessDenied', 'Denied.', { transient: false });
    const { openDestination } = withInterruptions(harness, { listParts: () => Promise.reject(accessDenied) });
    const settings = onePart();
    const outcome = await harness.attempt({ settings, openDestination }).exportInterval({ run_id });
    expect(outcome).toMatchObject({ finished: true, generation: 1, rows: eventCount });
  });
});
