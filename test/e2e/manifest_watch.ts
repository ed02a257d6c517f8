import { setTimeout as delay } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { parseManifest, type Manifest } from '../../src/destination/manifest.ts';
import type { TestBucket } from '../setup/bucket.ts';
import { readObject } from './rows.ts';

/** Somebody who reads manifests over and over while they are replaced. */
export interface ManifestWatch {
  /** What was wrong with an interval for somebody who reads its manifest, so far. */
  complaints(manifestKey: string): readonly string[];
  /** How often a manifest has been read with all its objects found. */
  rounds(): number;
  /** Reads every byte behind every manifest now. */
  readAll(): Promise<void>;
  stop(): Promise<void>;
}

const pauseMs = 50;

/** Watches manifests that stand already: each has to name objects of the sizes that it tells, at any time. */
export function watchManifests(bucket: TestBucket, keys: readonly string[]): ManifestWatch {
  const complaints = new Map<string, string[]>(keys.map((key) => [key, []]));
  let rounds = 0;
  const stopping = new AbortController();

  const look = async (key: string, isWhole: (manifest: Manifest) => Promise<string | undefined>) => {
    const text = await textOf(bucket, key);
    const manifest = text === undefined ? undefined : parseManifest(text);
    const complaint = manifest ? await isWhole(manifest) : 'There is no manifest that can be read.';
    // What a replaced manifest named may be cleaned up.
    if (complaint !== undefined && text === (await textOf(bucket, key))) complaints.get(key)?.push(complaint);
  };
  const watching = (async () => {
    for (; !stopping.signal.aborted; rounds += 1) {
      for (const key of keys) await look(key, (manifest) => missingObject(bucket, manifest));
      await delay(pauseMs);
    }
  })();

  return {
    complaints: (manifestKey) => complaints.get(manifestKey) ?? ['It is not watched.'],
    rounds: () => rounds,
    readAll: async () => {
      for (const key of keys) await look(key, (manifest) => changedObject(bucket, manifest));
    },
    stop: async () => {
      stopping.abort();
      await watching;
    },
  };
}

const textOf = (bucket: TestBucket, key: string): Promise<string | undefined> =>
  readObject(bucket, key).then(String, () => undefined);

async function missingObject(bucket: TestBucket, { files }: Manifest): Promise<string | undefined> {
  for (const { key, bytes } of files) {
    const found = await bucket.client
      .send(new HeadObjectCommand({ Bucket: bucket.bucket, Key: key }))
      .catch(() => undefined);
    if (found?.ContentLength !== bytes) return `${key} is not there with ${bytes} bytes.`;
  }
  return undefined;
}

async function changedObject(bucket: TestBucket, { files }: Manifest): Promise<string | undefined> {
  for (const { key, crc32: sum } of files) {
    const bytes = await readObject(bucket, key).catch(() => undefined);
    if (!bytes || crc32(bytes) !== Number.parseInt(sum, 16)) return `${key} does not read back whole.`;
  }
  return undefined;
}
