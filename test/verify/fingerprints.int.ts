import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Manifest } from '../../src/destination/manifest.ts';
import { bucketsOf, encodeBuckets, type Fingerprint } from '../../src/domain/fingerprint.ts';
import { connectToSource } from '../../src/source/source_connection.ts';
import { relationsOf } from '../../src/source/relations.ts';
import { allRows } from '../../src/source/row_selection.ts';
import { sumsOf } from '../../src/verify/row_fingerprint.ts';
import { createSourceRows } from '../../src/verify/source_rows.ts';
import type { FindingKind, VerificationReport } from '../../src/verify/report.ts';
import { interval } from '../export/export_harness.ts';
import { createVerifyHarness, hours, remarksOf, teamId, type VerifyHarness } from './verify_harness.ts';

const eventsPerHour = 100;
let harness: VerifyHarness;
beforeAll(async () => {
  harness = await createVerifyHarness(eventsPerHour);
});
afterAll(() => harness.close());

const kindsOf = ({ findings }: VerificationReport): FindingKind[] => findings.map(({ kind }) => kind).sort();

/** The same number of rows in each bucket, and another sum in the first. */
const withOtherSum = (fingerprint: Fingerprint): Fingerprint => ({
  ...fingerprint,
  encoded_buckets: encodeBuckets(
    bucketsOf(fingerprint).map((bucket, at) =>
      at === 0 ? { ...bucket, sum: String(BigInt(bucket.sum) + 1n) } : bucket,
    ),
  ),
});

const withFileFingerprint = (manifest: Manifest, fingerprint: Fingerprint): Manifest => ({
  ...manifest,
  files: manifest.files.map((file) => ({ ...file, fingerprint })),
});

describe('a fast verification', () => {
  it('compares manifests with the source, and reads no file', async () => {
    const exported = await harness.exportHours();
    for (const hour of [0, 1, 2])
      for (const { key } of (await exported.manifest(hour)).files) await harness.deleteObject(key);
    const report = await exported.verify({ fast: true });
    expect(report).toMatchObject({ ok: true, fast: true, totals: { rows: 3 * eventsPerHour, files: 3 } });
    expect(report.intervals.map(({ source_rows }) => source_rows)).toEqual([100, 100, 100]);
    await harness.deleteObject(exported.manifestKey(2));
    expect(kindsOf(await exported.verify({ fast: true }))).toEqual(['gap']);
  });

  it('finds a row that replaced another in the source', async () => {
    const exported = await harness.exportHours();
    const { rows } = await harness.database.pool.query<{ uuid: string }>(
      `update events set uuid = gen_random_uuid() where ctid = (
         select ctid from events where inserted_at >= $1 order by inserted_at offset 50 limit 1) returning uuid`,
      [hours[1]?.start],
    );
    expect(rows).toHaveLength(1);
    const report = await exported.verify({ fast: true });
    expect(report.findings).toMatchObject([
      {
        kind: 'fingerprint',
        ...hours[1],
        count: 1,
        detail: expect.stringMatching(/in 1 buckets, \d of \d|instead of/),
      },
    ]);
    expect(kindsOf(await exported.verify())).toEqual(['missing', 'unexpected']);
  });

  it('counts only the rows of the project in the interval', async () => {
    const other = teamId + 1;
    await harness.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select team_id, gen_random_uuid(), 'event', 'person', '{}', moment, moment
       from (values ($1::int, $3::timestamptz), ($2, $4::timestamptz), ($2, $5::timestamptz - interval '1 microsecond'),
         ($2, $5::timestamptz)) as outside (team_id, moment)`,
      [other, teamId, hours[1]?.start, hours[2]?.end, hours[0]?.start],
    );
    const exported = await harness.exportHours();
    for (const options of [{ fast: true }, {}])
      expect(await exported.verify(options)).toMatchObject({
        ok: true,
        totals: { rows: 3 * eventsPerHour + 1 },
      });
  });

  it('reads an interval with too many rows for one statement in subintervals', async () => {
    await harness.database.pool.query(`
      create or replace function public.slowly(team int) returns boolean language plpgsql cost 1000000
        as 'begin perform pg_sleep(0.02); return true; end';
      create or replace view public.slow_events as select * from public.events where public.slowly(team_id)`);
    const exported = await harness.exportHours();
    const { settings, database } = harness;
    const relations = relationsOf({ ...settings, EXPORTD_EVENTS_RELATION: 'public.slow_events' });
    const connections = connectToSource({
      sourceUrl: database.url,
      applicationName: 'test',
      maxConnections: 1,
      statementTimeoutMs: 1_000,
    });
    try {
      const source = createSourceRows(connections, relations, new AbortController().signal);
      const manifest = await exported.manifest(1);
      const range = {
        model: 'events',
        team_id: teamId,
        interval: hours[1] ?? interval,
        selection: allRows,
      } as const;
      const undivided = connections.read({}, undefined, ({ connection }) =>
        connection.query(
          'select count(*) from public.slow_events where team_id = $1 and inserted_at >= $2 and inserted_at < $3',
          [teamId, range.interval.start, range.interval.end],
        ),
      );
      await expect(undivided).rejects.toThrow(/statement timeout/);
      expect(await source.count(range)).toBe(eventsPerHour);
      expect(await source.fingerprint(range, manifest.fingerprint)).toEqual(sumsOf(manifest.fingerprint));
    } finally {
      await connections.close();
    }
  });

  it('does not compare persons', async () => {
    const exported = await harness.exportHours({ model: 'persons' });
    const report = await exported.verify({ fast: true });
    expect(report.ok).toBe(true);
    expect(remarksOf(report)).toHaveLength(3);
  });

  it('cannot compare values', async () => {
    const exported = await harness.exportHours();
    await expect(exported.verify({ fast: true, deep: true })).rejects.toThrow(/either deep or fast/);
  });
});

describe('the fingerprint of the rows', () => {
  it('of a file is that of its rows', async () => {
    const exported = await harness.exportHours();
    const manifest = await exported.manifest(0);
    const fingerprint = withOtherSum(manifest.fingerprint);
    await exported.putManifest({ ...withFileFingerprint(manifest, fingerprint), fingerprint });
    expect(kindsOf(await exported.verify())).toEqual(['file_fingerprint']);
    expect(kindsOf(await exported.verify({ fast: true }))).toEqual(['fingerprint']);
  });

  it('of a manifest is the sum of its files', async () => {
    const exported = await harness.exportHours();
    const manifest = await exported.manifest(0);
    await exported.putManifest({ ...manifest, fingerprint: withOtherSum(manifest.fingerprint) });
    expect(kindsOf(await exported.verify())).toEqual(['manifest_inconsistent']);
  });
});
