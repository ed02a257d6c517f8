import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bounds } from '../../src/config/bounds.ts';
import { type Manifest, parseManifest } from '../../src/destination/manifest.ts';
import type { ManifestClaim } from '../../src/destination/destination.ts';
import { createS3Proxy } from '../e2e/s3_proxy.ts';
import { errorResponse } from '../export/stores.ts';
import { startBlackholeServer } from '../isolation/blackhole_server.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { waitFor } from '../setup/wait_for.ts';
import { denying, losingResponses, requestsOf, withoutConditionalWrites } from './bucket_requests.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { getManifestObject, putManifestObject } from '../../src/destination/manifest_object.ts';

const { signal } = new AbortController();
const options = { ContentType: 'application/json', provesWrites: false, testsConditions: false };

const manifest = (generation: number, run_id = `run-${generation}`): Manifest => ({
  version: 1,
  batch_export_id: 'export',
  run_id,
  generation,
  config_version: 1,
  model: 'events',
  data_interval_start: '2026-11-01T10:00:00.000Z',
  data_interval_end: '2026-11-01T11:00:00.000Z',
  settled: true,
  columns: [{ name: 'uuid', type: 'uuid' }],
  rows: 1,
  bytes: 2,
  source_rows: 1,
  fingerprint: fingerprintOf(1),
  rejected: 0,
  rejected_file: null,
  encoder: 'jsonlines/1',
  files: [
    {
      key: 'a',
      rows: 1,
      fingerprint: fingerprintOf(1),
      bytes: 2,
      crc32: '00000000',
      first: null,
      last: null,
    },
  ],
  kept: [],
  earlier: [],
  created_at: '2026-11-01T11:00:05.000Z',
});

const bucket = useTestBucket();
const requests = requestsOf(bucket);

afterAll(() => requests.close());

/**
 * A claim that adds its steps to `steps`. The journal knows all manifests but those of the run `unknown`, and one that cannot
 * be read if `mayExist`.
 */
const claimOf = (
  given: Manifest,
  { expectsNone, mayExist }: { readonly expectsNone: boolean; readonly mayExist: boolean },
  steps: string[] = [],
  onClaim: () => unknown = () => undefined,
): ManifestClaim => {
  let isHeld = false;
  return {
    run_id: given.run_id,
    generation: given.generation,
    claimed_by: [],
    files: given.files,
    get manifest() {
      return isHeld ? given : null;
    },
    expectsNone,
    knows: (found) => Promise.resolve(found ? found.run_id !== 'unknown' : mayExist),
    hold: async () => {
      if (!isHeld) steps.push('claimed');
      isHeld = true;
      await onClaim();
      return given;
    },
    withdraw: () => {
      if (isHeld) steps.push('withdrawn');
      isHeld = false;
      return Promise.resolve();
    },
  };
};

/** Writes a manifest. With `trusting`, the store's responses are taken as proof, and no manifest is expected. */
const putWith = (
  trusting: boolean,
  key: string,
  given: Manifest,
  through: typeof requests,
  mayExist: boolean,
) => {
  const claim = claimOf(given, { expectsNone: trusting, mayExist });
  const optionsOfStore = { ...options, provesWrites: trusting };
  return putManifestObject(through, key, claim, optionsOfStore, signal);
};
const readManifest = async (key: string): Promise<Manifest | null> => {
  const found = await getManifestObject(requests, key, signal);
  return found.state === 'present' ? (parseManifest(found.text) ?? null) : null;
};

/** A server that responds once, that there is no manifest, and then does what `onPut` says with the next request. */
async function startEmptyStore(onPut: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer((request, response) => {
    if (request.method !== 'GET') {
      onPut(request, response);
      return;
    }
    response.writeHead(404, { connection: 'close', 'content-type': 'application/xml' });
    response.end('<Error><Code>NoSuchKey</Code></Error>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Publishes to a server, which fails. @returns the steps of the claim */
async function stepsOfClaim(
  endpoint: string,
  given: AbortSignal,
  onClaim: () => unknown = () => undefined,
): Promise<string[]> {
  const steps: string[] = [];
  const through = requestsOf(bucket, { endpoint_url: endpoint }, { EXPORTD_S3_RETRY_BUDGET: '0s' });
  const claim = claimOf(manifest(1), { expectsNone: false, mayExist: true }, steps, onClaim);
  await expect(putManifestObject(through, 'claimed.json', claim, options, given)).rejects.toThrow();
  through.close();
  return steps;
}

describe('publishing', () => {
  it('is not claimed while the store does not respond', async () => {
    const blackhole = await startBlackholeServer();
    const aborted = new AbortController();
    const steps = stepsOfClaim(blackhole.endpoint, aborted.signal);
    await waitFor(() => blackhole.accepted() > 0, 'a request for the manifest');
    aborted.abort(new Error('a test'));
    expect(await steps).toEqual([]);
    await blackhole.close();
  });

  it('is no longer claimed if the store refused the connection for the manifest', async () => {
    const store = await startEmptyStore(() => undefined);
    expect(await stepsOfClaim(store.endpoint, signal, store.close)).toEqual(['claimed', 'withdrawn']);
  });

  it('is no longer claimed if it was aborted before the manifest was sent', async () => {
    const store = await startEmptyStore(() => undefined);
    const aborted = new AbortController();
    const abort = () => aborted.abort(new Error('a test'));
    expect(await stepsOfClaim(store.endpoint, aborted.signal, abort)).toEqual(['claimed', 'withdrawn']);
    await store.close();
  });

  it.each([
    { outcome: 'the connection broke', onPut: ({ socket }: IncomingMessage) => socket.destroy() },
    {
      outcome: 'the store responded with an error',
      onPut: (_: IncomingMessage, response: ServerResponse) => response.writeHead(503).end(),
    },
  ])('stays claimed if the manifest was sent and $outcome', async ({ onPut }) => {
    const store = await startEmptyStore(onPut);
    expect(await stepsOfClaim(store.endpoint, signal)).toEqual(['claimed']);
    await store.close();
  });
});

describe.each([
  { store: 'is asked before and after', trusting: false },
  { store: 'proves by its response', trusting: true },
])('the manifest of an interval, in a store that $store,', ({ store, trusting }) => {
  const prefix = `${store.replaceAll(' ', '_')}/`;
  const put = (key: string, given: Manifest, through = requests, mayExist = true) =>
    putWith(trusting, prefix + key, given, through, mayExist);
  const read = (key: string) => readManifest(prefix + key);

  it('is indented JSON with a trailing line break; repeating it writes the same bytes', async () => {
    expect(await read('new.json')).toBeNull();
    expect(await put('new.json', manifest(1))).toEqual({ verified: true, expires_at: null });
    expect(await put('new.json', manifest(1))).toEqual({ verified: true, expires_at: null });
    const { Body } = await bucket.client.send(
      new GetObjectCommand({ Bucket: bucket.bucket, Key: `${prefix}new.json` }),
    );
    const text = (await Body?.transformToString()) ?? '';
    const written: unknown = JSON.parse(text);
    expect(text).toBe(`${JSON.stringify(written)}\n`);
    const { fingerprint, files, ...facts } = manifest(1);
    // As readers know it.
    const listed = { hash: fingerprint.hash, width_ms: 56_250, buckets: [{ index: 0, rows: 1, sum: '1' }] };
    expect(written).toEqual({
      ...facts,
      fingerprint: listed,
      files: files.map((file) => ({ ...file, fingerprint: listed })),
    });
    expect(await read('new.json')).toEqual(manifest(1));
  });

  it('is replaced by a newer generation, never by an older one or another run of the same one', async () => {
    await put('newer.json', manifest(2));
    await put('newer.json', manifest(3));
    for (const other of [manifest(2), manifest(3, 'a stranger')])
      await expect(put('newer.json', other)).rejects.toMatchObject({
        type: 'ManifestReplaced',
        transient: false,
      });
    expect(await read('newer.json')).toEqual(manifest(3));
  });

  it('is not replaced if it is unknown, whatever its generation', async () => {
    await put('unknown.json', manifest(1, 'unknown'));
    await expect(put('unknown.json', manifest(2))).rejects.toMatchObject({
      type: 'ManifestReplaced',
      found: manifest(1, 'unknown'),
    });
    expect(await read('unknown.json')).toEqual(manifest(1, 'unknown'));
  });

  it('of the same run is not replaced if it names other files', async () => {
    const written = { ...manifest(1), files: [] };
    await put('same_run.json', written);
    await expect(put('same_run.json', manifest(1))).rejects.toMatchObject({ type: 'ManifestReplaced' });
    expect(await read('same_run.json')).toEqual(written);
  });

  it('is recognized as written when the response was lost', async () => {
    const losing = losingResponses(requests, 'PutObject');
    expect(await put('lost.json', manifest(1), losing)).toEqual({ verified: true, expires_at: null });
    expect(await put('lost.json', manifest(2), losing)).toEqual({ verified: true, expires_at: null });
    expect(await read('lost.json')).toEqual(manifest(2));
  });

  it('is the newest one after concurrent writes', async () => {
    await Promise.allSettled([1, 2, 3, 4].map((generation) => put('race.json', manifest(generation))));
    expect(await read('race.json')).toMatchObject({ generation: 4 });
  });

  it('replaces an object that is not a manifest', async () => {
    await bucket.client.send(
      new PutObjectCommand({ Bucket: bucket.bucket, Key: `${prefix}odd.json`, Body: 'not JSON' }),
    );
    expect(await read('odd.json')).toBeNull();
    expect(await put('odd.json', manifest(1))).toEqual({ verified: true, expires_at: null });
  });

  it('is written by credentials that may not read, and then verified by the response alone', async () => {
    const blind = denying(requests, 'GetObject');
    expect(await put('blind.json', manifest(1), blind)).toEqual({ verified: trusting, expires_at: null });
    expect(await put('blind.json', manifest(2), blind)).toEqual({ verified: trusting, expires_at: null });
    expect(await read('blind.json')).toEqual(manifest(2));
  });

  it('is not written over an object that cannot be read, if no manifest is known', async () => {
    const blind = denying(requests, 'GetObject');
    await put('foreign.json', manifest(1));
    await expect(put('foreign.json', manifest(2), blind, false)).rejects.toMatchObject({
      type: 'ManifestUnreadable',
      transient: false,
      message: expect.stringContaining('s3:GetObject'),
    });
    expect(await read('foreign.json')).toEqual(manifest(1));
    // The object may be its own, whose response was lost.
    const losing = denying(losingResponses(requests, 'PutObject'), 'GetObject');
    expect(await put('own.json', manifest(1), losing, false)).toMatchObject({ verified: trusting });
    expect(await read('own.json')).toEqual(manifest(1));
  });

  it.each([
    ['the response is lost', 'broken'],
    ['the store responds with an error', errorResponse(500, 'InternalError')],
  ] as const)('is not taken for that of another if it is stored and %s', async (_, outcome) => {
    const proxy = await createS3Proxy(bucket.endpoint);
    let puts = 0;
    proxy.intercept({
      after: ({ operation }) => (operation === 'PutObject' && (puts += 1) === 1 ? outcome : undefined),
    });
    const through = requestsOf(bucket, { endpoint_url: proxy.endpoint });
    const blind = denying(through, 'GetObject');
    const key = outcome === 'broken' ? 'reset.json' : 'error.json';
    expect(await put(key, manifest(1), blind, false)).toMatchObject({ verified: trusting });
    expect(puts).toBeGreaterThan(1);
    expect(await read(key)).toEqual(manifest(1));
    through.close();
    await proxy.close();
  });

  it('is not claimed any more after the store has refused it, so that a retry overwrites nothing', async () => {
    await put('refused.json', manifest(1));
    const steps: string[] = [];
    const claim = claimOf(manifest(2), { expectsNone: trusting, mayExist: false }, steps);
    const blind = denying(requests, 'GetObject');
    const optionsOfStore = { ...options, provesWrites: trusting };
    await expect(
      putManifestObject(blind, `${prefix}refused.json`, claim, optionsOfStore, signal),
    ).rejects.toMatchObject({ type: 'ManifestUnreadable' });
    expect(steps).toEqual(['claimed', 'withdrawn']);
  });

  it('is written to a server without conditional writes', async () => {
    const reported: string[] = [];
    const simple = {
      ...withoutConditionalWrites(requests),
      report: ({ type }: { type: string }) => reported.push(type),
    };
    expect(await put('simple.json', manifest(1), simple)).toEqual({ verified: true, expires_at: null });
    expect(await put('simple.json', manifest(2), simple)).toEqual({ verified: true, expires_at: null });
    expect(reported).toEqual(['NotImplemented', 'NotImplemented']);
  });
});

describe('a manifest of more bytes than exportd reads', () => {
  it('is not written, and its claim is withdrawn', async () => {
    const [file] = manifest(1).files;
    const files = Array.from({ length: 9_000 }, (_, index) => ({
      ...file,
      key: `${index}-${'k'.repeat(4_000)}`,
    })) as Manifest['files'];
    const steps: string[] = [];
    const claim = claimOf({ ...manifest(1), files }, { expectsNone: true, mayExist: false }, steps);
    await expect(putManifestObject(requests, 'too-large.json', claim, options, signal)).rejects.toMatchObject(
      { type: 'ManifestTooLarge', transient: false },
    );
    expect(steps).toEqual(['claimed', 'withdrawn']);
    expect(await readManifest('too-large.json')).toBeNull();
  });

  it('of ten thousand files with long keys can be read', async () => {
    const [file] = manifest(1).files;
    const first = { inserted_at: '2026-11-01T10:00:00.000000Z', id: 'i'.repeat(400) };
    const files = Array.from({ length: bounds.manifestFiles.max }, (_, index) => ({
      ...file,
      key: `${index}-${'k'.repeat(900)}`,
      first,
      last: first,
    })) as Manifest['files'];
    expect(await putWith(false, 'large.json', { ...manifest(1), files }, requests, false)).toMatchObject({
      verified: true,
    });
    expect((await readManifest('large.json'))?.files).toHaveLength(files.length);
  });
});
