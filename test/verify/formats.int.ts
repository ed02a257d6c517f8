import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { backfillDecider, type BackfillSpec } from '../../src/domain/backfill.ts';
import type { FindingKind, VerificationReport } from '../../src/verify/report.ts';
import { startExpiringProxy } from '../destination/permission_proxy.ts';
import { casesOf } from '../setup/effort.ts';
import {
  crc32Of,
  createVerifyHarness,
  type Exported,
  hours,
  teamId,
  type VerifyHarness,
} from './verify_harness.ts';

describe('files of another format', () => {
  // These files are written by other programs than exportd, from PostgreSQL's values.

  const names = [
    'uuid',
    'timestamp',
    '_inserted_at',
    'created_at',
    'event',
    'properties',
    'distinct_id',
    'elements_chain',
    'person_properties',
    'person_id',
  ];
  type Row = Record<string, string | null>;

  let harness: VerifyHarness;
  let rows: Row[];
  beforeAll(async () => {
    harness = await createVerifyHarness(400);
    const { pool } = harness.database;
    await pool.query(
      `update events set elements_chain = case when number % 2 = 0 then E'a, "b"\\r\\n\\U0001F600' else '' end,
       person_id = case when number % 3 = 0 then gen_random_uuid() end,
       person_properties = case when number % 2 = 0 then '{"n": 9007199254740993.10}'::jsonb end,
       timestamp = case when number % 4 = 0 then timestamptz '0001-01-01 00:00:00.000001Z' else timestamp end
     from (select ctid as row_location, row_number() over () as number from events) numbered where events.ctid = row_location`,
    );
    const time = (name: string) =>
      `to_char(${name} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as ${name}`;
    const found = await pool.query<Row>(
      `select uuid::text, ${time('timestamp')}, ${time('inserted_at')}, ${time('created_at')}, event, properties::text,
       distinct_id, elements_chain, person_properties::text, person_id::text
     from events where team_id = $1 and inserted_at >= $2 and inserted_at < $3 order by events.inserted_at, events.uuid`,
      [teamId, hours[0]?.start, hours[0]?.end],
    );
    rows = found.rows.map(({ inserted_at, ...row }) => ({ ...row, _inserted_at: inserted_at ?? null }));
  });
  afterAll(() => harness.close());

  const kindsOf = ({ findings }: VerificationReport): FindingKind[] => findings.map(({ kind }) => kind);

  const compressionNames: Readonly<Record<string, string>> = { gz: 'gzip', br: 'brotli', zst: 'zstd' };

  /** Exports the hours to files with an extension. */
  function exportFiles(extension: string): Promise<Exported> {
    const [, format, compression = ''] = extension.split('.');
    return harness.exportHours({
      config:
        format === 'parquet'
          ? { file_format: 'Parquet', compression: null }
          : { file_format: 'CSV', compression: compressionNames[compression] ?? null },
    });
  }

  /** Replaces the file of the first hour. */
  async function replaceFile(exported: Exported, bytes: Buffer, written: readonly Row[]): Promise<void> {
    const manifest = await exported.manifest(0);
    const keys = written.map(({ _inserted_at, uuid }) => ({
      inserted_at: _inserted_at ?? '',
      id: uuid ?? '',
    }));
    const fingerprint = await harness.fingerprintOf(keys, manifest);
    const summary = { rows: written.length, bytes: bytes.length, fingerprint };
    const files = manifest.files.map((file) => ({ ...file, ...summary, crc32: crc32Of(bytes) }));
    await harness.putObject(files[0]?.key ?? '', bytes);
    await exported.putManifest({ ...manifest, ...summary, files });
  }

  /** Verifies a correct file, then one with a missing and a mismatched row. */
  async function expectReadable(
    extension: string,
    write: (rows: readonly Row[]) => Promise<Buffer>,
  ): Promise<void> {
    const exported = await exportFiles(extension);
    await replaceFile(exported, await write(rows), rows);
    for (const deep of [false, true])
      expect(await exported.verify({ deep })).toMatchObject({ ok: true, findings: [] });

    const spoiled = rows.flatMap((row, index) => {
      if (index === 200) return [];
      if (index === 7) return [{ ...row, elements_chain: null }];
      if (index === 8) return [{ ...row, person_properties: '{"n": 9007199254740993.1}' }];
      return [row];
    });
    await replaceFile(exported, await write(spoiled), spoiled);
    const report = await exported.verify({ deep: true });
    expect(kindsOf(report)).toEqual(['missing', 'mismatched']);
    expect(report.findings[0]?.rows).toEqual([{ id: rows[200]?.uuid }]);
    expect(report.findings[1]?.rows).toEqual([
      { id: rows[7]?.uuid, column: 'elements_chain' },
      { id: rows[8]?.uuid, column: 'person_properties' },
    ]);
  }

  const csvField = (value: string | null | undefined): string =>
    value === null || value === undefined
      ? ''
      : value === '' || /[",\r\n]/.test(value)
        ? `"${value.replaceAll('"', '""')}"`
        : value;

  const csvOf = (given: readonly Row[]): Buffer =>
    Buffer.from(
      [names.join(','), ...given.map((row) => names.map((name) => csvField(row[name])).join(','))]
        .map((line) => `${line}\n`)
        .join(''),
    );

  describe('CSV', () => {
    const compressions: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
      ['.csv', (bytes: Buffer) => bytes],
      ['.csv.gz', (bytes: Buffer) => gzipSync(bytes)],
      [
        '.csv.br',
        (bytes: Buffer) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
      ],
      [
        '.csv.zst',
        // Several frames, as exportd writes it.
        (bytes: Buffer) =>
          Buffer.concat(
            [0, 1, 2].map((part) =>
              zstdCompressSync(bytes.subarray(part * 100_000, part === 2 ? undefined : (part + 1) * 100_000)),
            ),
          ),
      ],
    ];
    // Each way to find the end of a frame; the other compressions are single streams.
    const usual = compressions.filter(([extension]) => extension === '.csv' || extension === '.csv.zst');
    it.each(casesOf(usual, compressions))('is read back (%s)', (extension, compress) =>
      expectReadable(extension, (given) => Promise.resolve(compress(csvOf(given)))),
    );

    it('that cannot be parsed is reported without values', async () => {
      const exported = await exportFiles('.csv');
      const bytes = csvOf(rows);
      bytes.write('secret"secret', 100_000);
      await replaceFile(exported, bytes, rows);
      const report = await exported.verify();
      expect(kindsOf(report)).toEqual(['file_unreadable', 'missing']);
      expect(JSON.stringify(report)).not.toContain('secret');
    });
  });

  describe('Parquet', () => {
    const types: Record<string, string> = {
      uuid: 'UUID',
      timestamp: 'TIMESTAMPTZ',
      _inserted_at: 'TIMESTAMPTZ',
      created_at: 'TIMESTAMPTZ',
      properties: 'JSON',
      person_properties: 'JSON',
      person_id: 'UUID',
    };

    async function parquetOf(given: readonly Row[], codec: string): Promise<Buffer> {
      const folder = await mkdtemp(join(tmpdir(), 'exportd-test-'));
      const [input, output] = [join(folder, 'rows.json'), join(folder, 'rows.parquet')];
      await writeFile(input, given.map((row) => `${JSON.stringify(row)}\n`).join(''));
      const columns = names.map((name) => `${name}: 'VARCHAR'`).join(', ');
      const casts = names.map((name) => `"${name}"::${types[name] ?? 'VARCHAR'} as "${name}"`).join(', ');
      const instance = await DuckDBInstance.create();
      const connection = await instance.connect();
      await connection.run('set preserve_insertion_order = true');
      await connection.run(
        `copy (select ${casts} from read_json('${input}', format = 'newline_delimited', columns = {${columns}}))
       to '${output}' (format parquet, codec '${codec}', row_group_size 150)`,
      );
      connection.closeSync();
      instance.closeSync();
      const bytes = await readFile(output);
      await rm(folder, { recursive: true });
      return bytes;
    }

    const codecs = ['zstd', 'lz4_raw', 'snappy', 'gzip', 'brotli', 'uncompressed'];
    it.each(casesOf(codecs.slice(0, 2), codecs))('is read back (%s)', (codec) =>
      expectReadable('.parquet', (given) => parquetOf(given, codec)),
    );

    it('that is damaged is reported', async () => {
      const exported = await exportFiles('.parquet');
      const bytes = await parquetOf(rows, 'zstd');
      bytes.fill(0x55, 1_000, 30_000);
      await replaceFile(exported, bytes, rows);
      expect(new Set(kindsOf(await exported.verify()))).toEqual(new Set(['file_unreadable', 'missing']));
      await replaceFile(exported, bytes.subarray(0, 50_000), rows);
      expect(new Set(kindsOf(await exported.verify()))).toEqual(new Set(['file_unreadable', 'missing']));
    });
  });
});

describe('intervals that are owed', () => {
  const eventsPerHour = 10;
  let harness: VerifyHarness;
  beforeAll(async () => {
    harness = await createVerifyHarness(eventsPerHour);
  });
  afterAll(() => harness.close());

  const kindsOf = ({ findings }: VerificationReport): FindingKind[] =>
    findings.map(({ kind }) => kind).sort();

  describe('a manifest that is missing leaves a gap', () => {
    it.each([
      ['the oldest', [0], hours[0]],
      ['one in the middle', [1], hours[1]],
      ['the newest', [2], hours[2]],
      ['the two newest', [1, 2], { start: hours[1]?.start, end: hours[2]?.end }],
      ['all of them', [0, 1, 2], { start: hours[0]?.start, end: hours[2]?.end }],
    ])('if it is %s', async (_, removed, gap) => {
      const exported = await harness.changeableHours();
      for (const hour of removed) await harness.deleteObject(exported.manifestKey(hour));
      const report = await exported.verify();
      expect(kindsOf(report)).toEqual(['gap']);
      expect(report.findings[0]).toMatchObject({ ...gap, count: removed.length * eventsPerHour });
      expect(report).toMatchObject({ ok: false, totals: { gaps: 1, manifests: 3 - removed.length } });
    });

    it('if no worker exported its interval', async () => {
      const exported = await harness.exportHours({ definition: { end_at: '2026-01-01T16:00:00.000Z' } });
      const report = await exported.verify();
      expect(report.findings).toMatchObject([
        { kind: 'gap', start: hours[2]?.end, end: '2026-01-01T16:00:00.000Z', count: 0 },
      ]);
      expect(report.ok).toBe(false);
    });
  });

  describe('a manifest that the journal does not know', () => {
    it('is reported, also when its rows are those of the source', async () => {
      const exported = await harness.exportHours();
      const [known, newest] = [await exported.manifest(1), await exported.manifest(2)];
      expect((await exported.verify()).ok).toBe(true);
      // As after the restore of a backup that was made before the run.
      const run_id = randomUUID();
      await exported.putManifest({ ...newest, run_id });
      for (const options of [{}, { fast: true }]) {
        const report = await exported.verify(options);
        expect(report.findings).toMatchObject([
          { kind: 'manifest_unknown', ...hours[2], count: 1, detail: expect.stringContaining(run_id) },
        ]);
        expect(report.intervals.map(({ findings }) => findings)).toEqual([0, 0, 1]);
      }
      expect((await exported.verify({ to: known.data_interval_end })).ok).toBe(true);
      // A run of the interval adopts it.
      await exported.exportAgain(2);
      expect((await exported.verify()).ok).toBe(true);
    });
  });

  describe('what is not exported for a reason is listed', () => {
    it('a pause, the bounds and a cancelled backfill', async () => {
      const exported = await harness.exportHours({
        definition: { start_at: hours[0]?.end ?? null, end_at: hours[1]?.end ?? null },
      });
      const backfill_id = randomUUID();
      const range = { start_at: '2026-01-01T04:00:00.000Z', end_at: '2026-01-01T07:00:00.000Z' };
      await exported.append({
        type: 'BackfillRequested',
        data: { backfill_id, ...range, allow_shrink: false },
      });
      const spec: BackfillSpec = {
        ...range,
        batch_export_id: exported.batchExportId,
        team_id: teamId,
        allow_shrink: false,
        plan: {
          kind: 'range',
          range: { start: range.start_at, end: range.end_at, intervals: 3 },
          revisions: [],
        },
      };
      await harness.journal.transaction(async (transaction) => {
        const stream = await transaction.lock(backfillDecider, backfill_id);
        const run = {
          run_id: randomUUID(),
          own: true,
          start: range.start_at,
          end: '2026-01-01T05:00:00.000Z',
        };
        await stream.append('started', [{ type: 'BackfillStarted', data: spec }]);
        await stream.append('run', [{ type: 'BackfillRunCreated', data: run }]);
        await stream.append('ended', [
          { type: 'BackfillRunEnded', data: { run_id: run.run_id, status: 'Failed' } },
        ]);
        await stream.append('cancelled', [
          { type: 'BackfillCancelled', data: { reason: 'No longer needed.' } },
        ]);
      });
      const report = await exported.verify({ to: '2026-01-01T15:00:00.000Z' });
      expect(report.findings).toMatchObject([
        { kind: 'gap', start: range.start_at, end: '2026-01-01T05:00:00.000Z', count: 0 },
      ]);
      expect(report.notes).toMatchObject([
        { reason: 'backfill cancelled', start: '2026-01-01T05:00:00.000Z', end: range.end_at, intervals: 2 },
        { reason: 'after end_at', start: hours[2]?.end, end: '2026-01-01T15:00:00.000Z', intervals: 2 },
      ]);
    });

    it('intervals that ended recently', async () => {
      const exported = await harness.exportHours({ definition: { end_at: null } });
      const { rows } = await harness.database.pool.query<{ from: string; hour: string }>(
        `select date_trunc('hour', now()) - interval '1 hour' as from, date_trunc('hour', now()) as hour`,
      );
      const report = await exported.verify({ from: rows[0]?.from });
      expect(report).toMatchObject({ ok: true, totals: { pending: 1 } });
      expect(report.notes).toMatchObject([{ reason: 'pending', start: rows[0]?.from, end: rows[0]?.hour }]);
    });

    it('what a deleted export would have exported', async () => {
      const exported = await harness.exportHours({ definition: { end_at: null } });
      await exported.append({ type: 'BatchExportDeleted', data: {} });
      const report = await exported.verify({ to: '2026-01-01T15:00:00.000Z' });
      expect(report.findings).toMatchObject([{ kind: 'gap', start: hours[2]?.end }]);
    });
  });

  describe('what the rules of the bucket deleted is expired', () => {
    /** Deletes the manifest of the first hour, and the file of the second. */
    const deleteObjects = async (exported: Exported): Promise<void> => {
      const [file] = (await exported.manifest(1)).files;
      await harness.deleteObject(exported.manifestKey(0));
      await harness.deleteObject(file?.key ?? '');
    };

    it.each([
      ['if its server said so when it was written', -1, true],
      ['not before that time', 1, false],
    ])('%s', async (_, days, isExpired) => {
      const expiresAt = new Date(Date.now() + days * 86_400_000);
      const proxy = await startExpiringProxy(harness.bucket.endpoint, expiresAt);
      const exported = await harness.exportHours({ config: { endpoint_url: proxy.endpoint } });
      await deleteObjects(exported);
      const report = await exported.verify();
      await proxy.close();
      expect(report.ok).toBe(isExpired);
      expect(kindsOf(report)).toEqual(isExpired ? [] : ['file_missing', 'gap', 'missing']);
      expect(report.totals).toMatchObject({ expired: isExpired ? 2 : 0, rows: eventsPerHour });
      expect(report.notes.filter(({ reason }) => reason === 'expired')).toHaveLength(isExpired ? 2 : 0);
    });

    it('after the retention of the export, for rules that were added later', async () => {
      const exported = await harness.exportHours();
      await deleteObjects(exported);
      await exported.append({
        type: 'BatchExportUpdated',
        data: { changes: { retention_days: 30 }, schedule_effective_from: null },
      });
      expect(kindsOf(await exported.verify())).toEqual(['file_missing', 'gap', 'missing']);
      // The journal is append-only, except for replication.
      await harness.database.pool.query(
        `set local session_replication_role = replica;
       update exportd.journal_events set recorded_at = recorded_at - interval '31 days'
       where stream_id in (select id from exportd.batch_export_runs where batch_export_id = '${exported.batchExportId}')`,
      );
      expect(await exported.verify()).toMatchObject({ ok: true, totals: { expired: 2 } });
    });
  });
});
