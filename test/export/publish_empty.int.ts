import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createEmptyPublisher } from '../../src/export/publish_empty.ts';
import { runDecider } from '../../src/domain/run.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { startBlackholeServer, type BlackholeServer } from '../isolation/blackhole_server.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createStage, interval, type Stage } from './export_harness.ts';
import { createReader } from './reader.ts';

let stage: Stage;
let silent: BlackholeServer;
beforeAll(async () => {
  stage = await createStage();
  silent = await startBlackholeServer();
});
afterAll(async () => {
  await stage.close();
  await silent.close();
});

const publisher = (patienceMs: number) =>
  createEmptyPublisher(
    { ...stage, logger: createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' }) },
    { EXPORTD_EMPTY_PUBLISH_SLOTS: 1, EXPORTD_EMPTY_PUBLISH_TIMEOUT: patienceMs },
  );
const openEmpty = async (config: object = {}) => {
  const { run_id } = await stage.openRun({ config });
  await stage.recorder.recordEmpty(run_id, { settled: true, encoder: 'none' });
  return run_id;
};

describe('an interval without rows', () => {
  it('is published where it was found to have none, once', async () => {
    const publish = publisher(60_000);
    const run_id = await openEmpty();
    expect([await publish(run_id), await publish(run_id)]).toEqual([true, true]);
    const { manifest_key } = await stage.attempt().publishManifest({ run_id });
    const read = createReader(stage.database.pool, stage.bucket, interval);
    expect(await read.manifestAt(manifest_key)).toMatchObject({ run_id, rows: 0, files: [], generation: 1 });
  });

  it('is left to the exports while its bucket hangs, and so is the next as long as no place is free', async () => {
    const publish = publisher(2_000);
    const [next, stuck] = [await openEmpty(), await openEmpty({ endpoint_url: silent.endpoint })];
    const hanging = publish(stuck);
    // At once: it hangs for so long only.
    expect(await publish(next)).toBe(false);
    expect(await hanging).toBe(false);
    await waitFor(() => publish(next), 'the next is published in the place that is free again');
  });

  it('of a run that has ended is not published', async () => {
    const run_id = await openEmpty();
    await stage.journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, run_id);
      await stream.append('ended', [{ type: 'RunCancelled', data: { reason: 'a test' } }]);
    });
    await expect(publisher(60_000)(run_id)).rejects.toThrow('The run is Cancelled');
  });
});
