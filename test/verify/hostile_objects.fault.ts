import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { crc32, zstdCompressSync } from 'node:zlib';
import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Manifest } from '../../src/destination/manifest.ts';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { insertEvents } from '../e2e/rows.ts';
import { createS3Proxy, type InjectedOutcome, type ProxiedRequest, type S3Proxy } from '../e2e/s3_proxy.ts';
import { startStack, type Stack } from '../e2e/stack.ts';
import { createBucket } from '../setup/bucket.ts';
import { fromSetUp } from '../setup/environment.ts';
import { dripping, endless, large } from '../setup/hostile_store.ts';
import { hourAgo } from '../setup/hours.ts';
import { expectBorne, workerAt } from '../setup/process_watch.ts';
import { waitFor } from '../setup/wait_for.ts';

const mebibyte = 1_024 * 1_024;

describe('a verification', () => {
  let stack: Stack;
  let proxy: S3Proxy;
  let port: number;
  let id: string;
  let manifestKey: string;
  let original: Manifest;
  let restore: (() => void)[] = [];
  beforeAll(async () => {
    const folder = fromSetUp('EXPORTD_TEST_FOLDER');
    ({ worker: port } = await assignPorts(join(folder, `${randomUUID()}.ports.json`), ['worker']));
    const bucket = await createBucket();
    proxy = await createS3Proxy(bucket.endpoint);
    stack = await startStack(
      'hostile-objects',
      {
        EXPORTD_WORKER_HTTP_PORT: String(port),
        EXPORTD_S3_REQUEST_TIMEOUT: '500ms',
        EXPORTD_S3_RETRY_BUDGET: '2s',
      },
      { bucket: { ...bucket, endpoint: proxy.endpoint }, v8Options: [] },
    );
    await insertEvents(stack.pool, stack.projectId, hourAgo(3), 1_000);
    id = await stack.createExport({}, { compression: 'zstd' });
    await stack.call('POST', `/batch_exports/${id}/backfill/`, {
      start_at: hourAgo(3).toISOString(),
      end_at: hourAgo(2).toISOString(),
    });
    const run = await waitFor(async () => (await stack.runs(id))[0], 'the backfill has a run');
    manifestKey = (await stack.waitForRun(id, run.id, 'Completed')).manifest_key ?? '';
    original = JSON.parse((await getObject(manifestKey)).toString()) as Manifest;
    // What a worker loads once is no growth.
    await verify();
  });
  afterEach(async () => {
    for (const remove of restore) remove();
    restore = [];
    await putManifest(original);
  });
  afterAll(async () => {
    await stack.stop();
    await proxy.close();
  });

  async function getObject(Key: string): Promise<Buffer> {
    const { client, bucket: Bucket } = stack.bucket;
    const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
    return Buffer.from((await Body?.transformToByteArray()) ?? []);
  }
  async function putObject(Key: string, Body: Buffer): Promise<void> {
    const { client, bucket: Bucket } = stack.bucket;
    await client.send(new PutObjectCommand({ Bucket, Key, Body }));
  }
  const putManifest = (manifest: Manifest) => putObject(manifestKey, Buffer.from(JSON.stringify(manifest)));
  const answer = (matches: (request: ProxiedRequest) => boolean, outcome: InjectedOutcome): void => {
    restore.push(proxy.intercept({ before: (request) => (matches(request) ? outcome : undefined) }));
  };
  const isList = ({ operation }: ProxiedRequest): boolean => operation === 'ListObjectsV2';

  interface Verification {
    readonly id: string;
    readonly status: string;
    readonly error: string | null;
    readonly report: {
      readonly ok: boolean;
      readonly findings: readonly { kind: string; detail: string }[];
    } | null;
  }

  /** Verifies the interval as the console does, and waits for the outcome. */
  async function verify(): Promise<Verification> {
    const path = `/batch_exports/${id}/intervals/${hourAgo(3).toISOString()}/verifications`;
    const { status, body, text } = await stack.call('POST', path, { deep: true });
    if (status !== 202) throw new Error(`The interval is not verified: ${text}`);
    return waitFor(async () => {
      const { body: list } = await stack.call('GET', path);
      const found = (list.results as Verification[]).find((one) => one.id === body.id);
      return found && found.status !== 'pending' ? found : null;
    }, 'the verification ends');
  }

  /** Verifies within the limits of memory and silence. */
  const verifyWithinLimits = (): Promise<Verification> => expectBorne(workerAt(port), verify);
  const kindsOf = ({ report }: Verification) => (report?.findings ?? []).map(({ kind }) => kind);

  const keyOfFile = (): string => original.files[0]?.key ?? '';

  /** Puts a file of a generation that no run wrote, and lets the manifest vouch for it. */
  async function putVouched(bytes: Buffer): Promise<void> {
    const key = keyOfFile().replace('.jsonl.zst', '-g9.jsonl.zst');
    await putObject(key, bytes);
    const files = original.files.map((file) => ({
      ...file,
      key,
      bytes: bytes.length,
      crc32: crc32(bytes).toString(16).padStart(8, '0'),
    }));
    await putManifest({ ...original, bytes: bytes.length, files });
  }

  const bomb = (): Buffer => zstdCompressSync(Buffer.alloc(256 * mebibyte, 'a'));

  it('of an object that is not the one that was written does not unpack it', async () => {
    const written = await getObject(keyOfFile());
    await putObject(keyOfFile(), bomb());
    expect(kindsOf(await verifyWithinLimits())).toContain('file_changed');
    await putObject(keyOfFile(), written);
  });

  it('of a bomb that its manifest vouches for ends with a finding', async () => {
    await putVouched(bomb());
    expect(kindsOf(await verifyWithinLimits())).toContain('file_unreadable');
  });

  it('of a manifest of 400 MB ends with a finding', async () => {
    answer(({ operation, key }) => operation === 'GetObject' && key === manifestKey, large(400_000_000));
    expect(kindsOf(await verifyWithinLimits())).toContain('manifest_unreadable');
  });

  it('of a manifest without an end fails', async () => {
    answer(({ operation, key }) => operation === 'GetObject' && key === manifestKey, endless(200));
    expect(await verifyWithinLimits()).toMatchObject({ status: 'failed' });
  });

  it.each<[string, InjectedOutcome]>([
    ['that drips', dripping(200, 'x', { 'content-length': '1000000' })],
    ['without an end', endless(200)],
  ])('of a file %s ends', async (_, outcome) => {
    answer(({ operation, key }) => operation === 'GetObject' && key === keyOfFile(), outcome);
    const { status } = await verifyWithinLimits();
    expect(['completed', 'failed']).toContain(status);
  });

  const page = (keys: readonly string[], token: string): InjectedOutcome => ({
    status: 200,
    body: `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>${token}</NextContinuationToken>${keys
      .map((key) => `<Contents><Key>${key}</Key></Contents>`)
      .join('')}</ListBucketResult>`,
  });

  it('of a list whose pages repeat ends', async () => {
    answer(isList, page([manifestKey], 'again'));
    expect(await verifyWithinLimits()).toMatchObject({ status: 'failed' });
  });

  it.each<[string, (page: number, index: number) => string]>([
    ['names that are no intervals', (page, index) => `${page}-${index}.json`],
    [
      'intervals that touch the one that is verified',
      (page, index) => `${compactTime(new Date((page * 1_000 + index) * 1_000))}-20991231T000000Z.json`,
    ],
  ])('of a list that never ends, of %s, ends', async (_, nameOf) => {
    let pages = 0;
    const folder = manifestKey.slice(0, manifestKey.lastIndexOf('/') + 1);
    restore.push(
      proxy.intercept({
        before: (request) => {
          if (!isList(request)) return undefined;
          pages += 1;
          const keys = Array.from({ length: 1_000 }, (_one, index) => folder + nameOf(pages, index));
          return page(keys, `token-${pages}`);
        },
      }),
    );
    expect(await verifyWithinLimits()).toMatchObject({ status: 'failed' });
  });
});

const compactTime = (time: Date): string => time.toISOString().replaceAll(/[-:]|\.\d+/g, '');
