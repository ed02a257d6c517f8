import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { isWrite } from '../e2e/s3_operation.ts';
import { createS3Proxy, type ProxiedRequest } from '../e2e/s3_proxy.ts';
import { createBucket } from '../setup/bucket.ts';
import { createExportHarness, type ExportHarness, insertEvents } from '../export/export_harness.ts';
import { createHours } from '../export/rerun.ts';
import { withCrash } from '../export/crash_injection.ts';
import { forgetTraits, knowTraits } from '../export/stores.ts';
import { createMaintenanceHarness, type MaintenanceHarness } from './maintenance_harness.ts';
import { readEvents } from '../journal/read_stream.ts';

let harness: ExportHarness;
let maintenance: MaintenanceHarness;

beforeAll(async () => {
  harness = await createExportHarness();
  maintenance = createMaintenanceHarness(harness);
  await harness.insertEvents(100);
});
afterAll(() => harness.close());

/** A run whose attempt crashed at one of its calls, and that failed permanently afterwards. */
async function createFailedRun(at: Parameters<typeof withCrash>[1], config: object = {}) {
  const run = await harness.createRun({ config });
  const attempt = harness.attempt(withCrash(harness, at));
  await expect(attempt.exportInterval(run)).rejects.toThrow();
  await maintenance.fail(run.run_id);
  return run;
}

const denied = { status: 403, body: '<Error><Code>AccessDenied</Code><Message>Denied.</Message></Error>' };

/** The outcome of the clean-up after a first one has failed and the retry budget is used up. */
const giveUp = async (batch_export_id: string) => {
  const { cleanUpExport } = maintenance.activities({ EXPORTD_ORPHAN_RETRY_BUDGET: '0s' });
  return cleanUpExport({ batch_export_id }).catch(() => cleanUpExport({ batch_export_id }));
};

describe('the clean-up', () => {
  it('aborts the upload of a crashed attempt once its run has ended', async () => {
    const { batchExportId } = await createFailedRun('arrived');
    expect(await maintenance.uploadsOf(batchExportId)).toHaveLength(1);
    const outcome = { deleted: 1, kept: 0, has_more: false };
    const input = { batch_export_id: batchExportId };
    expect(
      await maintenance.activities({ EXPORTD_ORPHAN_RETENTION: '1h' }).cleanUpExport(input),
    ).toMatchObject({
      deleted: 0,
    });
    expect(await maintenance.uploadsOf(batchExportId)).toHaveLength(1);
    expect(await maintenance.activities().cleanUpExport(input)).toEqual(outcome);
    expect(await maintenance.uploadsOf(batchExportId)).toEqual([]);
    expect(await maintenance.logLines(batchExportId)).toEqual([
      'Deleted obsolete objects: 1 unfinished upload.',
    ]);
    expect(await maintenance.activities().cleanUpExport(input)).toEqual({ ...outcome, deleted: 0 });
  });

  it('counts an upload as deleted that another program has aborted', async () => {
    const { batchExportId } = await createFailedRun('arrived');
    await maintenance.abortUploads(batchExportId);
    expect(await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId })).toMatchObject({
      deleted: 1,
    });
  });

  it('deletes the file that a zombie completed from an upload', async () => {
    const { batchExportId } = await createFailedRun('completed');
    expect(await maintenance.keysOf(batchExportId)).toHaveLength(1);
    expect(await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId })).toMatchObject({
      deleted: 1,
    });
    expect(await maintenance.keysOf(batchExportId)).toEqual([]);
  });

  it('leaves an object alone that another program put under the key of an aborted upload', async () => {
    const { batchExportId, run_id } = await createFailedRun('arrived');
    const { ranges } = await harness.recorder.read(run_id);
    const key = ranges[0]?.upload?.key ?? '';
    await maintenance.putObject(key, 'from another program');
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    expect(await maintenance.keysOf(batchExportId)).toEqual([key]);
  });

  it('deletes files that were completed and never published', async () => {
    const run = await harness.createRun();
    await harness.attempt().exportInterval(run);
    await maintenance.fail(run.run_id);
    expect(await maintenance.keysOf(run.batchExportId)).toHaveLength(1);
    await maintenance.activities().cleanUpExport({ batch_export_id: run.batchExportId });
    expect(await maintenance.keysOf(run.batchExportId)).toEqual([]);
  });

  describe('after the deletion of an export whose run was publishing', () => {
    const deleteWhilePublishing = async (at: 'before' | 'after') => {
      const run = await harness.createRun();
      const { batchExportId, run_id } = run;
      await maintenance.createExport(batchExportId, 1);
      const activities = harness.attempt();
      await activities.exportInterval(run);
      const { generation } = await harness.recorder.read(run_id);
      // Another attempt has claimed publishing, and its manifest has arrived or not.
      if (at === 'before') await harness.recorder.startPublish(run_id, generation);
      else await publishUnrecorded(run);
      await maintenance.deleteExport(batchExportId);
      expect((await harness.recorder.read(run_id)).status).toBe('Cancelled');
      await expect(harness.attempt().publishManifest(run)).rejects.toThrow('accepts no further steps');
      return run;
    };
    /** Publishes the manifest, and loses the connection to the journal before that is recorded. */
    const publishUnrecorded = async (run: { run_id: string }): Promise<void> => {
      const complete = (): Promise<void> => Promise.reject(new Error('a crash'));
      await expect(
        harness.attempt({ recorder: { ...harness.recorder, complete } }).publishManifest(run),
      ).rejects.toThrow();
    };

    it('deletes the files if the manifest is not there', async () => {
      const { batchExportId } = await deleteWhilePublishing('before');
      expect(await maintenance.keysOf(batchExportId)).toHaveLength(1);
      expect(await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId })).toMatchObject({
        deleted: 1,
        kept: 0,
      });
      expect(await maintenance.keysOf(batchExportId)).toEqual([]);
    });

    it('keeps them if it is there, and records that', async () => {
      const { batchExportId, run_id } = await deleteWhilePublishing('after');
      const keys = await maintenance.keysOf(batchExportId);
      expect(keys).toHaveLength(2);
      const input = { batch_export_id: batchExportId };
      expect(await maintenance.activities().cleanUpExport(input)).toMatchObject({ deleted: 0, kept: 1 });
      expect(await maintenance.keysOf(batchExportId)).toEqual(keys);
      expect(await maintenance.obsoleteKeys(batchExportId)).toEqual([]);
      expect(await readEvents(harness.database.pool, run_id, 'RunObjectDeleted')).toEqual([
        {
          type: 'RunObjectDeleted',
          data: expect.objectContaining({ deleted: false, reason: expect.stringContaining('was published') }),
        },
      ]);
    });
  });

  it('records the deletions of all other runs when the state of one cannot be read', async () => {
    const batchExportId = randomUUID();
    const runIds: string[] = [];
    for (let run = 0; run < 2; run += 1) {
      const failed = await harness.createRun({ batchExportId });
      await harness.attempt().exportInterval(failed);
      await maintenance.fail(failed.run_id);
      runIds.push(failed.run_id);
    }
    const obsolete = await maintenance.obsoleteKeys(batchExportId);
    await harness.database.pool.query(
      `update exportd.stream_states set state = 'null' where stream_id = $1`,
      [runIds[0]],
    );
    const input = { batch_export_id: batchExportId };
    await expect(maintenance.activities().cleanUpExport(input)).rejects.toThrow('Unexpected TypeError');
    const remaining = await maintenance.obsoleteKeys(batchExportId);
    expect(remaining.length).toBeLessThan(obsolete.length);
    expect(remaining.length).toBeGreaterThan(0);
  });

  it('deletes an older generation after its retention and never what the manifest refers to', async () => {
    const { batchExportId, manifest_key } = await maintenance.publish();
    const before = await maintenance.keysOf(batchExportId);
    await maintenance.publish(batchExportId);
    const input = { batch_export_id: batchExportId };
    await maintenance.activities({ EXPORTD_OLD_GENERATION_RETENTION: '1h' }).cleanUpExport(input);
    expect(await maintenance.keysOf(batchExportId)).toHaveLength(3);
    // Both configs have the same prefix, so the newer manifest replaced the older one, of which only a row is left.
    expect(await maintenance.activities().cleanUpExport(input)).toEqual({
      deleted: 2,
      kept: 0,
      has_more: false,
    });
    const after = await maintenance.keysOf(batchExportId);
    expect(after).toHaveLength(2);
    expect(after).toContain(manifest_key);
    expect(after.filter((key) => before.includes(key))).toEqual([manifest_key]);
    await maintenance.activities().cleanUpExport(input);
    expect(await maintenance.keysOf(batchExportId)).toEqual(after);
  });

  it('leaves an object alone that another export put under the key of an older file', async () => {
    const { batchExportId, manifest_key } = await maintenance.publish();
    await maintenance.publish(batchExportId);
    const [olderKey = ''] = (await maintenance.keysOf(batchExportId)).filter((key) => key !== manifest_key);
    await maintenance.putObject(olderKey, 'from another export');
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    expect(await maintenance.readObject(olderKey)).toBe('from another export');
    expect(await maintenance.obsoleteKeys(batchExportId)).toEqual([]);
  });

  it('deletes an older generation at every location, its manifest first', async () => {
    const id = randomUUID();
    const other = await createBucket();
    try {
      await maintenance.publish(id, { prefix: `first/${id}` });
      await maintenance.publish(id, { prefix: `second/${id}`, bucket_name: other.bucket });
      const third = await maintenance.publish(id, { prefix: `third/${id}/{day}`, file_format: 'CSV' });
      expect(await maintenance.keysOf(id)).toHaveLength(4);
      expect(await maintenance.keysOf(id, other)).toHaveLength(2);
      expect(await maintenance.activities().cleanUpExport({ batch_export_id: id })).toMatchObject({
        deleted: 4,
      });
      expect(await maintenance.keysOf(id, other)).toEqual([]);
      expect(await maintenance.keysOf(id)).toEqual([
        expect.stringMatching(/^third\/.*\.csv$/),
        third.manifest_key,
      ]);
    } finally {
      other.client.destroy();
    }
  });

  it('keeps what a manifest refers to, whatever the journal says, and retries later', async () => {
    const { batchExportId, manifest_key } = await maintenance.publish();
    const manifest = await maintenance.readObject(manifest_key);
    await maintenance.publish(batchExportId);
    await maintenance.deleteObject(manifest_key);
    await maintenance.putObject(manifest_key, manifest);
    const input = { batch_export_id: batchExportId };
    await expect(maintenance.activities().cleanUpExport(input)).rejects.toMatchObject({
      type: 'StillReferenced',
      nonRetryable: false,
    });
    expect(await maintenance.obsoleteKeys(batchExportId)).toHaveLength(2);
    expect(await maintenance.keysOf(batchExportId)).toHaveLength(3);
  });

  it('leaves nothing of a bucket that was read-only during its runs, once it can be written again', async () => {
    const proxy = await createS3Proxy(harness.bucket.endpoint);
    const readOnly = (from: (request: ProxiedRequest) => boolean) => {
      let isReadOnly = false;
      return proxy.intercept({
        before: (request) => {
          isReadOnly ||= from(request);
          const writes = isWrite(request) || /^(Delete|Abort)/.test(request.operation);
          return isReadOnly && writes ? denied : undefined;
        },
      });
    };
    try {
      const batchExportId = randomUUID();
      const config = { endpoint_url: proxy.endpoint };
      const hour = createHours();
      const input = { batch_export_id: batchExportId };
      const fail = async (from: (request: ProxiedRequest) => boolean, publishes: boolean) => {
        const of = hour();
        await insertEvents(harness.database.pool, 20, of.start);
        const run = await harness.createRun({ batchExportId, config, of });
        const stop = readOnly(from);
        const attempt = harness.attempt();
        if (publishes) await attempt.exportInterval(run);
        await expect(
          publishes ? attempt.publishManifest(run) : attempt.exportInterval(run),
        ).rejects.toMatchObject({ type: 'AccessDenied' });
        await maintenance.fail(run.run_id);
        await expect(maintenance.activities().cleanUpExport(input)).rejects.toMatchObject({
          type: 'MissingPermission',
        });
        stop();
      };
      // A run whose first part is refused, and three of a backfill whose manifests are.
      await fail(({ operation }) => operation === 'UploadPart', false);
      for (let run = 0; run < 3; run += 1)
        await fail(({ operation, key }) => operation === 'PutObject' && key.includes('_manifests'), true);
      expect(await maintenance.keysOf(batchExportId)).toHaveLength(3);
      expect(await maintenance.uploadsOf(batchExportId)).toHaveLength(1);
      expect(await maintenance.logLines(batchExportId)).toContainEqual(
        expect.stringMatching(
          /^Could not delete obsolete objects yet: 1 file, such as s3:.*\.jsonl\..* lack the permission s3:DeleteObject\. Trying again for 7 days\.$/,
        ),
      );
      expect(await maintenance.activities().cleanUpExport(input)).toMatchObject({ deleted: 4, kept: 0 });
      expect(await maintenance.keysOf(batchExportId)).toEqual([]);
      expect(await maintenance.uploadsOf(batchExportId)).toEqual([]);
    } finally {
      await proxy.close();
    }
  });

  it('gives up what it was denied for the retry budget, and logs the missing permission and what stays', async () => {
    const proxy = await createS3Proxy(harness.bucket.endpoint);
    try {
      const { batchExportId } = await maintenance.publish(undefined, { endpoint_url: proxy.endpoint });
      await maintenance.publish(batchExportId, { endpoint_url: proxy.endpoint });
      proxy.intercept({ before: ({ operation }) => (operation === 'DeleteObject' ? denied : undefined) });
      const input = { batch_export_id: batchExportId };
      await expect(maintenance.activities().cleanUpExport(input)).rejects.toThrow('s3:DeleteObject');
      expect(await giveUp(batchExportId)).toMatchObject({ kept: 1 });
      expect(await maintenance.logLines(batchExportId)).toContainEqual(
        expect.stringMatching(
          /^Could not delete obsolete objects, which stay in the bucket: 1 file, such as s3:\/\/.*\.jsonl\. .* lack the permission s3:DeleteObject\.$/,
        ),
      );
      const requestCount = proxy.requests.length;
      expect(await maintenance.activities().cleanUpExport(input)).toEqual({
        deleted: 0,
        kept: 0,
        has_more: false,
      });
      expect(proxy.requests).toHaveLength(requestCount);
    } finally {
      await proxy.close();
    }
  });

  it('keeps a published file when the manifest cannot be read', async () => {
    const proxy = await createS3Proxy(harness.bucket.endpoint);
    try {
      const { batchExportId } = await maintenance.publish(undefined, { endpoint_url: proxy.endpoint });
      await maintenance.publish(batchExportId, { endpoint_url: proxy.endpoint });
      const before = await maintenance.keysOf(batchExportId);
      proxy.intercept({ before: ({ operation }) => (operation === 'GetObject' ? denied : undefined) });
      expect(await giveUp(batchExportId)).toMatchObject({ kept: 2 });
      expect(await maintenance.keysOf(batchExportId)).toEqual(before);
    } finally {
      await proxy.close();
    }
  });

  it('retries while a location does not respond, and cleans up the other locations', async () => {
    const id = randomUUID();
    const proxy = await createS3Proxy(harness.bucket.endpoint);
    await maintenance.publish(id, { prefix: `first/${id}`, endpoint_url: proxy.endpoint });
    await maintenance.publish(id, { prefix: `second/${id}` });
    await maintenance.publish(id, { prefix: `third/${id}` });
    await proxy.close();
    const input = { batch_export_id: id };
    // The retry budget starts with the first failure, however long the objects have been obsolete.
    await expect(
      maintenance.activities({ EXPORTD_ORPHAN_RETRY_BUDGET: '0s' }).cleanUpExport(input),
    ).rejects.toMatchObject({
      type: 'S3Unreachable',
      nonRetryable: false,
    });
    expect(await maintenance.keysOf(id)).toHaveLength(4);
    await expect(maintenance.activities().cleanUpExport(input)).rejects.toMatchObject({
      type: 'S3Unreachable',
    });
    expect(
      await maintenance.activities({ EXPORTD_ORPHAN_RETRY_BUDGET: '0s' }).cleanUpExport(input),
    ).toMatchObject({
      kept: 2,
    });
    expect(await maintenance.obsoleteKeys(id)).toEqual([]);
  });

  it("gives up nothing after an operator's fault, however long it lasts", async () => {
    const run = await harness.createRun();
    await harness.attempt().exportInterval(run);
    await maintenance.fail(run.run_id);
    const { rows } = await harness.database.pool.query(
      `update exportd.destination_configs set secrets = secrets || jsonb_build_object('aws_secret_access_key', 'lost:AAAA')
       where batch_export_id = $1 returning (select secrets from exportd.destination_configs where batch_export_id = $1)`,
      [run.batchExportId],
    );
    const input = { batch_export_id: run.batchExportId };
    for (let attempt = 0; attempt < 2; attempt += 1)
      await expect(
        maintenance.activities({ EXPORTD_ORPHAN_RETRY_BUDGET: '0s' }).cleanUpExport(input),
      ).rejects.toMatchObject({ type: 'SecretUnreadable', nonRetryable: false });
    await harness.database.pool.query(
      'update exportd.destination_configs set secrets = $2 where batch_export_id = $1',
      [run.batchExportId, (rows as { secrets: unknown }[])[0]?.secrets],
    );
    expect(await maintenance.activities().cleanUpExport(input)).toMatchObject({ deleted: 1, kept: 0 });
  });

  it('keeps retrying what was interrupted', async () => {
    const proxy = await createS3Proxy(harness.bucket.endpoint);
    try {
      const { batchExportId } = await maintenance.publish(undefined, { endpoint_url: proxy.endpoint });
      await maintenance.publish(batchExportId, { endpoint_url: proxy.endpoint });
      await maintenance.publish(batchExportId, { endpoint_url: proxy.endpoint });
      const broken = { status: 501, body: '<Error><Code>Broken</Code><Message>Broken.</Message></Error>' };
      const input = { batch_export_id: batchExportId };
      const stopIntercepting = proxy.intercept({
        before: ({ operation }) => (operation === 'GetObject' ? broken : undefined),
      });
      await expect(maintenance.activities().cleanUpExport(input)).rejects.toMatchObject({ type: 'Broken' });
      stopIntercepting();
      const remaining = await maintenance.obsoleteKeys(batchExportId);
      const abortion = new AbortController();
      proxy.intercept({
        before: ({ operation }) => {
          if (operation === 'GetObject') abortion.abort(new Error('The worker shuts down.'));
          return undefined;
        },
      });
      const { cleanUpExport } = maintenance.activities(
        { EXPORTD_ORPHAN_RETRY_BUDGET: '0s' },
        {},
        abortion.signal,
      );
      await expect(cleanUpExport(input)).rejects.toThrow();
      expect(await maintenance.obsoleteKeys(batchExportId)).toEqual(remaining);
      expect(await maintenance.logLines(batchExportId)).not.toContainEqual(
        expect.stringContaining('Could not delete'),
      );
    } finally {
      await proxy.close();
    }
  });

  it('logs that a file may stay when it must not check for the file', async () => {
    const proxy = await createS3Proxy(harness.bucket.endpoint);
    try {
      const { run_id, batchExportId } = await harness.createRun({ config: { endpoint_url: proxy.endpoint } });
      await harness.attempt().exportInterval({ run_id });
      await maintenance.fail(run_id);
      proxy.intercept({ before: ({ operation }) => (operation === 'HeadObject' ? denied : undefined) });
      expect(await giveUp(batchExportId)).toMatchObject({ deleted: 0, kept: 1 });
      expect(await maintenance.logLines(batchExportId)).toContainEqual(
        expect.stringContaining('lack the permission s3:GetObject'),
      );
    } finally {
      await proxy.close();
    }
  });

  it('logs that a file of one request may stay when it must not check for the file', async () => {
    const proxy = await createS3Proxy(harness.bucket.endpoint);
    try {
      await knowTraits(harness, proxy, { conditional_put: true, conditional_complete: true });
      const { batchExportId } = await createFailedRun('written', { endpoint_url: proxy.endpoint });
      const stopDenying = proxy.intercept({
        before: ({ operation }) => (operation === 'HeadObject' ? denied : undefined),
      });
      expect(await giveUp(batchExportId)).toMatchObject({ deleted: 0, kept: 1 });
      expect(await maintenance.keysOf(batchExportId)).toHaveLength(1);
      expect(await maintenance.logLines(batchExportId)).toContainEqual(
        expect.stringContaining('lack the permission s3:GetObject'),
      );
      stopDenying();
      const second = await createFailedRun('written', { endpoint_url: proxy.endpoint });
      const other = { batch_export_id: second.batchExportId };
      expect(await maintenance.activities().cleanUpExport(other)).toMatchObject({ deleted: 1, kept: 0 });
      expect(await maintenance.keysOf(second.batchExportId)).toEqual([]);
    } finally {
      await forgetTraits(harness);
      await proxy.close();
    }
  });

  it('counts the objects of a deleted bucket as deleted', async () => {
    const id = randomUUID();
    const other = await createBucket();
    await maintenance.publish(id, { prefix: `first/${id}`, bucket_name: other.bucket });
    await maintenance.publish(id, { prefix: `second/${id}` });
    await maintenance.deleteBucket(other);
    expect(await maintenance.activities().cleanUpExport({ batch_export_id: id })).toEqual({
      deleted: 2,
      kept: 0,
      has_more: false,
    });
  });
});

describe('the credentials of the clean-up', () => {
  it('are the current ones if these lead to the same bucket', async () => {
    const id = randomUUID();
    await maintenance.publish(id);
    await maintenance.publish(id);
    await maintenance.revokeSecret(id, 1);
    await expect(maintenance.activities().cleanUpExport({ batch_export_id: id })).rejects.toMatchObject({
      type: 'SignatureDoesNotMatch',
    });
    await maintenance.createExport(id, 2);
    expect(await maintenance.activities().cleanUpExport({ batch_export_id: id })).toMatchObject({
      deleted: 2,
    });
    expect(await maintenance.keysOf(id)).toHaveLength(2);
  });
});
