import { targetChecks as targets } from '../../src/temporal/capabilities.ts';
import { randomUUID } from 'node:crypto';
import { crc32 } from 'node:zlib';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { formatManifest, parseManifest, type Manifest } from '../../src/destination/manifest.ts';
import {
  batchExportDecider,
  type BatchExportDefinition,
  type BatchExportEvent,
  type Model,
} from '../../src/domain/batch_export.ts';
import type { VerificationReport } from '../../src/verify/report.ts';
import { verifyBatchExport, type VerifyOptions } from '../../src/verify/verify_batch_export.ts';
import { encodeBuckets, type Fingerprint, type FingerprintBucket } from '../../src/domain/fingerprint.ts';
import type { SortKey } from '../../src/domain/sort_key.ts';
import { definitionOf } from '../domain/definition.ts';
import { createExportHarness, insertEvents } from '../export/export_harness.ts';

/** The project of every row. */
export const teamId = 1;

/** Three consecutive hours. */
export const hours = [10, 11, 12].map((hour) => ({
  start: `2026-01-01T${hour}:00:00.000Z`,
  end: `2026-01-01T${hour + 1}:00:00.000Z`,
}));

function hourAt(index: number): (typeof hours)[number] {
  const hour = hours[index];
  if (!hour) throw new RangeError(`There is no hour ${index}.`);
  return hour;
}

/** An export with a manifest for each hour, and methods to corrupt it. */
export interface Exported {
  readonly batchExportId: string;
  verify(options?: Partial<VerifyOptions>): Promise<VerificationReport>;
  /** Exports an hour again. */
  exportAgain(hour: number, config?: object): Promise<void>;
  /** Appends events to the journal of the export. */
  append(...events: readonly BatchExportEvent[]): Promise<void>;
  /** Makes a config version current. Each exported hour has its own, from 1. */
  putInForce(config_version: number): Promise<void>;
  manifestKey(hour: number): string;
  manifest(hour: number): Promise<Manifest>;
  /** Replaces the manifest of an hour, or of another interval, with the given fields. */
  putManifest(manifest: Manifest): Promise<void>;
  /** Changes the lines of an hour's only file, and updates its manifest. */
  rewrite(hour: number, change: (lines: string[]) => string[]): Promise<void>;
}

/** Creates an environment for exporting and verifying: PostgreSQL with three hours of events, and a bucket. */
export async function createVerifyHarness(eventsPerHour = 100) {
  const harness = await createExportHarness();
  const { pool } = harness.database;
  for (const { start } of hours) await insertEvents(pool, eventsPerHour, start);
  const { client, bucket: Bucket } = harness.bucket;

  const getObject = async (Key: string): Promise<Buffer> => {
    const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
    return Buffer.from((await Body?.transformToByteArray()) ?? []);
  };
  const putObject = async (Key: string, Body: Buffer): Promise<void> => {
    await client.send(new PutObjectCommand({ Bucket, Key, Body }));
  };
  const deleteObject = async (Key: string): Promise<void> => {
    await client.send(new DeleteObjectCommand({ Bucket, Key }));
  };
  const keysBelow = async (Prefix: string): Promise<string[]> => {
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, Prefix }));
    return Contents.flatMap(({ Key }) => Key ?? []);
  };
  const verify = (options: VerifyOptions) =>
    verifyBatchExport(
      {
        pool,
        keyRing: harness.keyRing,
        settings: harness.settings,
        sourceUrl: harness.database.url,
        targets,
        onError: () => undefined,
      },
      options,
    );

  const append = (batchExportId: string, events: readonly BatchExportEvent[]): Promise<void> =>
    harness.journal.transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, batchExportId);
      await stream.append(randomUUID(), events);
    });

  /** Creates an export of the three hours. */
  const createExport = async (changes: Partial<BatchExportDefinition>): Promise<string> => {
    const batchExportId = randomUUID();
    const definition = definitionOf({ name: 'An export', end_at: hourAt(2).end, ...changes });
    const data = { team_id: teamId, definition, scheduled_until: hourAt(0).start, paused: false };
    await append(batchExportId, [{ type: 'BatchExportCreated', data }]);
    return batchExportId;
  };

  const exportHour = async (more: Parameters<typeof harness.createRun>[0]): Promise<string> => {
    const { run_id } = await harness.createRun(more);
    const attempt = harness.attempt();
    await attempt.exportInterval({ run_id });
    return (await attempt.publishManifest({ run_id })).manifest_key;
  };

  /** The fingerprint of rows, as in the manifest of an hour. Misplaced rows are in the first bucket. */
  const fingerprintOf = async (
    keys: readonly SortKey[],
    { fingerprint, model, data_interval_start: start }: Manifest,
  ): Promise<Fingerprint> => {
    const { rows: buckets } = await pool.query<FingerprintBucket>(
      `select index, count(*)::int as rows, mod(mod(sum(hash), modulus) + modulus, modulus)::text as sum
       from (select greatest(0, floor(extract(epoch from at - $3) * 1000 / $4))::int as index, 2::numeric ^ 64 as modulus,
           case $5 when 'events' then uuid_hash_extended(id::uuid, 0) else hashtextextended(id, 0) end as hash
         from unnest($1::timestamptz[], $2::text[]) row(at, id)) row
       group by index, modulus order by index`,
      [
        keys.map(({ inserted_at }) => inserted_at),
        keys.map(({ id }) => id),
        start,
        fingerprint.width_ms,
        model,
      ],
    );
    return { ...fingerprint, encoded_buckets: encodeBuckets(buckets) };
  };

  /** Exports the three hours. */
  const exportHours = async (
    more: {
      model?: Model;
      config?: object;
      query?: string;
      definition?: Partial<BatchExportDefinition>;
    } = {},
  ): Promise<Exported> => {
    const { model = 'events', config = {}, query, definition } = more;
    const batchExportId = await createExport({ model, ...definition });
    const keys: string[] = [];
    for (const of of hours) keys.push(await exportHour({ batchExportId, model, config, of, query }));
    const manifestKey = (hour: number): string => keys[hour] ?? '';
    const manifest = async (hour: number): Promise<Manifest> => {
      const read = parseManifest((await getObject(manifestKey(hour))).toString());
      if (!read) throw new Error('There is no manifest.');
      return read;
    };
    const putManifest = (changed: Manifest): Promise<void> =>
      putObject(keyOf(manifestKey(0), changed), Buffer.from(formatManifest(changed)));
    return {
      batchExportId,
      verify: (options) => verify({ batchExportId, ...options }),
      exportAgain: async (hour, changed = config) => {
        keys[hour] = await exportHour({ batchExportId, model, config: changed, of: hourAt(hour), query });
      },
      append: (...events) => append(batchExportId, events),
      putInForce: (config_version) =>
        append(batchExportId, [
          {
            type: 'BatchExportUpdated',
            data: { changes: { config_version }, schedule_effective_from: null },
          },
        ]),
      manifestKey,
      manifest,
      putManifest,
      rewrite: async (hour, change) => {
        const before = await manifest(hour);
        const [file] = before.files;
        if (!file) throw new Error('There is no file.');
        const lines = change((await getObject(file.key)).toString().trimEnd().split('\n'));
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
        await putObject(file.key, bytes);
        const fingerprint = await fingerprintOf(lines.map(keyOfLine), before);
        const entry = {
          ...file,
          rows: lines.length,
          fingerprint,
          bytes: bytes.length,
          crc32: crc32Of(bytes),
        };
        await putManifest({ ...before, fingerprint, rows: entry.rows, bytes: entry.bytes, files: [entry] });
      },
    };
  };

  let changeable: { readonly exported: Exported; readonly objects: ReadonlyMap<string, Buffer> } | undefined;
  /** The three hours for a test that changes objects of the bucket alone. They are exported once, and as they were in each call. */
  const changeableHours = async (): Promise<Exported> => {
    if (changeable === undefined) {
      const exported = await exportHours();
      const objects = new Map<string, Buffer>();
      for (const key of await keysBelow(exported.batchExportId)) objects.set(key, await getObject(key));
      changeable = { exported, objects };
      return exported;
    }
    const { exported, objects } = changeable;
    for (const key of await keysBelow(exported.batchExportId)) if (!objects.has(key)) await deleteObject(key);
    for (const [key, bytes] of objects) await putObject(key, bytes);
    return exported;
  };
  return {
    ...harness,
    fingerprintOf,
    exportHours,
    changeableHours,
    verify,
    getObject,
    putObject,
    deleteObject,
    keysBelow,
  };
}

export type VerifyHarness = Awaited<ReturnType<typeof createVerifyHarness>>;

/** The key of a line; invented if it has none. */
export function keyOfLine(line: string): SortKey {
  const [, inserted_at = hourAt(0).start] = /"_inserted_at":"([^"]*)"/.exec(line) ?? [];
  const [, id = randomUUID()] = /"(?:uuid|distinct_id)":"([^"]*)"/.exec(line) ?? [];
  return { inserted_at, id };
}

/** What a report says of intervals that were verified, without the reasons for those that were not. */
export const remarksOf = ({ notes }: VerificationReport): VerificationReport['notes'] =>
  notes.filter(({ reason }) => reason === null);

/** The CRC-32 in the form of manifests. */
export const crc32Of = (bytes: Buffer): string => crc32(bytes).toString(16).padStart(8, '0');

/** The key of the manifest of another interval in the same folder. */
function keyOf(manifestKey: string, { data_interval_start, data_interval_end }: Manifest): string {
  const compact = (time: string) => new Date(time).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const name = `${compact(data_interval_start)}-${compact(data_interval_end)}.json`;
  return [...manifestKey.split('/').slice(0, -1), name].join('/');
}
