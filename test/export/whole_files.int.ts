import { randomUUID } from 'node:crypto';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { S3OperationName } from '../e2e/s3_operation.ts';
import { createS3Proxy, type S3Proxy } from '../e2e/s3_proxy.ts';
import { createMaintenanceHarness } from '../maintenance/maintenance_harness.ts';
import { casesOf } from '../setup/effort.ts';
import { withCrash, withInterruptions } from './crash_injection.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import {
  bytesSent,
  errorResponse,
  fileRequests,
  forgetTraits,
  knowTraits,
  warningsOf,
  withoutConditions,
} from './stores.ts';

describe('whole files', () => {
  let harness: ExportHarness;
  let proxy: S3Proxy;
  const rows = 30;
  beforeAll(async () => {
    harness = await createExportHarness();
    proxy = await createS3Proxy(harness.bucket.endpoint);
    await harness.insertEvents(rows);
    await knowTraits(harness, proxy, { conditional_put: true, conditional_complete: true, checksums: true });
  });
  afterEach(() => {
    proxy.stopIntercepting();
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
      await knowTraits(harness, proxy, {
        conditional_put: true,
        conditional_complete: true,
        checksums: true,
      });
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
      proxy.intercept({
        after: ({ operation, key }) => {
          if (operation !== 'PutObject' || !isFile(batchExportId, key) || lost > 0) return undefined;
          lost += 1;
          return 'broken';
        },
      });
      await harness.attempt().exportInterval({ run_id });
      expect(stepsOf(batchExportId)).toEqual(['PutObject', 'HeadObject']);
      await harness.publishAndVerify(run_id, { generation: 1, rows });
    });

    it('is written again when another request for its key is in progress', async () => {
      const { run_id, batchExportId } = await createRun();
      let conflicts = 0;
      proxy.intercept({
        before: ({ operation, key }) => {
          if (operation !== 'PutObject' || !isFile(batchExportId, key) || conflicts === 2) return undefined;
          conflicts += 1;
          return errorResponse(409, 'ConditionalRequestConflict');
        },
      });
      await harness.attempt().exportInterval({ run_id });
      expect(operationsOf(batchExportId)).toEqual(['PutObject', 'PutObject', 'PutObject']);
      await harness.publishAndVerify(run_id, { generation: 1, rows });
    });

    it.each([
      ['another object has its key', 200],
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
      proxy.intercept({
        before: ({ operation }) =>
          operation === 'HeadObject' && status === 403 ? errorResponse(403, 'AccessDenied') : undefined,
      });
      await harness.attempt().exportInterval({ run_id });
      expect(stepsOf(batchExportId)).toEqual(['PutObject', 'HeadObject', 'PutObject']);
      await harness.publishAndVerify(run_id, { generation: 2, rows });
      expect(await harness.reader.textOf(key)).toBe(foreign);
      // A connection that the server broke is another warning.
      const taken = (await warningsOf(harness, run_id)).filter((message) =>
        message.includes(' is taken by '),
      );
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
      await harness.publishAndVerify(run_id, { generation, rows });
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
      const manifest = await harness.publishAndVerify(run_id, { generation: 2, rows });
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
});

describe('taken keys', () => {
  let harness: ExportHarness;
  let proxy: S3Proxy;
  /** Three parts. */
  const rows = 3_000;
  beforeAll(async () => {
    harness = await createExportHarness();
    proxy = await createS3Proxy(harness.bucket.endpoint);
    await harness.insertEvents(rows);
  });
  afterEach(async () => {
    proxy.stopIntercepting();
    await forgetTraits(harness);
  });
  afterAll(async () => {
    await proxy.close();
    await harness.close();
  });

  /** A run of a new export below a prefix that other exports may have used. */
  const createRun = (prefix: string, config: object = {}) =>
    harness.createRun({ config: { endpoint_url: proxy.endpoint, prefix, ...config } });

  describe('an export below a prefix whose keys are taken', () => {
    it.each([
      ['one file', {}],
      ['several files', { max_file_size_mb: 6 }],
    ])('sends each byte once, however often it was created again (%s)', async (_, config) => {
      const prefix = randomUUID();
      const sent: number[] = [];
      for (const generation of casesOf([1, 2, 3], [1, 2, 3, 4])) {
        const before = bytesSent(proxy, prefix);
        const { run_id } = await createRun(prefix, config);
        const { bytes } = await harness.attempt().exportInterval({ run_id });
        expect(await harness.publishAndVerify(run_id)).toMatchObject({ generation });
        expect(bytesSent(proxy, prefix) - before).toBe(bytes);
        sent.push(bytes);
        // A connection that the server broke is another warning.
        const taken = (await warningsOf(harness, run_id)).filter((message) =>
          message.includes(' is taken by '),
        );
        expect(taken).toEqual(
          Array.from({ length: generation - 1 }, (__, index): unknown =>
            expect.stringMatching(
              new RegExp(String.raw`^The key s3://.* is taken by .* as generation ${index + 2}\.$`),
            ),
          ),
        );
      }
      expect(new Set(sent).size).toBe(1);
    });

    it('sends a file again when HEAD is denied, and overwrites nothing', async () => {
      const prefix = randomUUID();
      const first = await createRun(prefix);
      await harness.attempt().exportInterval(first);
      const manifest = await harness.publishAndVerify(first.run_id);
      proxy.intercept({
        before: ({ operation }) =>
          operation === 'HeadObject' ? errorResponse(403, 'AccessDenied') : undefined,
      });
      const { run_id } = await createRun(prefix);
      await expect(harness.attempt().exportInterval({ run_id })).rejects.toMatchObject({
        type: 'UploadNotFound',
      });
      await harness.attempt().exportInterval({ run_id });
      expect(await harness.publishAndVerify(run_id)).toMatchObject({ generation: 2 });
      expect(await harness.reader.uuidsIn(manifest)).toHaveLength(rows);
    });

    it('skips the number of a file that is taken after others were written', async () => {
      const prefix = randomUUID();
      const maintenance = createMaintenanceHarness(harness);
      const { run_id } = await createRun(prefix, { max_file_size_mb: 6 });
      await maintenance.putObject(`${prefix}/20260101T100000Z-20260101T110000Z-1.jsonl`, 'foreign');
      await harness.attempt().exportInterval({ run_id });
      const { files, generation } = await harness.publishAndVerify(run_id);
      expect(generation).toBe(1);
      expect(files.map(({ key }) => /-(\d)\.jsonl$/.exec(key)?.[1])).toEqual(
        ['0', '2', '3'].slice(0, files.length),
      );
      expect(files.length).toBeGreaterThan(1);
    });
  });

  describe('a store without conditional writes', () => {
    const unconditional = { conditional_put: false, conditional_complete: false };

    it.each([
      ['one file', {}],
      ['several files', { max_file_size_mb: 6 }],
    ])('gets keys with the start of the token of each file (%s)', async (_, config) => {
      await knowTraits(harness, proxy, unconditional);
      const prefix = randomUUID();
      const { run_id } = await createRun(prefix, config);
      await harness.attempt().exportInterval({ run_id });
      const { files } = await harness.publishAndVerify(run_id);
      for (const { key } of files) expect(key).toMatch(/Z(-\d)?-[0-9a-f]{8}\.jsonl$/);
      const marks = files.map(({ key }) => /-([0-9a-f]{8})\.jsonl$/.exec(key)?.[1]);
      expect(new Set(marks).size).toBe(files.length);
    });

    it('is found out when an upload is completed, so that further keys have a mark', async () => {
      proxy.intercept({
        before: ({ operation, headers }) =>
          operation === 'CompleteMultipartUpload' && 'if-none-match' in headers
            ? errorResponse(501, 'NotImplemented')
            : undefined,
      });
      const prefix = randomUUID();
      const first = await createRun(prefix);
      await harness.attempt().exportInterval(first);
      const second = await createRun(prefix);
      await harness.attempt().exportInterval(second);
      expect((await harness.publishAndVerify(second.run_id)).files).toEqual([
        expect.objectContaining({ key: expect.stringMatching(/-[0-9a-f]{8}\.jsonl$/) }),
      ]);
      expect((await harness.publishAndVerify(first.run_id)).files).toEqual([
        expect.objectContaining({ key: expect.stringMatching(/Z\.jsonl$/) }),
      ]);
    });

    it('keeps what a manifest names when another run has the same generation', async () => {
      await knowTraits(harness, proxy, unconditional);
      proxy.intercept(withoutConditions(harness));
      const prefix = randomUUID();
      const [first, second] = [await createRun(prefix), await createRun(prefix)];
      await harness.attempt().exportInterval(first);
      const manifest = await harness.publishAndVerify(first.run_id);
      const zombie = withInterruptions(harness, {});
      await harness.attempt(zombie).exportInterval(second);
      expect(zombie.sent.size).toBeGreaterThan(1);
      expect(await harness.reader.uuidsIn(manifest)).toHaveLength(rows);
      const other = await harness.publishAndVerify(second.run_id);
      expect(other.generation).toBe(1);
      expect(other.files[0]?.key).not.toBe(manifest.files[0]?.key);
    });

    it('has no orphaned upload after an attempt died before it recorded its upload', async () => {
      await knowTraits(harness, proxy, unconditional);
      const { run_id } = await createRun(randomUUID());
      const { recorder, ...crash } = withCrash(harness, 'planPart');
      const dying = {
        ...crash,
        recorder: { ...recorder, recordUpload: () => Promise.reject(new Error('crashed')) },
      };
      proxy.intercept({
        before: ({ operation }) => (operation === 'AbortMultipartUpload' ? 'broken' : undefined),
      });
      await expect(harness.attempt(dying).exportInterval({ run_id })).rejects.toThrow();
      expect(await harness.reader.openUploads()).toHaveLength(1);
      proxy.stopIntercepting();
      await harness.attempt().exportInterval({ run_id });
      expect(await harness.reader.openUploads()).toEqual([]);
      await harness.publishAndVerify(run_id);
    });
  });
});
