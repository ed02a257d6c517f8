import { CancelledFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { OpenDestination } from '../../src/destination/open_destination.ts';
import { attemptOf, runDecider } from '../../src/domain/run.ts';
import { createStage, interval, type Stage } from './export_harness.ts';
import { createReader } from './reader.ts';

let stage: Stage;
let read: ReturnType<typeof createReader>;
const eventCount = 12_000;
beforeAll(async () => {
  stage = await createStage();
  read = createReader(stage.database.pool, stage.bucket, interval);
  await stage.insertEvents(eventCount);
});
afterAll(() => stage.close());

/** A way to the destination that calls `onPart` in place of sending a part. */
const interrupting =
  (onPart: () => Promise<never>): OpenDestination =>
  async (subject, onFault) => {
    const destination = await stage.openDestination(subject, onFault);
    return {
      ...destination,
      createUpload: async (...input) => ({ ...(await destination.createUpload(...input)), putPart: onPart }),
    };
  };

const endAsCancelled = (runId: string): Promise<void> =>
  stage.journal.transaction(async (transaction) => {
    const stream = await transaction.lock(runDecider, runId);
    await stream.append('ended', [{ type: 'RunCancelled', data: { reason: 'a test' } }]);
  });

describe('exporting an interval', () => {
  it.each([null, 'gzip'])(
    'writes every row once, in order, in parts, and then the manifest (%s)',
    async (compression) => {
      const { run_id, batchExportId } = await stage.openRun({ config: { compression } });
      const attempt = stage.attempt();
      const exported = await attempt.exportInterval({ run_id });
      expect(exported).toMatchObject({ generation: 1, rows: eventCount, source_rows: eventCount });
      expect(await attempt.exportInterval({ run_id })).toEqual(exported);
      const published = await attempt.publishManifest({ run_id });
      expect(await attempt.publishManifest({ run_id })).toEqual(published);

      const manifest = await read.manifestAt(published.manifest_key);
      expect(manifest).toMatchObject({ run_id, generation: 1, rows: eventCount, settled: true });
      expect(await read.uuidsBehind(manifest)).toEqual(await read.sourceUuids());
      expect(await read.keysUnder(batchExportId)).toHaveLength(2);
      const types = await read.eventTypes(run_id);
      expect(types.filter((type) => type === 'RunPartPlanned').length).toBeGreaterThan(1);
      expect(types.at(-1)).toBe('RunCompleted');
      expect(attempt.heartbeats.length).toBeGreaterThan(0);
    },
  );

  it('leaves only a manifest when there is no row', async () => {
    const { run_id, batchExportId } = await stage.openRun({ model: 'persons' });
    const attempt = stage.attempt();
    expect(await attempt.exportInterval({ run_id })).toMatchObject({ rows: 0, bytes: 0 });
    const { manifest_key } = await attempt.publishManifest({ run_id });
    expect(await read.manifestAt(manifest_key)).toMatchObject({ rows: 0, files: [], encoder: 'none' });
    expect(await read.keysUnder(batchExportId)).toEqual([manifest_key]);
  });

  it('again writes the next generation beside the old one, which stays whole', async () => {
    const { run_id, batchExportId } = await stage.openRun();
    const attempt = stage.attempt();
    await attempt.exportInterval({ run_id });
    const { manifest_key } = await attempt.publishManifest({ run_id });
    const before = await read.manifestAt(manifest_key);

    const again = await stage.openRun({ batchExportId });
    expect(await attempt.exportInterval(again)).toMatchObject({ generation: 2 });
    expect(await read.manifestAt(manifest_key)).toEqual(before);
    await attempt.publishManifest(again);
    const after = await read.manifestAt(manifest_key);
    expect(after).toMatchObject({ generation: 2, run_id: again.run_id });
    expect(after.files[0]?.key).toMatch(/-g2\.jsonl$/);
    expect(await read.uuidsBehind(after)).toEqual(await read.uuidsBehind(before));
  });
});

describe('an attempt that fails', () => {
  it('is followed by one that goes on with its file and leaves nothing else behind', async () => {
    const { run_id, batchExportId } = await stage.openRun();
    const killed = stage.attempt({
      openDestination: interrupting(() => Promise.reject(new Error('a row of data'))),
    });
    await expect(killed.exportInterval({ run_id })).rejects.toMatchObject({
      type: 'UnexpectedError',
      nonRetryable: false,
      message: expect.not.stringContaining('a row'),
    });
    const attempt = stage.attempt();
    expect(await attempt.exportInterval({ run_id })).toMatchObject({ generation: 1, rows: eventCount });
    const { manifest_key } = await attempt.publishManifest({ run_id });
    expect(await read.uuidsBehind(await read.manifestAt(manifest_key))).toEqual(await read.sourceUuids());
    expect(await read.keysUnder(batchExportId)).toHaveLength(2);
    expect(await read.openUploads()).toEqual([]);
  });

  it('under another version of the encoder has its upload thrown away by the next', async () => {
    const { run_id } = await stage.openRun();
    const run = await stage.recorder.reserveGeneration(run_id);
    const { spec: subject, generation } = run;
    const destination = await stage.openDestination(subject, () => undefined);
    const key = destination.fileKey(subject, { generation, range: null, file: null }, 'jsonl');
    const upload = await destination.createUpload(key, 'text/plain', new AbortController().signal);
    const attempt = attemptOf(run, 0);
    await stage.recorder.recordUpload(run_id, attempt, { ...upload, file: 0, encoder: 'jsonlines/0' });
    destination.close();
    expect(await read.openUploads()).toHaveLength(1);
    expect(await stage.attempt().exportInterval({ run_id })).toMatchObject({ generation: 2 });
    expect(await read.openUploads()).toEqual([]);
  });

  it('and is only believed dead cannot finish beside its successor', async () => {
    const { run_id } = await stage.openRun();
    const reached = Promise.withResolvers<undefined>();
    const goOn = Promise.withResolvers<never>();
    const zombie = stage
      .attempt({
        openDestination: interrupting(() => {
          reached.resolve(undefined);
          return goOn.promise;
        }),
      })
      .exportInterval({ run_id });
    await reached.promise;
    const exported = await stage.attempt().exportInterval({ run_id });
    goOn.reject(new Error('woken up'));
    await expect(zombie).rejects.toMatchObject({ name: 'ApplicationFailure' });
    expect(await stage.recorder.read(run_id)).toMatchObject({
      generation: 1,
      finished: { source_rows: eventCount },
    });
    expect(exported).toMatchObject({ generation: 1, rows: eventCount });
  });

  it.each([
    ['because its run was cancelled throws its parts away', true, 'CANCELLED', 0],
    ['because a range beside it failed leaves its parts to the next', false, 'CANCELLED', 1],
    ['because its worker shuts down leaves its parts to the next', false, 'WORKER_SHUTDOWN', 1],
  ])('%s', async (_, runIsCancelled, cause, uploads) => {
    const { run_id } = await stage.openRun();
    const cancel = new AbortController();
    const reason = new CancelledFailure(cause);
    const openDestination = interrupting(async () => {
      if (runIsCancelled) await endAsCancelled(run_id);
      cancel.abort(reason);
      throw reason;
    });
    await expect(
      stage.attempt({ signal: cancel.signal, openDestination }).exportInterval({ run_id }),
      // A cancelled run refuses the next step, unless the cancellation is heard first.
    ).rejects.toThrow();
    expect(await read.openUploads()).toHaveLength(uploads);
    if (uploads > 0) await stage.attempt().exportInterval({ run_id });
    expect(await read.openUploads()).toEqual([]);
  });

  it('for wrong credentials is not tried again and tells what to look at', async () => {
    const { run_id } = await stage.openRun({ config: { aws_access_key_id: 'nobody' } });
    await expect(stage.attempt().exportInterval({ run_id })).rejects.toMatchObject({
      type: 'InvalidAccessKeyId',
      nonRetryable: true,
      message: expect.stringContaining('aws_access_key_id'),
    });
  });

  it('after the run has ended writes nothing', async () => {
    const { run_id, batchExportId } = await stage.openRun();
    await endAsCancelled(run_id);
    const attempt = stage.attempt();
    for (const activity of [attempt.exportInterval, attempt.publishManifest])
      await expect(activity({ run_id })).rejects.toMatchObject({ type: 'RunEnded', nonRetryable: true });
    expect(await read.keysUnder(batchExportId)).toEqual([]);
  });
});
