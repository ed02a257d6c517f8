import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createS3Proxy } from '../e2e/s3_proxy.ts';
import { createBucket } from '../setup/bucket.ts';
import { createStage, type Stage } from '../export/export_harness.ts';
import { killed } from '../export/crash_injection.ts';
import { createUpkeepStage, type UpkeepStage } from './maintenance_harness.ts';

let stage: Stage;
let scene: UpkeepStage;

beforeAll(async () => {
  stage = await createStage();
  scene = createUpkeepStage(stage);
  await stage.insertEvents(1_000);
});
afterAll(() => stage.close());

/** A run whose attempt was killed at one of its calls and that failed for good afterwards. */
async function failedRun(at: Parameters<typeof killed>[1], config: object = {}) {
  const run = await stage.openRun({ config });
  const attempt = stage.attempt(killed(stage, at));
  await expect(attempt.exportInterval(run)).rejects.toThrow();
  await scene.fail(run.run_id);
  return run;
}

const denied = { status: 403, body: '<Error><Code>AccessDenied</Code><Message>Denied.</Message></Error>' };

describe('the clean-up', () => {
  it('sweeps the upload of an attempt that was killed, once its run is over', async () => {
    const { batchExportId } = await failedRun('arrived');
    expect(await scene.uploadsOf(batchExportId)).toHaveLength(1);
    const outcome = { removed: 1, kept: 0, more: false };
    const input = { batch_export_id: batchExportId };
    expect(await scene.upkeep({ EXPORTD_ORPHAN_RETENTION: '1h' }).cleanUpExport(input)).toMatchObject({
      removed: 0,
    });
    expect(await scene.uploadsOf(batchExportId)).toHaveLength(1);
    expect(await scene.upkeep().cleanUpExport(input)).toEqual(outcome);
    expect(await scene.uploadsOf(batchExportId)).toEqual([]);
    expect(await scene.logLines(batchExportId)).toEqual([
      'Cleaned up what nobody needs any more: 1 unfinished upload.',
    ]);
    expect(await scene.upkeep().cleanUpExport(input)).toEqual({ ...outcome, removed: 0 });
  });

  it('counts an upload as swept that somebody else has thrown away', async () => {
    const { batchExportId } = await failedRun('arrived');
    await scene.abortByHand(batchExportId);
    expect(await scene.upkeep().cleanUpExport({ batch_export_id: batchExportId })).toMatchObject({
      removed: 1,
    });
  });

  it('removes the file that a zombie has made of an upload', async () => {
    const { batchExportId } = await failedRun('completed');
    expect(await scene.keysOf(batchExportId)).toHaveLength(1);
    expect(await scene.upkeep().cleanUpExport({ batch_export_id: batchExportId })).toMatchObject({
      removed: 1,
    });
    expect(await scene.keysOf(batchExportId)).toEqual([]);
  });

  it('leaves an object alone that somebody else has put where a swept upload would have gone', async () => {
    const { batchExportId, run_id } = await failedRun('arrived');
    const { ranges } = await stage.recorder.read(run_id);
    const key = ranges[0]?.upload?.key ?? '';
    await scene.putByHand(key, 'of somebody else');
    await scene.upkeep().cleanUpExport({ batch_export_id: batchExportId });
    expect(await scene.keysOf(batchExportId)).toEqual([key]);
  });

  it('removes files that were finished and never published', async () => {
    const run = await stage.openRun();
    await stage.attempt().exportInterval(run);
    await scene.fail(run.run_id);
    expect(await scene.keysOf(run.batchExportId)).toHaveLength(1);
    await scene.upkeep().cleanUpExport({ batch_export_id: run.batchExportId });
    expect(await scene.keysOf(run.batchExportId)).toEqual([]);
  });

  it('removes an older generation after its grace and never what the manifest names', async () => {
    const { batchExportId, manifest_key } = await scene.publish();
    const before = await scene.keysOf(batchExportId);
    await scene.publish(batchExportId);
    const input = { batch_export_id: batchExportId };
    await scene.upkeep({ EXPORTD_OLD_GENERATION_RETENTION: '1h' }).cleanUpExport(input);
    expect(await scene.keysOf(batchExportId)).toHaveLength(3);
    // Both configs have the same prefix: the older manifest was written over, and only its row is left.
    expect(await scene.upkeep().cleanUpExport(input)).toEqual({ removed: 2, kept: 0, more: false });
    const after = await scene.keysOf(batchExportId);
    expect(after).toHaveLength(2);
    expect(after).toContain(manifest_key);
    expect(after.filter((key) => before.includes(key))).toEqual([manifest_key]);
    await scene.upkeep().cleanUpExport(input);
    expect(await scene.keysOf(batchExportId)).toEqual(after);
  });

  it('leaves an object alone that another export has put in the place of an older file', async () => {
    const { batchExportId, manifest_key } = await scene.publish();
    await scene.publish(batchExportId);
    const [older = ''] = (await scene.keysOf(batchExportId)).filter((key) => key !== manifest_key);
    await scene.putByHand(older, 'of another export');
    await scene.upkeep().cleanUpExport({ batch_export_id: batchExportId });
    expect(await scene.read(older)).toBe('of another export');
    expect(await scene.obsolete(batchExportId)).toEqual([]);
  });

  it('removes an older generation wherever prefix, bucket and format have put it, its manifest first', async () => {
    const id = randomUUID();
    const other = await createBucket();
    try {
      await scene.publish(id, { prefix: `first/${id}` });
      await scene.publish(id, { prefix: `second/${id}`, bucket_name: other.bucket });
      const third = await scene.publish(id, { prefix: `third/${id}/{day}`, file_format: 'CSV' });
      expect(await scene.keysOf(id)).toHaveLength(4);
      expect(await scene.keysOf(id, other)).toHaveLength(2);
      expect(await scene.upkeep().cleanUpExport({ batch_export_id: id })).toMatchObject({ removed: 4 });
      expect(await scene.keysOf(id, other)).toEqual([]);
      expect(await scene.keysOf(id)).toEqual([expect.stringMatching(/^third\/.*\.csv$/), third.manifest_key]);
    } finally {
      other.client.destroy();
    }
  });

  it('keeps what a manifest names, whatever the journal says, and tries again later', async () => {
    const { batchExportId, manifest_key } = await scene.publish();
    const manifest = await scene.read(manifest_key);
    await scene.publish(batchExportId);
    await scene.removeByHand(manifest_key);
    await scene.putByHand(manifest_key, manifest);
    const input = { batch_export_id: batchExportId };
    await expect(scene.upkeep().cleanUpExport(input)).rejects.toMatchObject({
      type: 'StillNamed',
      nonRetryable: false,
    });
    expect(await scene.obsolete(batchExportId)).toHaveLength(2);
    expect(await scene.keysOf(batchExportId)).toHaveLength(3);
  });

  it('says which right is missing and what stays behind, and does not ask again', async () => {
    const proxy = await createS3Proxy(stage.bucket.endpoint);
    try {
      const { batchExportId } = await scene.publish(undefined, { endpoint_url: proxy.endpoint });
      await scene.publish(batchExportId, { endpoint_url: proxy.endpoint });
      proxy.intercept({ before: ({ operation }) => (operation === 'DeleteObject' ? denied : undefined) });
      const input = { batch_export_id: batchExportId };
      expect(await scene.upkeep().cleanUpExport(input)).toMatchObject({ kept: 1 });
      expect(await scene.logLines(batchExportId)).toContainEqual(
        expect.stringMatching(
          /^Left behind although nobody needs it any more: 1 file, such as s3:\/\/.*\.jsonl\. .* lack the right s3:DeleteObject\.$/,
        ),
      );
      const asked = proxy.requests.length;
      expect(await scene.upkeep().cleanUpExport(input)).toEqual({ removed: 0, kept: 0, more: false });
      expect(proxy.requests).toHaveLength(asked);
    } finally {
      await proxy.close();
    }
  });

  it('keeps a published file when the manifest cannot be read', async () => {
    const proxy = await createS3Proxy(stage.bucket.endpoint);
    try {
      const { batchExportId } = await scene.publish(undefined, { endpoint_url: proxy.endpoint });
      await scene.publish(batchExportId, { endpoint_url: proxy.endpoint });
      const before = await scene.keysOf(batchExportId);
      proxy.intercept({ before: ({ operation }) => (operation === 'GetObject' ? denied : undefined) });
      expect(await scene.upkeep().cleanUpExport({ batch_export_id: batchExportId })).toMatchObject({
        kept: 2,
      });
      expect(await scene.keysOf(batchExportId)).toEqual(before);
    } finally {
      await proxy.close();
    }
  });

  it('fails for a while when a place does not answer, with the other places cleaned up', async () => {
    const id = randomUUID();
    const proxy = await createS3Proxy(stage.bucket.endpoint);
    await scene.publish(id, { prefix: `first/${id}`, endpoint_url: proxy.endpoint });
    await scene.publish(id, { prefix: `second/${id}` });
    await scene.publish(id, { prefix: `third/${id}` });
    await proxy.close();
    const input = { batch_export_id: id };
    // However long nobody has needed the objects: this is the first try.
    await expect(
      scene.upkeep({ EXPORTD_ORPHAN_RETRY_BUDGET: '0s' }).cleanUpExport(input),
    ).rejects.toMatchObject({
      type: 'S3Unreachable',
      nonRetryable: false,
    });
    expect(await scene.keysOf(id)).toHaveLength(4);
    await expect(scene.upkeep().cleanUpExport(input)).rejects.toMatchObject({ type: 'S3Unreachable' });
    expect(await scene.upkeep({ EXPORTD_ORPHAN_RETRY_BUDGET: '0s' }).cleanUpExport(input)).toMatchObject({
      kept: 2,
    });
    expect(await scene.obsolete(id)).toEqual([]);
  });

  it('gives nothing up for having been broken off', async () => {
    const proxy = await createS3Proxy(stage.bucket.endpoint);
    try {
      const { batchExportId } = await scene.publish(undefined, { endpoint_url: proxy.endpoint });
      await scene.publish(batchExportId, { endpoint_url: proxy.endpoint });
      await scene.publish(batchExportId, { endpoint_url: proxy.endpoint });
      const broken = { status: 501, body: '<Error><Code>Broken</Code><Message>Broken.</Message></Error>' };
      const input = { batch_export_id: batchExportId };
      const mend = proxy.intercept({
        before: ({ operation }) => (operation === 'GetObject' ? broken : undefined),
      });
      await expect(scene.upkeep().cleanUpExport(input)).rejects.toMatchObject({ type: 'Broken' });
      mend();
      const left = await scene.obsolete(batchExportId);
      const ending = new AbortController();
      proxy.intercept({
        before: ({ operation }) => {
          if (operation === 'GetObject') ending.abort(new Error('The worker ends.'));
          return undefined;
        },
      });
      const { cleanUpExport } = scene.upkeep({ EXPORTD_ORPHAN_RETRY_BUDGET: '0s' }, {}, ending.signal);
      await expect(cleanUpExport(input)).rejects.toThrow();
      expect(await scene.obsolete(batchExportId)).toEqual(left);
      expect(await scene.logLines(batchExportId)).not.toContainEqual(expect.stringContaining('Left behind'));
    } finally {
      await proxy.close();
    }
  });

  it('says that a file may stay which it may not look for', async () => {
    const proxy = await createS3Proxy(stage.bucket.endpoint);
    try {
      const { batchExportId } = await failedRun('completed', { endpoint_url: proxy.endpoint });
      proxy.intercept({ before: ({ operation }) => (operation === 'HeadObject' ? denied : undefined) });
      expect(await scene.upkeep().cleanUpExport({ batch_export_id: batchExportId })).toMatchObject({
        removed: 0,
        kept: 1,
      });
      expect(await scene.logLines(batchExportId)).toContainEqual(
        expect.stringContaining('lack the right s3:GetObject'),
      );
    } finally {
      await proxy.close();
    }
  });

  it('counts what was in a bucket that is gone as gone', async () => {
    const id = randomUUID();
    const other = await createBucket();
    await scene.publish(id, { prefix: `first/${id}`, bucket_name: other.bucket });
    await scene.publish(id, { prefix: `second/${id}` });
    await scene.removeBucket(other);
    expect(await scene.upkeep().cleanUpExport({ batch_export_id: id })).toEqual({
      removed: 2,
      kept: 0,
      more: false,
    });
  });
});

describe('the credentials of the clean-up', () => {
  it('are those in force where they lead to the same bucket', async () => {
    const id = randomUUID();
    await scene.publish(id);
    await scene.publish(id);
    await scene.revokeSecret(id, 1);
    await expect(scene.upkeep().cleanUpExport({ batch_export_id: id })).rejects.toMatchObject({
      type: 'SignatureDoesNotMatch',
    });
    await scene.createExport(id, 2);
    expect(await scene.upkeep().cleanUpExport({ batch_export_id: id })).toMatchObject({ removed: 2 });
    expect(await scene.keysOf(id)).toHaveLength(2);
  });
});
