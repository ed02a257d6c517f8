import { gunzipSync } from 'node:zlib';
import { GetObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import type { Pool } from '../../src/journal/database.ts';
import type { TestBucket } from '../setup/bucket.ts';

/** Inserts `rows` events spread evenly over `[start, start + seconds)` in one statement. */
export async function insertEvents(
  pool: Pool,
  teamId: number,
  start: Date,
  rows: number,
  seconds = 3_600,
): Promise<void> {
  await pool.query(
    `insert into events (team_id, uuid, event, distinct_id, person_id, properties, timestamp, created_at, inserted_at)
     select $1, gen_random_uuid(), '$pageview', 'person-' || n % 100, gen_random_uuid(),
       jsonb_build_object('$current_url', 'https://example.com/' || n, 'n', n, 'quote', 'say "hi"\n'),
       moment, moment, moment
     from generate_series(1, $3::int) n
     cross join lateral (select $2::timestamptz + make_interval(secs => $4::float8 * (n - 1) / $3::int) as moment) m`,
    [teamId, start, rows, seconds],
  );
}

/** The sorted UUIDs of the source's events inserted in `[start, end)`. */
export async function sourceUuids(pool: Pool, teamId: number, start: string, end: string): Promise<string[]> {
  const { rows } = await pool.query<{ uuid: string }>(
    'select uuid from events where team_id = $1 and inserted_at >= $2 and inserted_at < $3 order by uuid::text',
    [teamId, start, end],
  );
  return rows.map(({ uuid }) => uuid);
}

/** The fields of a manifest that tests use. */
interface ManifestFields {
  readonly run_id: string;
  readonly generation: number;
  readonly rows: number;
  readonly source_rows: number;
  readonly settled: boolean;
  readonly files: readonly { readonly key: string; readonly rows: number; readonly bytes: number }[];
}

/** Reads an object. */
export async function readObject(bucket: TestBucket, key: string): Promise<Buffer> {
  const response = await bucket.client.send(new GetObjectCommand({ Bucket: bucket.bucket, Key: key }));
  if (!response.Body) throw new Error(`The object ${key} has no body.`);
  return Buffer.from(await response.Body.transformToByteArray());
}

/** Reads a manifest. */
export async function readManifest(bucket: TestBucket, key: string): Promise<ManifestFields> {
  return JSON.parse((await readObject(bucket, key)).toString()) as ManifestFields;
}

/** Reads all rows of a manifest as users do: only the manifest lists the current files. */
export async function exportedRows(
  bucket: TestBucket,
  manifestKey: string,
): Promise<Record<string, unknown>[]> {
  const manifest = await readManifest(bucket, manifestKey);
  const rows: Record<string, unknown>[] = [];
  for (const { key } of manifest.files) {
    const bytes = await readObject(bucket, key);
    const text = (key.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
    for (const line of text.split('\n'))
      if (line !== '') rows.push(JSON.parse(line) as Record<string, unknown>);
  }
  return rows;
}

/** The sorted UUIDs in a manifest's files, including duplicates. */
export async function exportedUuids(bucket: TestBucket, manifestKey: string | null): Promise<string[]> {
  if (manifestKey === null) throw new Error('The run has no manifest.');
  const rows = await exportedRows(bucket, manifestKey);
  return rows.map(({ uuid }) => String(uuid)).sort();
}

/** The keys in the bucket with a prefix. */
export async function keysUnder(bucket: TestBucket, prefix: string): Promise<string[]> {
  const listed = await bucket.client.send(
    new ListObjectsV2Command({ Bucket: bucket.bucket, Prefix: prefix }),
  );
  return (listed.Contents ?? []).map(({ Key }) => Key ?? '');
}
