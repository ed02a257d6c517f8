import { crc32, gunzipSync } from 'node:zlib';
import { bucketsOf } from '../../src/domain/fingerprint.ts';
import { GetObjectCommand, ListMultipartUploadsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { expect } from '@jest/globals';
import { formatCrc32 } from '../../src/encoding/compression.ts';
import { parseManifest, type Manifest } from '../../src/destination/manifest.ts';
import type { Pool } from '../../src/journal/database.ts';
import type { TestBucket } from '../setup/bucket.ts';
import { readEvents } from '../journal/read_stream.ts';

/** Reads a bucket as a consumer of exports does, and what the consumer should find in it. */
export function createReader(pool: Pool, bucket: TestBucket, interval: { start: string; end: string }) {
  async function bytesOf(key: string): Promise<Buffer> {
    const { Body } = await bucket.client.send(new GetObjectCommand({ Bucket: bucket.bucket, Key: key }));
    return Buffer.from((await Body?.transformToByteArray()) ?? []);
  }

  async function manifestAt(key: string): Promise<Manifest> {
    const manifest = parseManifest((await bytesOf(key)).toString());
    if (!manifest) throw new Error(`${key} is not a manifest.`);
    return manifest;
  }

  /** The buckets of a fingerprint of these events, as PostgreSQL computes them. */
  const expectedBuckets = async (
    events: readonly { uuid: string; _inserted_at: string }[],
    manifest: Manifest,
  ): Promise<unknown[]> =>
    (
      await pool.query<{ index: number; rows: number; sum: string }>(
        `select floor(extract(epoch from at - $3::timestamptz) * 1000 / $4)::int as index, count(*)::int as rows,
           mod(mod(sum(uuid_hash_extended(uuid, 0)), 2::numeric ^ 64) + 2::numeric ^ 64, 2::numeric ^ 64)::numeric(20)::text as sum
         from unnest($1::uuid[], $2::timestamptz[]) as event (uuid, at) group by 1 order by 1`,
        [
          events.map(({ uuid }) => uuid),
          events.map(({ _inserted_at }) => _inserted_at),
          manifest.data_interval_start,
          manifest.fingerprint.width_ms,
        ],
      )
    ).rows;

  /** The events in the files of a manifest; checks size, checksum, row count and fingerprint of each file. */
  async function uuidsIn(manifest: Manifest): Promise<string[]> {
    const uuids: string[] = [];
    for (const file of manifest.files) {
      const bytes = await bytesOf(file.key);
      expect(bytes.length).toBe(file.bytes);
      expect(formatCrc32(crc32(bytes))).toBe(file.crc32);
      const text = (file.key.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
      const rows = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { uuid: string; _inserted_at: string });
      expect(rows).toHaveLength(file.rows);
      expect(bucketsOf(file.fingerprint)).toEqual(await expectedBuckets(rows, manifest));
      uuids.push(...rows.map(({ uuid }) => uuid));
    }
    return uuids;
  }

  const textOf = async (key: string): Promise<string> => (await bytesOf(key)).toString();

  async function sourceUuids(): Promise<string[]> {
    const { rows } = await pool.query<{ uuid: string }>(
      'select uuid from events where inserted_at >= $1 and inserted_at < $2 order by inserted_at, uuid',
      [interval.start, interval.end],
    );
    return rows.map(({ uuid }) => uuid);
  }

  async function keysWithPrefix(prefix: string): Promise<string[]> {
    const listed = await bucket.client.send(
      new ListObjectsV2Command({ Bucket: bucket.bucket, Prefix: prefix }),
    );
    return (listed.Contents ?? []).flatMap(({ Key }) => Key ?? []);
  }

  async function openUploads(): Promise<unknown[]> {
    const listed = await bucket.client.send(new ListMultipartUploadsCommand({ Bucket: bucket.bucket }));
    return listed.Uploads ?? [];
  }

  async function eventTypes(runId: string): Promise<string[]> {
    return (await readEvents(pool, runId)).map(({ type }) => type);
  }
  return { manifestAt, textOf, uuidsIn, sourceUuids, keysWithPrefix, openUploads, eventTypes };
}
