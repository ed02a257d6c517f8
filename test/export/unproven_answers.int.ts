/** Answers of a store that are no success, whatever their status says: nothing counts as stored unless it is. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createDestinationOpener } from '../../src/destination/open_destination.ts';
import type { S3OperationName } from '../e2e/s3_operation.ts';
import { createS3Proxy, type InjectedOutcome, type ProxiedRequest, type S3Proxy } from '../e2e/s3_proxy.ts';
import { casesOf, pairsOf } from '../setup/effort.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import { forgetTraits, knowTraits } from './stores.ts';

const rows = 30;
let harness: ExportHarness;
let proxy: S3Proxy;
let stop: (() => void) | undefined;
beforeAll(async () => {
  harness = await createExportHarness();
  proxy = await createS3Proxy(harness.bucket.endpoint);
  await harness.insertEvents(rows);
});
afterEach(() => stop?.());
afterAll(async () => {
  await proxy.close();
  await harness.close();
});

/** What a store answers, with the headers of this alone. */
const answer =
  (status: number, body = '', headers: Record<string, string> = {}): InjectedOutcome =>
  (outgoing) =>
    outgoing.writeHead(status, headers).end(body);

const declaration = '<?xml version="1.0" encoding="UTF-8"?>';
const error = `${declaration}\n<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>`;
const page = '<!doctype html><html><body>Sign in</body></html>';
const result = (content: string): string =>
  `${declaration}<CompleteMultipartUploadResult>${content}</CompleteMultipartUploadResult>`;

/** Answers to any write. */
const anyWrite: readonly (readonly [string, InjectedOutcome])[] = [
  ['200 with an error that ends in a line break', answer(200, `${error}\n`)],
  ['200 with an error that ends in \\r\\n', answer(200, `${error}\r\n`)],
  ['200 with an error after blanks', answer(200, `   \n${error}`)],
  ['200 with an error', answer(200, error)],
  ['200 with a page', answer(200, page)],
  ['200 with a page and an ETag', answer(200, page, { etag: '"0123456789abcdef0123456789abcdef"' })],
  ['200 with nothing', answer(200)],
  ['202', answer(202, '', { etag: '"0123456789abcdef0123456789abcdef"' })],
  ['204', answer(204)],
];
/** Answers to one kind of write. */
const ofKind: Readonly<Record<'CompleteMultipartUpload' | 'PutObject', typeof anyWrite>> = {
  CompleteMultipartUpload: [
    ['a result without its ETag', answer(200, result('<Key>key</Key>'))],
    ['a result with an empty ETag', answer(200, result('<ETag></ETag>'))],
    ['a result with the ETag of another object', answer(200, result('<ETag>"0123-1"</ETag>'))],
    ['half a result', answer(200, result('<ETag>"0123-1"</ETag>').slice(0, -5))],
    [
      'the result of another request',
      answer(200, '<ListPartsResult><ETag>"0123-1"</ETag></ListPartsResult>'),
    ],
  ],
  PutObject: [
    ['200 with an ETag of other bytes', answer(200, '', { etag: '"0123456789abcdef0123456789abcdef"' })],
  ],
};

const isManifest = ({ key }: ProxiedRequest): boolean => key.includes('/_manifests/');

/** Exports and publishes the interval, with as many attempts. @returns `Completed`, or the types of the errors */
async function runOf(run_id: string, attempts: number): Promise<string> {
  const settings = { ...harness.settings, EXPORTD_S3_RETRY_BUDGET: 200 };
  const openDestination = createDestinationOpener(harness.database.pool, harness.keyRing, settings);
  const errors: string[] = [];
  for (let attempt = 0; attempt < attempts; attempt += 1)
    try {
      const activities = harness.attempt({ openDestination });
      while (!(await activities.exportInterval({ run_id })).finished);
      await activities.publishManifest({ run_id });
      return 'Completed';
    } catch (failure) {
      errors.push((failure as { type?: string }).type ?? String(failure));
    }
  return errors.join(', ');
}

/** Expects that the manifest of a run is in the bucket, with the files that it names and every row. */
async function expectPublished(run_id: string, batchExportId: string): Promise<void> {
  const [key = ''] = (await harness.reader.keysWithPrefix(batchExportId)).filter((name) =>
    name.includes('_manifests'),
  );
  const manifest = await harness.reader.manifestAt(key);
  expect(manifest).toMatchObject({ run_id, rows });
  expect(await harness.reader.uuidsIn(manifest)).toEqual(await harness.reader.sourceUuids());
}

/** What is written, and where nothing is known of the store. */
const writes = {
  'the completion of an upload': {
    operation: 'CompleteMultipartUpload',
    isMeant: () => true,
    isTested: false,
  },
  'a file that is one request': {
    operation: 'PutObject',
    isMeant: (request) => !isManifest(request),
    isTested: true,
  },
  'a manifest': { operation: 'PutObject', isMeant: isManifest, isTested: true },
  'the manifest of a store that was never tested': {
    operation: 'PutObject',
    isMeant: isManifest,
    isTested: false,
  },
} as const satisfies Readonly<
  Record<
    string,
    { operation: S3OperationName; isMeant: (request: ProxiedRequest) => boolean; isTested: boolean }
  >
>;
type Write = keyof typeof writes;
const writeNames = Object.keys(writes) as Write[];
const places = ['nothing was stored', 'it was stored'] as const;
const answersOnce = pairsOf({ write: writeNames, answer: anyWrite, place: places });

describe.each(writeNames)('to %s', (write) => {
  const { operation, isMeant, isTested } = writes[write];
  beforeEach(async () => {
    await forgetTraits(harness);
    if (isTested)
      await knowTraits(harness, proxy, {
        conditional_put: true,
        conditional_complete: true,
        checksums: true,
      });
  });

  const intercept = (when: 'before' | 'after', outcome: InjectedOutcome, times: number) => {
    let left = times;
    stop = proxy.intercept({
      [when]: (request: ProxiedRequest) => {
        if (request.operation !== operation || !isMeant(request) || left === 0) return undefined;
        left -= 1;
        return outcome;
      },
    });
    return () => left;
  };
  const createRun = () => harness.createRun({ config: { endpoint_url: proxy.endpoint } });

  const once = [
    ...answersOnce.filter((one) => one.write === write),
    ...places.flatMap((place) => ofKind[operation].map((answer) => ({ place, answer }))),
  ].map(({ place, answer: [title, outcome] }) => ({ place, title, outcome }));
  it.each(once)('$title, once, and $place: the run completes with its rows', async ({ place, outcome }) => {
    const left = intercept(place === 'it was stored' ? 'after' : 'before', outcome, 1);
    const { run_id, batchExportId } = await createRun();
    expect(await runOf(run_id, 3)).toBe('Completed');
    expect(left()).toBe(0);
    await expectPublished(run_id, batchExportId);
  });

  const answers = [...anyWrite, ...ofKind[operation]];
  it.each(casesOf(answers.slice(0, 2), answers))(
    '%s, for good: the run does not complete',
    async (__, outcome) => {
      intercept('before', outcome, Number.POSITIVE_INFINITY);
      const { run_id } = await createRun();
      expect(await runOf(run_id, 2)).not.toBe('Completed');
    },
  );
});
