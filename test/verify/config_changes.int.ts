import { DeleteBucketCommand, DeleteObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { collapseHistory } from '../../src/decisions/collapse_history.ts';
import { parseS3Config } from '../../src/destination/config.ts';
import { relationsOf } from '../../src/source/relations.ts';
import { connectToSource, type SourceConnections } from '../../src/source/source_connection.ts';
import { checkInterval } from '../../src/verify/check_interval.ts';
import { createExpirations } from '../../src/verify/gaps.ts';
import { createVersionFinder, readDefinition } from '../../src/verify/locations.ts';
import type { FindingKind, VerificationReport } from '../../src/verify/report.ts';
import { createSourceRows } from '../../src/verify/source_rows.ts';
import { verifyRun } from '../bench/exports/exports_bench.ts';
import { exportd } from '../cli/command_line.ts';
import { isProblem, readLog } from '../decisions/read_log.ts';
import { readRuns } from '../decisions/read_runs.ts';
import { configOf } from '../destination/bucket_requests.ts';
import { createBucket } from '../setup/bucket.ts';
import {
  createVerifyHarness,
  type Exported,
  hours,
  remarksOf,
  teamId,
  type VerifyHarness,
} from './verify_harness.ts';
import { storedRows } from '../../src/temporal/capabilities.ts';
import { type BucketReader, openBucketReader } from '../../src/destination/bucket_reader.ts';

describe('config changes', () => {
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

  const kindsOf = ({ findings }: VerificationReport): FindingKind[] =>
    findings.map(({ kind }) => kind).sort();

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
        '1 row was rejected; its line in the file of rejected rows says why.',
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

  describe('an export whose history was collapsed', () => {
    const pool = () => harness.database.pool;
    const collapse = () =>
      collapseHistory(
        harness.journal,
        { historyMs: 0, deletedExportMs: undefined, idempotencyKeyMs: 0, newestRuns: 0 },
        storedRows,
        () => false,
      );

    it('is verified as before, and exported again above its manifests', async () => {
      const exported = await harness.exportHours();
      const before = await exported.verify({ deep: true });
      expect(before).toMatchObject({ ok: true, findings: [] });
      await collapse();
      expect(await readRuns(pool(), { batch_export_id: exported.batchExportId })).toEqual([]);
      expect(await exported.verify({ deep: true })).toMatchObject({
        ok: true,
        findings: [],
        totals: before.totals,
      });
      const first = await exported.manifest(0);
      await exported.exportAgain(0);
      const second = await exported.manifest(0);
      expect(second.generation).toBeGreaterThan(first.generation);
      expect(second).toMatchObject({ rows: first.rows, kept: [], earlier: [] });
      const { rows: obsolete } = await pool().query(
        `select key from exportd.destination_objects where batch_export_id = $1 and obsolete_at is not null`,
        [exported.batchExportId],
      );
      expect(obsolete).toEqual(first.files.map(({ key }) => ({ key })));
      expect(await readLog(pool(), { batch_export_id: exported.batchExportId }, isProblem)).toEqual([]);
      expect(await exported.verify({ deep: true })).toMatchObject({ ok: true, totals: before.totals });
    });

    it('loses no row that the source has lost since: the run is held', async () => {
      const uuid = await insertEvent({});
      const exported = await harness.exportHours();
      await collapse();
      await pool().query('delete from events where uuid = $1', [uuid]);
      const { generation } = await exported.manifest(0);
      await expect(exported.exportAgain(0)).rejects.toThrow('no longer has 1 of the');
      expect(await exported.manifest(0)).toMatchObject({ generation });
    });

    it('still owes the manifests that were exported', async () => {
      const exported = await harness.exportHours();
      await collapse();
      await harness.deleteObject(exported.manifestKey(1));
      expect(kindsOf(await exported.verify())).toEqual(['gap']);
      await pool().query(
        `update exportd.intervals set expires_at = clock_timestamp() where batch_export_id = $1`,
        [exported.batchExportId],
      );
      expect(await exported.verify()).toMatchObject({ ok: true, findings: [] });
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
        kept: new Map(),
        countManifest: () => undefined,
        signal,
      };
      const location = { reader, manifestFolders: [], versions: [], current: true };
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
});

describe('exportd verify', () => {
  let harness: VerifyHarness;
  let exported: Exported;
  let environment: Record<string, string>;
  beforeAll(async () => {
    harness = await createVerifyHarness(20);
    exported = await harness.exportHours();
    environment = {
      DATABASE_URL: harness.database.url,
      EXPORTD_ENCRYPTION_KEYS: harness.encryptionKeys,
      EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    };
  });
  afterAll(() => harness.close());

  const verify = (...args: readonly string[]) =>
    exportd(environment, 'verify', exported.batchExportId, ...args);

  it('prints every interval, findings and a summary, and sets the exit code', async () => {
    const clean = await verify('--deep');
    expect(clean).toMatchObject({ code: 0, stderr: '' });
    const lines = clean.stdout.trimEnd().split('\n');
    expect(lines[1]).toMatch(/^2026-01-01T10:00:00Z +2026-01-01T11:00:00Z +1 +1 +20 +20 +0 +0$/);
    expect(lines.at(-1)).toBe('3 manifests, 3 files, 60 rows: no findings.');

    await exported.rewrite(1, (rows) => rows.slice(1));
    const faulty = await verify();
    expect(faulty).toMatchObject({ code: 1, stderr: '' });
    expect(faulty.stdout).toContain('MISSING  2026-01-01T11:00:00Z to 2026-01-01T12:00:00Z');
    expect(faulty.stdout.trimEnd().split('\n').at(-1)).toBe(
      '3 manifests, 3 files, 59 rows: 1 finding, 1 row missing.',
    );
    const fast = await verify('--fast');
    expect([fast.code, fast.stdout]).toEqual([1, expect.stringContaining('FINGERPRINT')]);

    // Benchmarks verify what they export.
    const benchmarked = (start: string, end: string) =>
      verifyRun(harness.database.pool, environment, exported.batchExportId, { start, end }, 'deep');
    await expect(benchmarked('2026-01-01T10:00:00Z', '2026-01-01T11:00:00Z')).resolves.toBeUndefined();
    await expect(benchmarked('2026-01-01T11:00:00Z', '2026-01-01T12:00:00Z')).rejects.toThrow(
      /^The export does not match its source\. .*missing/i,
    );

    const document = await verify('--json', '--from', '2026-01-01T12:00:00Z');
    expect(document).toMatchObject({ code: 0, stderr: '' });
    expect((JSON.parse(document.stdout) as VerificationReport).totals).toMatchObject({
      manifests: 1,
      rows: 20,
    });
  });

  it('exits with 1 when all manifests are missing, and says so', async () => {
    const empty = await harness.exportHours();
    for (const hour of [0, 1, 2]) await harness.deleteObject(empty.manifestKey(hour));
    const { code, stdout } = await exportd(environment, 'verify', empty.batchExportId);
    expect(code).toBe(1);
    expect(stdout).toContain('GAP  2026-01-01T10:00:00Z to 2026-01-01T13:00:00Z');
    expect(stdout).toContain('No manifest covers these 3 intervals. The source has 60 rows in them.');
    expect(stdout.trimEnd().split('\n').at(-1)).toBe('0 manifests, 0 files, 0 rows: 1 finding, 1 gap.');
  });

  it.each([
    ['of a missing export', ['--json'], { id: 'nothing' }, /Batch export nothing does not exist\./],
    ['of an invalid time', ['--from', 'yesterday'], {}, /"yesterday" is not a valid time\./],
    [
      'without a source',
      [],
      { SOURCE_DATABASE_URL: 'postgres://127.0.0.1:1/x' },
      /The source does not respond/,
    ],
    ['with an unknown option', ['--depp'], {}, /unknown option/],
    [
      'of a range that ends before it starts',
      ['--from', '2026-01-02T00:00:00Z', '--to', '2026-01-01T00:00:00Z'],
      {},
      /The range is empty: --from must be before --to\./,
    ],
    ['with both depths', ['--deep', '--fast'], {}, /either deep or fast/],
    [
      'of an endpoint that is not allowed',
      [],
      { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'false' },
      /endpoint_url is not allowed/,
    ],
  ])(
    'exits with 2 when it cannot verify: %s',
    async (_, args, { id = exported.batchExportId, ...more }: Record<string, string>, words) => {
      const { code, stdout, stderr } = await exportd({ ...environment, ...more }, 'verify', id, ...args);
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toMatch(words);
    },
  );
});

describe('dialect query', () => {
  const eventsPerHour = 60;
  let harness: VerifyHarness;
  beforeAll(async () => {
    harness = await createVerifyHarness(eventsPerHour);
    await harness.database.pool.query(
      `update events set properties = jsonb_build_object('n', number, 'text', repeat('ä', number::int)),
       timestamp = case when number % 7 = 0 then timestamptz '0001-01-01Z' else timestamp end
     from (select ctid as row_location, row_number() over (order by inserted_at, uuid) as number from events) numbered
     where events.ctid = row_location`,
    );
  });
  afterAll(() => harness.close());

  const kindsOf = ({ findings }: VerificationReport) => findings.map(({ kind, count }) => [kind, count]);

  /** Columns of every type; some numbers are infinite or NaN. */
  const columns = `upper(event) as name, properties, properties.text as text, toInt(properties.n) as n,
  toInt(properties.n) / 3 as third, 1 / (toInt(properties.n) % 5) as quotient, toDate(timestamp) as day, timestamp,
  toInt(properties.n) > 50 as late, [toInt(properties.n)] as list, toDecimal(properties.n, 3) as exact, person_id`;

  const formats = [
    { file_format: 'JSONLines', compression: 'gzip' },
    { file_format: 'CSV', compression: null },
    { file_format: 'Parquet', compression: 'zstd' },
  ];

  describe.each(formats)('an export of a query to $file_format', (config) => {
    it('is compared by keys if its files contain them, else by values in row order', async () => {
      for (const query of [
        `select uuid, _inserted_at, ${columns} from events where toInt(properties.n) % 4 != 0`,
        `select ${columns} from events where toInt(properties.n) % 4 != 0`,
      ]) {
        const exported = await harness.exportHours({ config, query });
        const deep = await exported.verify({ deep: true });
        expect(deep).toMatchObject({ ok: true, findings: [] });
        expect(remarksOf(deep)).toEqual([]);
        expect(await exported.verify()).toMatchObject({
          ok: true,
          totals: { rows: (eventsPerHour * hours.length * 3) / 4 },
        });
      }
    });
  });

  describe('files of a query without keys', () => {
    it('differ from the source when rows are missing, unexpected or changed', async () => {
      const exported = await harness.exportHours({ query: `select properties.n as n, event from events` });
      await exported.rewrite(1, (lines) => [
        ...lines.slice(0, 10),
        ...lines.slice(12, 30),
        (lines[30] ?? '').replace(/"n":"(\d+)"/, '"n":"$1000"'),
        ...lines.slice(31),
      ]);
      const report = await exported.verify({ deep: true });
      expect(kindsOf(report)).toEqual([
        ['missing', 3],
        ['unexpected', 1],
      ]);
      const { rows } = await harness.database.pool.query<{ uuid: string }>(
        `select uuid from events where team_id = $1 and inserted_at >= $2 order by inserted_at, uuid offset 10 limit 2`,
        [teamId, hours[1]?.start],
      );
      expect(report.findings[0]?.rows.slice(0, 2).map(({ id }) => id)).toEqual(rows.map(({ uuid }) => uuid));
      expect(report.findings[1]?.rows).toEqual([{ id: 'row 29 of its files' }]);
      expect(kindsOf(await exported.verify())).toEqual([['missing', 2]]);
    });
  });

  describe('an export of a query over persons', () => {
    it('is compared if its files contain keys, else counted', async () => {
      await harness.database.pool.query(
        `insert into persons (team_id, id, properties, updated_at)
         select $1, md5(n::text)::uuid, jsonb_build_object('n', n), timestamptz '2026-01-01 10:30Z' from generate_series(1, 5) n`,
        [teamId],
      );
      await harness.database.pool.query(
        `insert into person_distinct_ids (team_id, distinct_id, person_id, updated_at)
         select $1, 'd' || n, md5(n::text)::uuid, timestamptz '2026-01-01 10:20Z' from generate_series(1, 5) n`,
        [teamId],
      );
      const keyed = await harness.exportHours({
        model: 'persons',
        query: `select _inserted_at, distinct_id, properties.n as n from persons where properties.n != '2'`,
      });
      const compared = await keyed.verify({ deep: true });
      expect(compared).toMatchObject({ ok: true, findings: [], totals: { rows: 4 } });
      expect(remarksOf(compared)).toEqual([]);
      const plain = await harness.exportHours({
        model: 'persons',
        query: `select properties.n as n from persons`,
      });
      const report = await plain.verify({ deep: true });
      expect(report).toMatchObject({ ok: true, totals: { rows: 5 } });
      expect(remarksOf(report)[0]?.detail).toMatch(/not compared with the source/);
    });
  });

  describe('an export of a query that selects events by their person', () => {
    it('is compared with the events whose person is selected', async () => {
      await harness.database.pool.query(
        `insert into persons (team_id, id, properties, created_at, updated_at, version)
       select team_id, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid,
         jsonb_build_object('plan', case team_id when $1 then case n % 2 when 0 then 'pro' else 'free' end else 'pro' end),
         '2025-12-31Z', '2025-12-31Z', 1 from generate_series(1, 4) n, (values ($1), ($1 + 1)) teams (team_id)`,
        [teamId],
      );
      await harness.database.pool.query(
        `update events set person_id =
         ('00000000-0000-4000-8000-' || lpad(((properties->>'n')::int % 5)::text, 12, '0'))::uuid`,
      );
      const exported = await harness.exportHours({
        query: `select uuid, _inserted_at, event from events where person.properties.plan = 'pro'`,
      });
      // Of five persons, the one without a row and two of four are not selected.
      const rows = (eventsPerHour * hours.length * 2) / 5;
      for (const options of [{}, { fast: true }])
        expect(await exported.verify(options)).toMatchObject({ findings: [], ok: true, totals: { rows } });
    });
  });
});
