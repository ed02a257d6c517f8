import { crc32, gunzipSync } from 'node:zlib';
import { GetObjectCommand, ListMultipartUploadsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { expect } from '@jest/globals';
import { parseManifest, type Manifest } from '../../src/destination/manifest.ts';
import type { Pool } from '../../src/journal/database.ts';
import type { TestBucket } from '../setup/bucket.ts';

/** What a reader finds in a bucket, and what it should find. */
export function createReader(pool: Pool, bucket: TestBucket, interval: { start: string; end: string }) {
  async function bytesOf(key: string): Promise<Buffer> {
    const { Body } = await bucket.client.send(new GetObjectCommand({ Bucket: bucket.bucket, Key: key }));
    return Buffer.from((await Body?.transformToByteArray()) ?? []);
  }

  async function manifestAt(key: string): Promise<Manifest> {
    const manifest = parseManifest((await bytesOf(key)).toString());
    if (!manifest) throw new Error(`${key} is no manifest.`);
    return manifest;
  }

  /** Events that a reader finds who follows a manifest; checks what it says of each file on the way. */
  async function uuidsBehind(manifest: Manifest): Promise<string[]> {
    const uuids: string[] = [];
    for (const file of manifest.files) {
      const bytes = await bytesOf(file.key);
      expect(bytes.length).toBe(file.bytes);
      expect(crc32(bytes).toString(16).padStart(8, '0')).toBe(file.crc32);
      const text = (file.key.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
      const rows = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { uuid: string });
      expect(rows).toHaveLength(file.rows);
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

  async function keysUnder(prefix: string): Promise<string[]> {
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
    const { rows } = await pool.query<{ event_type: string }>(
      'select event_type from exportd.journal_events where stream_id = $1 order by stream_version',
      [runId],
    );
    return rows.map(({ event_type }) => event_type);
  }
  return { manifestAt, textOf, uuidsBehind, sourceUuids, keysUnder, openUploads, eventTypes };
}
