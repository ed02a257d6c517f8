import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { OpenDestination } from '../../src/destination/open_destination.ts';
import { bounds } from '../../src/config/bounds.ts';
import { createMemoryBudget, type MemoryBudget } from '../../src/encoding/memory.ts';
import { storeTraits } from '../../src/destination/store_traits.ts';
import { isProblem, readLog } from '../decisions/read_log.ts';
import type { S3OperationName } from '../e2e/s3_operation.ts';
import { createS3Proxy, type Interceptor, type S3Proxy } from '../e2e/s3_proxy.ts';
import { createMaintenanceHarness, type MaintenanceHarness } from '../maintenance/maintenance_harness.ts';
import { withCrash } from './crash_injection.ts';
import { createExportHarness, type ExportHarness, interval } from './export_harness.ts';
import { forgetTraits } from './stores.ts';

describe('rows that the file format cannot represent', () => {
  let harness: ExportHarness;
  const validRows = 500;
  const invalidRows = 7;
  beforeAll(async () => {
    harness = await createExportHarness();
    await harness.insertEvents(validRows);
    await harness.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     select 1, gen_random_uuid(), 'bad', 'd', '{"big": 12345678901234567890}', 'infinity',
       $1::timestamptz + make_interval(mins => n) from generate_series(1, $2) n`,
      [interval.start, invalidRows],
    );
  });
  afterAll(() => harness.close());

  const config = { on_bad_row: 'reject' };

  /** Opens a destination that crashes right before or right after it has written the file of rejected rows. */
  const crashing =
    (moment: 'before' | 'after'): OpenDestination =>
    async (spec, onError) => {
      const real = await harness.openDestination(spec, onError);
      return {
        ...real,
        putObject: async (...input) => {
          if (moment === 'after') expect(await real.putObject(...input)).toBe(true);
          throw new Error('crashed');
        },
      };
    };

  async function expectRejected(runId: string, generation: number): Promise<void> {
    const { manifest_key } = await harness.attempt().publishManifest({ run_id: runId });
    const manifest = await harness.reader.manifestAt(manifest_key);
    expect(manifest).toMatchObject({
      generation,
      rows: validRows,
      rejected: invalidRows,
      source_rows: validRows + invalidRows,
    });
    const lines = (await harness.reader.textOf(manifest.rejected_file?.key ?? '')).trimEnd().split('\n');
    expect(lines).toHaveLength(invalidRows);
    for (const line of lines) {
      expect(JSON.parse(line)).toMatchObject({ column: 'timestamp', row: { timestamp: 'infinity' } });
      expect(line).toContain('12345678901234567890');
    }
  }

  it('fail the run, which names the row and the column', async () => {
    const { run_id } = await harness.createRun();
    await expect(harness.attempt().exportInterval({ run_id })).rejects.toMatchObject({
      type: 'UnencodableRow',
      nonRetryable: true,
      message: expect.stringContaining('timestamp'),
    });
  });

  it('are counted and written to a separate file if they are rejected', async () => {
    const { run_id } = await harness.createRun({ config });
    await harness.attempt().exportInterval({ run_id });
    await expectRejected(run_id, 1);
  });

  it('are read once, and kept within the memory budget until they are written', async () => {
    const { run_id } = await harness.createRun({ config });
    const memory = createMemoryBudget(1_000_000);
    const source = {
      ...harness.source,
      blocks: () => {
        throw new Error('Rows were read again.');
      },
    };
    let heldBytes = 0;
    let fileBytes = 0;
    const openDestination: OpenDestination = async (...opened) => {
      const real = await harness.openDestination(...opened);
      return {
        ...real,
        putObject: (key, type, bytes, signal) => {
          heldBytes = memory.held();
          fileBytes = bytes.length;
          return real.putObject(key, type, bytes, signal);
        },
      };
    };
    await harness.attempt({ memory, openDestination, source }).exportInterval({ run_id });
    expect(fileBytes).toBeGreaterThan(invalidRows * 100);
    expect(heldBytes).toBeGreaterThanOrEqual(fileBytes);
    expect(memory.held()).toBe(0);
    await expectRejected(run_id, 1);
  });

  it.each(['before', 'after'] as const)(
    'are written once after a crash %s their file is written',
    async (moment) => {
      const { run_id } = await harness.createRun({ config });
      const openDestination = crashing(moment);
      await expect(harness.attempt({ openDestination }).exportInterval({ run_id })).rejects.toThrow();
      await harness.attempt().exportInterval({ run_id });
      await expectRejected(run_id, 1);
    },
  );

  it('are exported again when a retry finds other rows', async () => {
    const { run_id } = await harness.createRun({ config });
    const openDestination = crashing('after');
    await expect(harness.attempt({ openDestination }).exportInterval({ run_id })).rejects.toThrow();
    await harness.database.pool.query(`update events set elements_chain = 'changed' where event = 'bad'`);
    await harness.attempt().exportInterval({ run_id });
    await expectRejected(run_id, 2);
  });

  it('fail the run if they are too many', async () => {
    const { run_id } = await harness.createRun({ config });
    const settings = { ...harness.settings, EXPORTD_MAX_REJECTED_ROWS: invalidRows - 1 };
    await expect(harness.attempt({ settings }).exportInterval({ run_id })).rejects.toMatchObject({
      type: 'TooManyRejectedRows',
      nonRetryable: true,
    });
  });

  it('fail the run if they are larger than their file may be, which holds no more of them in memory', async () => {
    const of = { start: '2026-01-01T20:00:00.000Z', end: '2026-01-01T21:00:00.000Z' };
    const rowBytes = 1_000_000;
    await harness.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select 1, gen_random_uuid(), 'wide', 'd', jsonb_build_object('wide', repeat('a', $3)), 'infinity',
         $1::timestamptz + make_interval(secs => n) from generate_series(1, $2) n`,
      [of.start, Math.ceil((1.2 * bounds.rejectedFile.max) / rowBytes), rowBytes],
    );
    const { run_id } = await harness.createRun({ config, of });
    const memory = createMemoryBudget(1_000_000);
    let peak = 0;
    const measured: MemoryBudget = {
      ...memory,
      openReservation: () => {
        const reservation = memory.openReservation();
        const reserveEncoded = (bytes: number): void => {
          reservation.reserveEncoded(bytes);
          peak = Math.max(peak, memory.held());
        };
        return { ...reservation, reserveEncoded };
      },
    };
    const attempt = harness.attempt({
      memory: measured,
      settings: { ...harness.settings, EXPORTD_MAX_REJECTED_ROWS: 10_000 },
    });
    await expect(attempt.exportInterval({ run_id })).rejects.toMatchObject({
      type: 'TooManyRejectedRows',
      nonRetryable: true,
      message: expect.stringContaining('64 MiB'),
    });
    // The buffer of the lines doubles as it grows.
    expect(peak).toBeGreaterThan(bounds.rejectedFile.max / 2);
    expect(peak).toBeLessThan(2.5 * bounds.rejectedFile.max);
    expect(memory.held()).toBe(0);
  });

  it.each([
    ['before it is planned', undefined],
    [
      'after that',
      async (...input: Parameters<OpenDestination>) => ({
        ...(await harness.openDestination(...input)),
        isTaken: () => Promise.resolve(false),
      }),
    ],
  ])(
    'are in the next generation when another object has the key of their file (%s)',
    async (_, openDestination) => {
      const { run_id, batchExportId } = await harness.createRun({ config });
      const maintenance = createMaintenanceHarness(harness);
      await maintenance.createExport(batchExportId, 1);
      const key = `${batchExportId}/_rejected/2026/20260101T100000Z-20260101T110000Z-rejected.jsonl`;
      const foreign = { Bucket: harness.bucket.bucket, Key: key, Body: 'foreign' };
      await harness.bucket.client.send(new PutObjectCommand(foreign));
      expect(
        await harness.attempt(openDestination && { openDestination }).exportInterval({ run_id }),
      ).toMatchObject({
        finished: true,
        generation: 2,
      });
      await expectRejected(run_id, 2);
      const { rows } = await harness.database.pool.query(
        `select taken_keys::int, (select count(*)::int from exportd.notifications where batch_export_id = $1
         and type = 'run.key_taken') as notifications
       from exportd.intervals where batch_export_id = $1`,
        [batchExportId],
      );
      expect(rows).toEqual([{ taken_keys: 1, notifications: 1 }]);
      await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
      expect(await harness.reader.textOf(key)).toBe('foreign');
    },
  );

  it('are in a file whose key has a mark where the store has no conditional writes', async () => {
    await storeTraits(
      harness.database.pool,
      { team_id: 1, location: `${new URL(harness.bucket.endpoint).host}/${harness.bucket.bucket}` },
      {
        conditional_put: false,
      },
    );
    const { run_id } = await harness.createRun({ config });
    const crash = harness.attempt({ openDestination: crashing('after') });
    await expect(crash.exportInterval({ run_id })).rejects.toThrow();
    const { rejected_file } = await harness.recorder.read(run_id);
    expect(rejected_file?.key).toMatch(/Z-[0-9a-f]{8}-rejected\.jsonl$/);
    await harness.attempt().exportInterval({ run_id });
    await expectRejected(run_id, 1);
    expect((await harness.recorder.read(run_id)).rejected_file?.key).toBe(rejected_file?.key);
  });
});

describe('least permissions', () => {
  let harness: ExportHarness;
  let maintenance: MaintenanceHarness;
  let proxy: S3Proxy;
  let stopDenying: () => void = () => undefined;
  beforeAll(async () => {
    harness = await createExportHarness();
    maintenance = createMaintenanceHarness(harness);
    proxy = await createS3Proxy(harness.bucket.endpoint);
    await harness.insertEvents(100);
  });
  beforeEach(() => {
    stopDenying();
  });
  afterAll(async () => {
    await proxy.close();
    await harness.close();
  });

  const denied = { status: 403, body: '<Error><Code>AccessDenied</Code><Message>Denied.</Message></Error>' };

  /** Credentials without s3:ListBucket: the server does not reveal that a key is missing. */
  const withoutListing: Interceptor = {
    before: ({ operation }) => (operation === 'ListMultipartUploads' ? denied : undefined),
    after: ({ operation, status }) =>
      status === 404 && (operation === 'GetObject' || operation === 'HeadObject') ? denied : undefined,
  };

  /** Credentials without the permission for these operations. */
  const without = (denials: readonly S3OperationName[]): Interceptor => ({
    before: ({ operation }) => (denials.includes(operation) ? denied : undefined),
  });

  /**
   * Life of an interval: an attempt crashes after a part, the next one cannot resume and starts over, and the interval is
   * exported once more. Returns the warnings of the log, and the keys that remain after the clean-up.
   */
  async function exportTwice(permissions: Interceptor) {
    stopDenying = proxy.intercept(permissions);
    const config = { endpoint_url: proxy.endpoint };
    // A file of a store that is known to refuse overwriting would be no upload.
    await forgetTraits(harness);
    const { run_id, batchExportId } = await harness.createRun({ config });
    await expect(harness.attempt(withCrash(harness, 'arrived')).exportInterval({ run_id })).rejects.toThrow();
    // Someone else aborts the upload, so that no attempt can resume it.
    await maintenance.abortUploads(batchExportId);
    await harness.attempt().exportInterval({ run_id });
    await harness.attempt().publishManifest({ run_id });
    const { manifest_key } = await maintenance.publish(batchExportId, config);
    const manifest = await harness.reader.manifestAt(manifest_key);
    expect(await harness.reader.uuidsIn(manifest)).toEqual(await harness.reader.sourceUuids());
    const cleanUp = () =>
      maintenance
        .activities({ EXPORTD_ORPHAN_RETRY_BUDGET: '0s' })
        .cleanUpExport({ batch_export_id: batchExportId });
    // What is denied is tried again: the budget starts with the first denial.
    await cleanUp().catch((error: unknown) => {
      if ((error as { type?: unknown }).type !== 'MissingPermission') throw error;
    });
    await cleanUp();
    const files = manifest.files.map(({ key }) => key);
    const remaining = await maintenance.keysOf(batchExportId);
    return {
      warnings: await readLog(harness.database.pool, { batch_export_id: batchExportId }, isProblem),
      obsolete: remaining.filter((key) => key !== manifest_key && !files.includes(key)),
    };
  }

  describe('an export without s3:ListBucket', () => {
    it('treats a denied missing key as absent: it verifies manifests, deletes what is obsolete and warns of nothing', async () => {
      expect(await exportTwice(withoutListing)).toEqual({ warnings: [], obsolete: [] });
    });
  });

  describe('an export that lacks a permission', () => {
    /** The denied operations, what each warning names, and how many obsolete files remain. */
    it.each<[string, readonly S3OperationName[], readonly string[], number]>([
      // Both manifests, and the file of the older generation.
      ['s3:GetObject', ['GetObject', 'HeadObject'], ['s3:GetObject', 's3:GetObject', 's3:GetObject'], 1],
      ['s3:ListMultipartUploadParts', ['ListParts'], ['s3:ListMultipartUploadParts'], 0],
      ['s3:ListBucketMultipartUploads', ['ListMultipartUploads'], [], 0],
      // A denied deletion is logged when it is first denied, and when it is given up.
      ['s3:DeleteObject', ['DeleteObject'], ['s3:DeleteObject', 's3:DeleteObject'], 1],
      [
        's3:AbortMultipartUpload',
        ['AbortMultipartUpload'],
        ['s3:AbortMultipartUpload', 's3:AbortMultipartUpload'],
        0,
      ],
    ])('%s: exports every row and names what it lacks', async (_permission, operations, named, kept) => {
      const { warnings, obsolete } = await exportTwice(without(operations));
      expect(warnings).toEqual(named.map((permission): unknown => expect.stringContaining(permission)));
      expect(obsolete).toHaveLength(kept);
    });
  });
});
