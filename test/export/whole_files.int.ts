import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { S3OperationName } from '../e2e/s3_operation.ts';
import { createS3Proxy, type S3Proxy } from '../e2e/s3_proxy.ts';
import { createMaintenanceHarness } from '../maintenance/maintenance_harness.ts';
import { withCrash, withInterruptions } from './crash_injection.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import { errorResponse, fileRequests, forgetTraits, knowTraits, warningsOf } from './stores.ts';

let harness: ExportHarness;
let proxy: S3Proxy;
const interceptions: (() => void)[] = [];
const intercept = (...input: Parameters<S3Proxy['intercept']>): void => {
  interceptions.push(proxy.intercept(...input));
};
const rows = 300;
beforeAll(async () => {
  harness = await createExportHarness();
  proxy = await createS3Proxy(harness.bucket.endpoint);
  await harness.insertEvents(rows);
  await knowTraits(harness, proxy, { conditional_put: true, conditional_complete: true, checksums: true });
});
afterEach(() => {
  for (const stop of interceptions.splice(0)) stop();
});
afterAll(async () => {
  await proxy.close();
  await harness.close();
});

const createRun = (config: object = {}) =>
  harness.createRun({ config: { endpoint_url: proxy.endpoint, ...config } });
const operationsOf = (prefix: string): S3OperationName[] =>
  fileRequests(proxy, prefix).map(({ operation }) => operation);
/**
 * The operations on each key, in the order of their first requests: a server that refuses a body early may break the
 * connection, and the request is repeated, after a HEAD.
 */
const stepsOf = (prefix: string): S3OperationName[] => {
  const steps = fileRequests(proxy, prefix).map(({ operation, key }) => ({ operation, key }));
  const isFirst = (step: (typeof steps)[number], index: number) =>
    steps.findIndex(({ operation, key }) => operation === step.operation && key === step.key) === index;
  return steps.filter(isFirst).map(({ operation }) => operation);
};
const isFile = (prefix: string, key: string): boolean =>
  key.startsWith(`${prefix}/`) && !key.includes('_manifests');

/** Publishes, and checks that the manifest has exactly the rows of the source. */
async function publishAndVerify(run_id: string, generation: number) {
  const { manifest_key } = await harness.attempt().publishManifest({ run_id });
  const manifest = await harness.reader.manifestAt(manifest_key);
  expect(manifest).toMatchObject({ generation, rows, run_id });
  expect(await harness.reader.uuidsIn(manifest)).toEqual(await harness.reader.sourceUuids());
  return manifest;
}

describe('a file of one part', () => {
  it.each([
    ['JSONLines', null],
    ['JSONLines', 'brotli'],
    ['CSV', 'gzip'],
    ['Parquet', 'zstd'],
  ])('of %s, %s is one request where the store refuses to overwrite', async (file_format, compression) => {
    const { run_id, batchExportId } = await createRun({ file_format, compression });
    expect(await harness.attempt().exportInterval({ run_id })).toMatchObject({ finished: true, rows });
    expect(operationsOf(batchExportId)).toEqual(['PutObject']);
  });

  it('is an upload where nothing is known of the store', async () => {
    await forgetTraits(harness);
    const { run_id, batchExportId } = await createRun();
    await harness.attempt().exportInterval({ run_id });
    await knowTraits(harness, proxy, { conditional_put: true, conditional_complete: true, checksums: true });
    expect(operationsOf(batchExportId)).toEqual([
      'HeadObject',
      'CreateMultipartUpload',
      'UploadPart',
      'CompleteMultipartUpload',
    ]);
  });

  it('is adopted with its planned figures when the response was lost', async () => {
    const { run_id, batchExportId } = await createRun();
    let lost = 0;
    intercept({
      after: ({ operation, key }) => {
        if (operation !== 'PutObject' || !isFile(batchExportId, key) || lost > 0) return undefined;
        lost += 1;
        return 'broken';
      },
    });
    await harness.attempt().exportInterval({ run_id });
    expect(stepsOf(batchExportId)).toEqual(['PutObject', 'HeadObject']);
    await publishAndVerify(run_id, 1);
  });

  it('is written again when another request for its key is in progress', async () => {
    const { run_id, batchExportId } = await createRun();
    let conflicts = 0;
    intercept({
      before: ({ operation, key }) => {
        if (operation !== 'PutObject' || !isFile(batchExportId, key) || conflicts === 2) return undefined;
        conflicts += 1;
        return errorResponse(409, 'ConditionalRequestConflict');
      },
    });
    await harness.attempt().exportInterval({ run_id });
    expect(operationsOf(batchExportId)).toEqual(['PutObject', 'PutObject', 'PutObject']);
    await publishAndVerify(run_id, 1);
  });

  it.each([
    ['somebody else has its key', 200],
    ['its key may not be read', 403],
  ])('is the next generation when %s', async (_, status) => {
    const { run_id, batchExportId } = await createRun();
    const key = `${batchExportId}/2026/20260101T100000Z-20260101T110000Z.jsonl`;
    // An object of the same size, which only the token distinguishes.
    const other = await createRun();
    const { bytes } = await harness.attempt().exportInterval({ run_id: other.run_id });
    const foreign = 'x'.repeat(bytes);
    await harness.bucket.client.send(
      new PutObjectCommand({ Bucket: harness.bucket.bucket, Key: key, Body: foreign }),
    );
    intercept({
      before: ({ operation }) =>
        operation === 'HeadObject' && status === 403 ? errorResponse(403, 'AccessDenied') : undefined,
    });
    await harness.attempt().exportInterval({ run_id });
    expect(stepsOf(batchExportId)).toEqual(['PutObject', 'HeadObject', 'PutObject']);
    await publishAndVerify(run_id, 2);
    expect(await harness.reader.textOf(key)).toBe(foreign);
    // A connection that the server broke is another warning.
    const taken = (await warningsOf(harness, run_id)).filter((message) => message.includes(' is taken by '));
    expect(taken).toEqual([expect.stringMatching(/ exported as generation 2\.$/)]);
    expect(await harness.reader.eventTypes(run_id)).toContain('RunKeyTaken');
  });
});

describe('an attempt after a crashed one', () => {
  it.each([
    ['before its file was written', 'putFile', 2],
    ['after its file was written', 'written', 1],
  ] as const)('%s ends with exactly the rows', async (_, at, generation) => {
    const { run_id, batchExportId } = await createRun();
    const crash = withCrash(harness, at);
    await expect(harness.attempt(crash).exportInterval({ run_id })).rejects.toThrow();
    const { ranges } = await harness.recorder.read(run_id);
    expect(ranges[0]?.upload).toMatchObject({ upload_id: null, parts: [{ rows, final: true }] });
    await harness.attempt().exportInterval({ run_id });
    await publishAndVerify(run_id, generation);
    expect(operationsOf(batchExportId).filter((name) => name === 'PutObject')).toHaveLength(1);
  });
});

describe('a zombie', () => {
  it('that writes its file late changes nothing that a manifest names, and its file is deleted', async () => {
    const maintenance = createMaintenanceHarness(harness);
    const { run_id, batchExportId } = await createRun();
    const reached = Promise.withResolvers<undefined>();
    const woken = Promise.withResolvers<undefined>();
    const zombie = harness
      .attempt(
        withInterruptions(harness, {
          putFile: async () => {
            reached.resolve(undefined);
            await woken.promise;
          },
        }),
      )
      .exportInterval({ run_id });
    zombie.catch(() => undefined);
    await reached.promise;
    await harness.attempt().exportInterval({ run_id });
    const manifest = await publishAndVerify(run_id, 2);
    const contents = await harness.reader.textOf(manifest.files[0]?.key ?? '');
    woken.resolve(undefined);
    await expect(zombie).rejects.toMatchObject({ type: 'RunEnded' });
    expect(await maintenance.keysOf(batchExportId)).toHaveLength(3);
    expect(await harness.reader.textOf(manifest.files[0]?.key ?? '')).toBe(contents);
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    expect((await maintenance.keysOf(batchExportId)).toSorted()).toEqual(
      [
        manifest.files[0]?.key,
        `${batchExportId}/_manifests/${batchExportId}/20260101T100000Z-20260101T110000Z.json`,
      ].toSorted(),
    );
  });
});
