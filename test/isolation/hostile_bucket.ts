/** The bucket of a tenant who owns all of its bytes: a proxy that answers at random, and objects that the tenant writes. */
import { zstdCompressSync, gzipSync } from 'node:zlib';
import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { keysUnder } from '../e2e/rows.ts';
import { createS3Proxy, type S3Proxy } from '../e2e/s3_proxy.ts';
import type { TestBucket } from '../setup/bucket.ts';
import {
  answers,
  answerNames,
  damagedBytes,
  plantedCommit,
  plantedManifest,
  type Surroundings,
} from './random_answers.ts';
import { random } from './random.ts';

/** After so many requests the store is in another mood. */
const moodRequests = 60;
/** How likely an answer is random, by mood: runs get far in some, and nowhere in others. */
const moods = [0, 0.02, 0.1, 0.3, 1] as const;

interface HostileStore {
  readonly proxy: S3Proxy;
  /** How often each answer was given. */
  readonly given: ReadonlyMap<string, number>;
  /** Requests for keys that are not below the prefix of the tenant. */
  readonly outside: readonly string[];
  attack(): void;
  /** Lets all requests pass again. */
  pause(): void;
  /** Replaces a random object of the tenant, or adds one. */
  plant(): Promise<void>;
}

/** Starts the store. @param prefix of all exports of the tenant in the bucket */
export async function createHostileStore(
  bucket: TestBucket,
  prefix: string,
  others: Omit<Surroundings, 'manifest'>,
): Promise<HostileStore> {
  const proxy = await createS3Proxy(bucket.endpoint);
  const given = new Map<string, number>();
  const outside: string[] = [];
  let surroundings: Surroundings = { ...others, manifest: '' };
  let isAttacking = false;
  let mood = 0;
  let untilNextMood = 0;
  const changeMood = (): void => {
    untilNextMood -= 1;
    if (untilNextMood > 0) return;
    untilNextMood = 1 + random.below(moodRequests);
    mood = random.of(moods);
  };
  proxy.intercept({
    before: (request) => {
      const { operation, key, text } = request;
      if (operation === 'PutObject' && key.includes('_manifests/'))
        surroundings = { ...others, manifest: text ?? '' };
      if (key !== '' && !key.startsWith(prefix)) outside.push(`${operation} ${key}`);
      if (!isAttacking) return undefined;
      changeMood();
      if (!random.happens(mood)) return undefined;
      const name = random.of(answerNames);
      const answer = answers[name];
      given.set(name, (given.get(name) ?? 0) + 1);
      return answer(request, surroundings);
    },
    headers: () =>
      isAttacking && random.happens(mood / 2)
        ? random.of<Record<string, string>>([
            { etag: '"another"' },
            { etag: '' },
            { 'last-modified': 'Thu, 01 Jan 1970 00:00:00 GMT' },
            { 'last-modified': 'never' },
            { 'x-amz-version-id': 'x'.repeat(1_000) },
            { 'x-amz-checksum-crc32': 'AAAAAA==' },
          ])
        : {},
  });

  const put = (Key: string, Body: string | Buffer): Promise<unknown> =>
    bucket.client.send(new PutObjectCommand({ Bucket: bucket.bucket, Key, Body }));
  const textOf = async (Key: string): Promise<string> => {
    const { Body } = await bucket.client.send(new GetObjectCommand({ Bucket: bucket.bucket, Key }));
    return (await Body?.transformToString()) ?? '';
  };

  return {
    proxy,
    given,
    outside,
    attack: () => (isAttacking = true),
    pause: () => (isAttacking = false),
    plant: async () => {
      const [first, ...rest] = await keysUnder(bucket, prefix);
      if (first === undefined) return;
      const key = random.of([first, ...rest]);
      if (random.happens(0.3)) await put(key, damagedBytes(maxPlantedBytes));
      else if (key.includes('_manifests/'))
        // The run may have deleted it meanwhile.
        await put(key, plantedManifest(await textOf(key).catch(() => ''), surroundings));
      else if (key.includes('_delta_log/')) await put(commitAfter(key), plantedCommit(surroundings));
      else await put(key, random.of(bombs));
    },
  };
}

const maxPlantedBytes = 40 * 1_048_576;
const maxUnpackedBytes = 128 * 1_048_576;

const unpacked = Buffer.alloc(maxUnpackedBytes, 'a');
/** Files that unpack to far more than they are. */
const bombs = [zstdCompressSync(unpacked), gzipSync(unpacked)] as const;

/** The key of the same commit, or of one of the next. */
const commitAfter = (key: string): string =>
  key.replace(/\d{20}/, (version) => String(Number(version) + random.below(3)).padStart(20, '0'));
