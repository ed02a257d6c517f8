import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createDestinationOpener } from '../../src/destination/open_destination.ts';
import { createS3Proxy, type InjectedOutcome, type ProxiedRequest, type S3Proxy } from '../e2e/s3_proxy.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import { forgetTraits } from './stores.ts';

const rows = 30;
let harness: ExportHarness;
let proxy: S3Proxy;
let stop: (() => void) | undefined;
beforeAll(async () => {
  harness = await createExportHarness();
  proxy = await createS3Proxy(harness.bucket.endpoint);
  await harness.insertEvents(rows);
});
afterEach(async () => {
  stop?.();
  await forgetTraits(harness);
});
afterAll(async () => {
  await proxy.close();
  await harness.close();
});

/** Exports the interval through the proxy, as Temporal would in so many attempts. */
async function exportInterval(attempts: number) {
  const { run_id } = await harness.createRun({ config: { endpoint_url: proxy.endpoint } });
  const settings = { ...harness.settings, EXPORTD_S3_RETRY_BUDGET: 100 };
  const openDestination = createDestinationOpener(harness.database.pool, harness.keyRing, settings);
  const errors: unknown[] = [];
  for (let attempt = 0; attempt < attempts; attempt += 1)
    try {
      const activities = harness.attempt({ openDestination });
      await activities.exportInterval({ run_id });
      const { manifest_key } = await activities.publishManifest({ run_id });
      const manifest = await harness.reader.manifestAt(manifest_key);
      return { errors, manifest };
    } catch (error) {
      errors.push(error);
    }
  return { errors, manifest: null };
}

/** Answers each request in its place, so many times. */
function answer(
  outcome: (request: ProxiedRequest) => InjectedOutcome,
  times = Number.POSITIVE_INFINITY,
): void {
  let left = times;
  stop = proxy.intercept({
    before: (request) => {
      left -= 1;
      return left < 0 ? undefined : outcome(request);
    },
  });
}
const redirect =
  (status: number, headers: Record<string, string> = {}, body = ''): InjectedOutcome =>
  (outgoing) =>
    outgoing.writeHead(status, headers).end(body);
const code = (name: string): string => `<Error><Code>${name}</Code><Message>No.</Message></Error>`;

describe('a temporary redirect', () => {
  const locationOf = ({ key }: ProxiedRequest): string =>
    [harness.bucket.endpoint, harness.bucket.bucket, ...key.split('/').map(encodeURIComponent)].join('/');

  it('of every request is followed, with a signature for the other host', async () => {
    answer((request) => redirect(307, { location: locationOf(request) }, code('TemporaryRedirect')));
    const from = proxy.requests.length;
    const { errors, manifest } = await exportInterval(1);
    expect(errors).toEqual([]);
    expect(await harness.reader.uuidsIn(manifest ?? never())).toEqual(await harness.reader.sourceUuids());
    expect(proxy.requests.slice(from).map(({ status }) => status)).not.toContain(200);
  });

  it.each<[string, Record<string, string>]>([
    ['that leads nowhere', {}],
    ['to no address', { location: 'mailto:a@example.com' }],
    ['to an address that no setting allows', { location: 'http://169.254.169.254/latest/meta-data' }],
    ['that leads to another one', { location: '/' }],
  ])('%s, for a while, delays the run', async (_, headers) => {
    answer(() => redirect(307, headers), 12);
    const { errors, manifest } = await exportInterval(10);
    expect(manifest).toMatchObject({ rows });
    for (const error of errors)
      expect(error).toMatchObject({ type: 'TemporaryRedirect', nonRetryable: false });
  });

  it('that leads nowhere, for good, never ends the run as failed', async () => {
    answer(() => redirect(307));
    const { errors } = await exportInterval(2);
    expect(errors).toEqual([
      expect.objectContaining({ type: 'TemporaryRedirect', nonRetryable: false }),
      expect.objectContaining({ type: 'TemporaryRedirect', nonRetryable: false }),
    ]);
  });
});

describe('a redirect', () => {
  it.each<[number, Record<string, string>, string, RegExp]>([
    [
      301,
      { 'x-amz-bucket-region': 'eu-west-1' },
      code('PermanentRedirect'),
      /elsewhere: the region eu-west-1;/,
    ],
    [301, { location: 'https://other.example:9000/bucket' }, '', /elsewhere: other\.example:9000;/],
    [308, { location: 'https://other.example/bucket' }, '<html>Moved</html>', /elsewhere: other\.example;/],
    [308, {}, '', /elsewhere; check region and endpoint_url/],
  ])(
    'with status %i that is permanent (%j) ends the run, and names the place',
    async (status, headers, body, message) => {
      answer(() => redirect(status, headers, body));
      const { errors } = await exportInterval(1);
      expect(errors).toMatchObject([{ type: 'PermanentRedirect', nonRetryable: true }]);
      expect(errors).toMatchObject([{ message: expect.stringMatching(message) }]);
    },
  );

  it.each([300, 302, 303, 304, 305, 306])(
    'with status %i is no answer of a store, and delays the run',
    async (status) => {
      answer(() => redirect(status, { location: 'https://sign-in.example/' }, '<html>Sign in</html>'), 3);
      const { manifest } = await exportInterval(10);
      expect(manifest).toMatchObject({ rows });
    },
  );
});

function never(): never {
  throw new Error('There is no manifest.');
}
