import { setTimeout as delay } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { parseManifest, type Manifest } from '../../src/destination/manifest.ts';
import type { TestBucket } from '../setup/bucket.ts';
import { readObject } from './rows.ts';

/** Polls manifests while they are replaced. */
export interface ManifestWatch {
  /** The problems that a reader of the manifest would have had so far. */
  problems(manifestKey: string): readonly string[];
  /** The number of polls of all manifests. */
  rounds(): number;
  /** Reads all files of all manifests now. */
  readAll(): Promise<void>;
  stop(): Promise<void>;
}

/** Each round is two requests per manifest: more often, they took more CPU than the exports. */
const pollMs = 200;

/** Watches existing manifests. At any time, the files of each must exist with the sizes in the manifest. */
export function watchManifests(bucket: TestBucket, keys: readonly string[]): ManifestWatch {
  const problems = new Map<string, string[]>(keys.map((key) => [key, []]));
  let rounds = 0;
  const stopping = new AbortController();

  const check = async (key: string, isWhole: (manifest: Manifest) => Promise<string | undefined>) => {
    const text = await textOf(bucket, key);
    const manifest = text === undefined ? undefined : parseManifest(text);
    const problem = manifest ? await isWhole(manifest) : 'The manifest is missing or invalid.';
    // Files of a manifest that was replaced since may be deleted.
    if (problem !== undefined && text === (await textOf(bucket, key))) problems.get(key)?.push(problem);
  };
  const watching = (async () => {
    for (; !stopping.signal.aborted; rounds += 1) {
      for (const key of keys) await check(key, (manifest) => missingObject(bucket, manifest));
      await delay(pollMs);
    }
  })();

  return {
    problems: (manifestKey) => problems.get(manifestKey) ?? ['The manifest is not watched.'],
    rounds: () => rounds,
    readAll: async () => {
      for (const key of keys) await check(key, (manifest) => changedObject(bucket, manifest));
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
    if (found?.ContentLength !== bytes) return `${key} does not exist with ${bytes} bytes.`;
  }
  return undefined;
}

async function changedObject(bucket: TestBucket, { files }: Manifest): Promise<string | undefined> {
  for (const { key, crc32: sum } of files) {
    const bytes = await readObject(bucket, key).catch(() => undefined);
    if (!bytes || crc32(bytes) !== Number.parseInt(sum, 16)) return `${key} does not have its CRC-32.`;
  }
  return undefined;
}
