/** A store that answers requests with anything that HTTP allows: no run claims what is not there, and no report a gap. */
import { targetChecks as targets } from '../../src/temporal/capabilities.ts';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createDestinationOpener } from '../../src/destination/open_destination.ts';
import { batchExportDecider } from '../../src/domain/batch_export.ts';
import { verifyBatchExport } from '../../src/verify/verify_batch_export.ts';
import { definitionOf } from '../domain/definition.ts';
import type { S3OperationName } from '../e2e/s3_operation.ts';
import { createS3Proxy, type InjectedOutcome, type ProxiedRequest, type S3Proxy } from '../e2e/s3_proxy.ts';
import { randomCases } from '../setup/effort.ts';
import { createExportHarness, type ExportHarness, interval } from './export_harness.ts';
import { forgetTraits, knowTraits } from './stores.ts';

const rows = 40;
const badRows = 3;
let harness: ExportHarness;
let proxy: S3Proxy;
beforeAll(async () => {
  harness = await createExportHarness();
  proxy = await createS3Proxy(harness.bucket.endpoint);
  await harness.insertEvents(rows);
  await harness.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     select 1, gen_random_uuid(), 'bad', 'd', '{}', 'infinity', $1::timestamptz + make_interval(mins => n)
     from generate_series(1, $2) n`,
    [interval.start, badRows],
  );
});
afterAll(async () => {
  await proxy.close();
  await harness.close();
});

/** An answer of anything between exportd and the store, or of a store with a fault. */
interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Answers to some requests. */
interface Strangeness {
  readonly operation: S3OperationName;
  readonly about: 'manifest' | 'file' | 'all';
  /** Whether the store gets the request first. */
  readonly carriedOut: boolean;
  readonly times: number;
  readonly answer: Answer;
}

const statuses = [
  200, 201, 202, 203, 204, 205, 206, 207, 226, 300, 301, 302, 303, 304, 305, 307, 308, 400, 401, 402, 403,
  404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422, 423, 424, 425, 426,
  428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511, 520, 599,
];
const operations: readonly S3OperationName[] = [
  ...(['CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload', 'AbortMultipartUpload'] as const),
  ...([
    'PutObject',
    'PutObject',
    'PutObject',
    'GetObject',
    'GetObject',
    'HeadObject',
    'DeleteObject',
  ] as const),
  ...(['ListObjectsV2', 'ListParts', 'ListMultipartUploads'] as const),
];
const junk = '"0123456789abcdef0123456789abcdef"';
const error = (code: string): string => `<Error><Code>${code}</Code><Message>No.</Message></Error>`;
const documents = [
  'html',
  'ListBucketResult',
  'CompleteMultipartUploadResult',
  'InitiateMultipartUploadResult',
];
const bodies = fc.oneof(
  fc.constantFrom(
    '',
    '',
    ' ',
    'OK',
    '{}',
    '<html><body>Sign in</body></html>',
    '<!doctype html><p>',
    '\u0000\uffff',
  ),
  fc
    .tuple(
      fc.constantFrom('', '  ', '<?xml version="1.0" encoding="UTF-8"?>\n'),
      fc.constantFrom(
        'InternalError',
        'SlowDown',
        'AccessDenied',
        'PreconditionFailed',
        'NoSuchUpload',
        'InvalidPart',
      ),
      fc.constantFrom('', '\n', '\r\n', ' '),
    )
    .map(([before, code, after]) => before + error(code) + after),
  fc
    .tuple(
      fc.constantFrom(...documents),
      fc.constantFrom(
        '',
        '<ETag></ETag>',
        `<ETag>${junk}</ETag>`,
        '<Key>k</Key>',
        '<IsTruncated>true</IsTruncated>',
      ),
      fc.boolean(),
    )
    .map(([root, content, isWhole]) => `<${root}>${content}${isWhole ? `</${root}>` : ''}`),
);
const headers = fc.record(
  {
    etag: fc.constantFrom(junk, '""', 'W/"1"'),
    'content-type': fc.constantFrom('application/xml', 'text/html'),
    'content-range': fc.constant('bytes 0-9/10'),
    location: fc.constantFrom('/', 'http://127.0.0.1:1/', 'https://example.com/', 'mailto:a@b', ':'),
    'retry-after': fc.constant('0'),
    'x-amz-bucket-region': fc.constant('eu-west-1'),
    'x-amz-version-id': fc.constantFrom('null', 'v'),
    'x-amz-checksum-crc32': fc.constant('AAAAAA=='),
    server: fc.constant('another'),
  },
  { requiredKeys: [] },
);
const strangeness = (of: readonly S3OperationName[]): fc.Arbitrary<Strangeness> =>
  fc.record({
    operation: fc.constantFrom(...of),
    about: fc.constantFrom('manifest', 'file', 'all'),
    carriedOut: fc.boolean(),
    times: fc.constantFrom(1, 1, 1, 2, 5, Number.POSITIVE_INFINITY),
    answer: fc.record({
      status: fc.oneof(fc.constantFrom(200, 200, 204, 404, 412), fc.constantFrom(...statuses)),
      headers,
      body: bodies,
    }),
  });

const scenario = fc.record({
  /** Whether the store is known to refuse overwrites, so that a file is one request. */
  isTested: fc.boolean(),
  /** Whether the interval has a manifest already. */
  isAgain: fc.boolean(),
  table_format: fc.constantFrom(null, null, null, 'delta'),
  during: fc.array(strangeness(operations), { minLength: 1, maxLength: 3 }),
  reading: fc.array(strangeness(['GetObject', 'ListObjectsV2']), { minLength: 1, maxLength: 2 }),
});

const send =
  ({ status, headers: given, body }: Answer): InjectedOutcome =>
  (outgoing) =>
    outgoing.writeHead(status, given).end(body);

/** Answers strangely to the requests of an export. @returns what stops it */
function disturb(prefix: string, all: readonly Strangeness[]): () => void {
  const left = all.map(({ times }) => times);
  const outcomeOf = (request: ProxiedRequest, carriedOut: boolean): InjectedOutcome | undefined => {
    const index = all.findIndex(
      (one, at) =>
        one.operation === request.operation &&
        one.carriedOut === carriedOut &&
        (request.key === '' || request.key.startsWith(prefix)) &&
        (one.about === 'all' || (one.about === 'manifest') === request.key.includes('_manifests')) &&
        (left[at] ?? 0) > 0,
    );
    const found = all[index];
    if (!found) return undefined;
    left[index] = (left[index] ?? 0) - 1;
    return send(found.answer);
  };
  return proxy.intercept({
    before: (request) => outcomeOf(request, false),
    after: (request) => outcomeOf(request, true),
  });
}

/** A thousand cases take nine minutes on a busy machine. */
const longTimeout = 3_600_000;

const attempts = 5;
/**
 * Above what an attempt sends: fifty keys that others have, each with the requests that find it out and their repetitions. What
 * cannot be an answer is asked for again after a pause, and not without an end.
 */
const requestsOfAttempt = 400;

/** Exports and publishes, as often as Temporal would. @returns whether the run is `Completed` */
async function exportOnce(run_id: string): Promise<boolean> {
  const settings = { ...harness.settings, EXPORTD_S3_RETRY_BUDGET: 60 };
  const openDestination = createDestinationOpener(harness.database.pool, harness.keyRing, settings);
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const before = proxy.requests.length;
    try {
      const activities = harness.attempt({ openDestination, settings });
      while (!(await activities.exportInterval({ run_id })).finished);
      await activities.publishManifest({ run_id });
      break;
    } catch (failure) {
      if ((failure as { nonRetryable?: boolean }).nonRetryable === true) break;
    } finally {
      expect(proxy.requests.length - before).toBeLessThan(requestsOfAttempt);
    }
  }
  return (await harness.recorder.read(run_id)).status === 'Completed';
}

/** The manifest of an export, as the real store has it; with every object that it names. */
async function readPublished(prefix: string) {
  const keys = await harness.reader.keysWithPrefix(prefix);
  const [key] = keys.filter((name) => name.includes('/_manifests/'));
  if (key === undefined) return null;
  const manifest = await harness.reader.manifestAt(key);
  const named = [...manifest.files, ...manifest.kept, ...manifest.earlier].map((file) => file.key);
  expect(keys).toEqual(expect.arrayContaining([...named, manifest.rejected_file?.key ?? key]));
  expect(manifest).toMatchObject({ rows, rejected: badRows });
  return manifest;
}

describe('a store that answers with anything that HTTP allows', () => {
  it(
    'never makes a run Completed without its objects, and never a gap of what is there',
    async () => {
      await fc.assert(
        fc.asyncProperty(scenario, async ({ isTested, isAgain, table_format, during, reading }) => {
          await forgetTraits(harness);
          const traits = { conditional_put: true, conditional_complete: true, checksums: true };
          if (isTested) await knowTraits(harness, proxy, traits);
          const batchExportId = randomUUID();
          const definition = definitionOf({ end_at: interval.end });
          await harness.journal.transaction(async (transaction) => {
            const stream = await transaction.lock(batchExportDecider, batchExportId);
            const data = { team_id: 1, definition, scheduled_until: interval.start, paused: false };
            await stream.append(randomUUID(), [{ type: 'BatchExportCreated', data }]);
          });
          const config = {
            endpoint_url: proxy.endpoint,
            on_bad_row: 'reject',
            ...(table_format !== null && { table_format, file_format: 'Parquet' }),
          };
          const createRun = () => harness.createRun({ batchExportId, config });
          if (isAgain) await exportOnce((await createRun()).run_id);

          const stopRun = disturb(batchExportId, during);
          const { run_id } = await createRun();
          const isCompleted = await exportOnce(run_id).finally(stopRun);
          const published = await readPublished(batchExportId);

          const stopReading = disturb(batchExportId, reading);
          const { pool, url: sourceUrl } = harness.database;
          const report = await verifyBatchExport(
            {
              pool,
              sourceUrl,
              targets,
              keyRing: harness.keyRing,
              onError: () => undefined,
              settings: { ...harness.settings, EXPORTD_S3_RETRY_BUDGET: 60 },
            },
            { batchExportId },
          )
            .catch(() => null)
            .finally(stopReading);
          // A manifest that can never be read is none for anyone.
          const isReadable = !reading.some(({ operation, times }) => operation === 'GetObject' && times > 5);
          expect({
            completed: isCompleted ? published?.run_id : run_id,
            hasManifest: published !== null || !isAgain,
            gaps: published && isReadable ? (report?.totals.gaps ?? 0) : 0,
          }).toEqual({ completed: run_id, hasManifest: true, gaps: 0 });
        }),
        { numRuns: randomCases(30), endOnFailure: true },
      );
    },
    longTimeout,
  );
});
