import { DeleteBucketCommand, DeleteObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseS3Config } from '../../src/destination/config.ts';
import { openBucketReader, type BucketReader } from '../../src/destination/objects.ts';
import { relationsOf } from '../../src/source/relations.ts';
import { connectToSource, type SourceConnections } from '../../src/source/source_connection.ts';
import { checkInterval } from '../../src/verify/check_interval.ts';
import { createExpirations } from '../../src/verify/gaps.ts';
import { createVersionFinder, readDefinition } from '../../src/verify/locations.ts';
import type { FindingKind, VerificationReport } from '../../src/verify/report.ts';
import { createSourceRows } from '../../src/verify/source_rows.ts';
import { configOf } from '../destination/bucket_requests.ts';
import { createBucket } from '../setup/bucket.ts';
import { createVerifyHarness, hours, remarksOf, teamId, type VerifyHarness } from './verify_harness.ts';

const eventsPerHour = 50;
let harness: VerifyHarness;
let connections: SourceConnections;
beforeAll(async () => {
  harness = await createVerifyHarness(eventsPerHour);
  connections = connectToSource({
    sourceUrl: harness.database.url,
    applicationName: 'exportd',
    maxConnections: 2,
    statementTimeoutMs: 60_000,
  });
});
afterAll(async () => {
  await connections.close();
  await harness.close();
});

const kindsOf = ({ findings }: VerificationReport): FindingKind[] => findings.map(({ kind }) => kind).sort();

/** Inserts another event into the first hour. */
async function insertEvent(fields: {
  event?: string;
  properties?: object;
  timestamp?: string;
}): Promise<string> {
  const { event = 'event', properties = {}, timestamp = '2026-01-01' } = fields;
  const { rows } = await harness.database.pool.query<{ uuid: string }>(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     values ($1, gen_random_uuid(), $2, 'person', $3, $4, '2026-01-01 10:30Z') returning uuid`,
    [teamId, event, JSON.stringify(properties), timestamp],
  );
  return rows[0]?.uuid ?? '';
}

describe('rows that an export does not select', () => {
  it('are not missing: only rows that the config version of the manifest selects are', async () => {
    const page = await insertEvent({ event: 'page', properties: { plan: 'pro' } });
    const other = await insertEvent({ event: 'page', properties: { plan: 'free' } });
    const config = {
      include_events: ['page'],
      filters: [{ key: 'plan', type: 'event', operator: 'exact', value: 'pro' }],
    };
    const exported = await harness.exportHours({ config });
    expect(await exported.verify({ deep: true })).toMatchObject({ ok: true, totals: { rows: 1 } });
    await exported.exportAgain(0, { exclude_events: ['page'] });
    expect(await exported.verify()).toMatchObject({ ok: true, totals: { rows: eventsPerHour } });
    await exported.exportAgain(0, {});
    await exported.rewrite(0, (lines) =>
      lines.filter((line) => !line.includes(page) && !line.includes(other)),
    );
    const report = await exported.verify();
    expect(report.findings[0]?.rows).toEqual([page, other].sort().map((id) => ({ id })));
  });

  it('are not missing when they were rejected', async () => {
    const uuid = await insertEvent({ timestamp: 'infinity' });
    const exported = await harness.exportHours({ config: { on_bad_row: 'reject' } });
    const well = await exported.verify({ deep: true });
    expect(well).toMatchObject({ ok: true, totals: { rejected: 1 } });
    expect(remarksOf(well).map(({ detail }) => detail)).toEqual([
      '1 row was rejected, because the format cannot represent it.',
    ]);

    const manifest = await exported.manifest(0);
    const key = manifest.rejected_file?.key ?? '';
    const bytes = await harness.getObject(key);
    await harness.putObject(key, Buffer.from(bytes.toString().replace(uuid, 'nobody')));
    expect(kindsOf(await exported.verify())).toEqual(['file_changed', 'missing']);
    await harness.deleteObject(key);
    const report = await exported.verify();
    expect(kindsOf(report)).toEqual(['file_missing', 'missing']);
    expect(report.findings.find(({ kind }) => kind === 'missing')?.rows).toEqual([{ id: uuid }]);
    await harness.database.pool.query(`delete from events where timestamp = 'infinity'`);
  });
});

describe('an interval that is exported again while it is verified', () => {
  it('is checked again with the files of the new manifest', async () => {
    const exported = await harness.exportHours();
    const config = parseS3Config(configOf(harness.bucket), harness.settings);
    const bucket = openBucketReader(config, { settings: harness.settings, onError: () => undefined });
    const [file] = (await exported.manifest(0)).files;
    let opened = 0;
    const reader: BucketReader = {
      ...bucket,
      open: async (key, signal) => {
        if (key === file?.key && opened++ === 0) {
          await exported.exportAgain(0);
          await harness.deleteObject(key);
        }
        return bucket.open(key, signal);
      },
    };
    const signal = new AbortController().signal;
    const definition = await readDefinition(harness.database.pool, exported.batchExportId);
    const context = {
      source: createSourceRows(connections, relationsOf(harness.settings), signal),
      definition,
      findVersion: createVersionFinder(harness.database.pool, definition),
      expirations: createExpirations(harness.database.pool, definition, new Date()),
      deep: true,
      fast: false,
      signal,
    };
    const location = { reader, manifestFolders: [], current: true };
    const name = { location, key: exported.manifestKey(0), name: 'the manifest' };
    const { start, end } = hours[0] ?? { start: '', end: '' };
    const { check, findings } = await checkInterval(context, { start, end, names: [name] });
    expect(opened).toBe(1);
    expect([...findings, ...(check?.collector.findings() ?? [])]).toEqual([]);
    expect(check?.found.manifest.generation).toBe(2);
    bucket.close();
  });
});

describe('an export that has moved to another bucket', () => {
  it('is verified in both, or in the new one only if the old one was deleted', async () => {
    const { client, bucket: left } = await createBucket();
    const exported = await harness.exportHours({ config: { bucket_name: left } });
    await exported.exportAgain(2, {});
    const report = await exported.verify({ deep: true });
    expect(report).toMatchObject({ ok: true, totals: { manifests: 3 } });
    const buckets = report.intervals.map(({ manifest }) => manifest.split('/')[2]);
    expect(buckets).toEqual([left, left, harness.bucket.bucket]);

    await exported.putInForce(4);
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: left }));
    for (const { Key } of Contents) await client.send(new DeleteObjectCommand({ Bucket: left, Key }));
    await client.send(new DeleteBucketCommand({ Bucket: left }));
    client.destroy();
    const moved = await exported.verify({ from: hours[0]?.start });
    expect(moved.findings).toMatchObject([{ kind: 'gap', start: hours[0]?.start, end: hours[1]?.end }]);
    expect(remarksOf(moved).map(({ detail }) => detail)).toEqual([
      expect.stringMatching(/could not be listed: The bucket '.+' does not exist/),
    ]);
  });
});
