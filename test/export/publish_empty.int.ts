import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createEmptyPublisher } from '../../src/export/publish.ts';
import { runDecider } from '../../src/domain/run.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { startBlackholeServer, type BlackholeServer } from '../isolation/blackhole_server.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';

let harness: ExportHarness;
let blackhole: BlackholeServer;
beforeAll(async () => {
  harness = await createExportHarness();
  blackhole = await startBlackholeServer();
});
afterAll(async () => {
  await harness.close();
  await blackhole.close();
});

const publisher = (timeoutMs: number, signal = new AbortController().signal) => {
  const publish = createEmptyPublisher(
    { ...harness, logger: createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' }) },
    { EXPORTD_EMPTY_PUBLISH_SLOTS: 1, EXPORTD_EMPTY_PUBLISH_TIMEOUT: timeoutMs },
  );
  return (runId: string) => publish(runId, signal);
};
const createEmptyRun = async (config: object = {}) => {
  const { run_id } = await harness.createRun({ config });
  await harness.recorder.recordEmpty(run_id, {
    fingerprint: fingerprintOf(0),
    settled: true,
    encoder: 'none',
  });
  return run_id;
};

describe('an interval without rows', () => {
  it('is published by the worker that counted it, once', async () => {
    const publish = publisher(60_000);
    const run_id = await createEmptyRun();
    expect([await publish(run_id), await publish(run_id)]).toEqual([true, true]);
    const { manifest_key } = await harness.attempt().publishManifest({ run_id });
    expect(await harness.reader.manifestAt(manifest_key)).toMatchObject({
      run_id,
      rows: 0,
      files: [],
      generation: 1,
    });
  });

  it('is left to the export workers while its bucket hangs, as is the next while no slot is free', async () => {
    const publish = publisher(2_000);
    const [next, stuck] = [
      await createEmptyRun(),
      await createEmptyRun({ endpoint_url: blackhole.endpoint }),
    ];
    const hanging = publish(stuck);
    // Checked at once: the first one occupies the slot only until its timeout.
    expect(await publish(next)).toBe(false);
    expect(await hanging).toBe(false);
    await waitFor(() => publish(next), 'the next run is published in the released slot');
  });

  it('is not published if its run has ended', async () => {
    const run_id = await createEmptyRun();
    await harness.journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, run_id);
      await stream.append('ended', [{ type: 'RunCancelled', data: { reason: 'a test' } }]);
    });
    await expect(publisher(60_000)(run_id)).rejects.toThrow('The run is Cancelled');
  });
});
