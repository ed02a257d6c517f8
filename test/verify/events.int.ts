import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { FindingKind, VerificationReport } from '../../src/verify/report.ts';
import { createReruns } from '../export/rerun.ts';
import { casesOf } from '../setup/effort.ts';
import {
  createVerifyHarness,
  crc32Of,
  hours,
  keyOfLine,
  remarksOf,
  type Exported,
  type VerifyHarness,
} from './verify_harness.ts';

const eventsPerHour = 100;
let harness: VerifyHarness;
beforeAll(async () => {
  harness = await createVerifyHarness(eventsPerHour);
});
afterAll(() => harness.close());

const kindsOf = ({ findings }: VerificationReport): FindingKind[] => findings.map(({ kind }) => kind).sort();

const uuidOf = (line: string | undefined): string => (JSON.parse(line ?? '') as { uuid: string }).uuid;

/** The lines of an hour's only file. */
async function linesOf(exported: Exported, hour: number): Promise<string[]> {
  const { files } = await exported.manifest(hour);
  return (await harness.getObject(files[0]?.key ?? '')).toString().trimEnd().split('\n');
}

/** The manifest of an hour for another interval. */
const coveringInterval = async (exported: Exported, hour: number, start: string, end: string) => ({
  ...(await exported.manifest(hour)),
  data_interval_start: start,
  data_interval_end: end,
});

describe('a correct bucket', () => {
  it.each([null, 'gzip'])('has no findings (%s)', async (compression) => {
    const exported = await harness.exportHours({ config: { compression } });
    for (const deep of [false, true]) {
      const report = await exported.verify({ deep });
      expect(report).toMatchObject({ ok: true, deep, findings: [] });
      expect(remarksOf(report)).toEqual([]);
      expect(report.totals).toMatchObject({ manifests: 3, files: 3, rows: 3 * eventsPerHour, gaps: 0 });
      expect(report.intervals.map(({ source_rows }) => source_rows)).toEqual([100, 100, 100]);
    }
  });

  it('has only the rows that the source has lost as findings after late rows were added to the files', async () => {
    const [hour = { start: '', end: '' }] = hours;
    const insert = (event: string, count: number) =>
      harness.database.pool.query<{ uuid: string }>(
        `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
         select 1, gen_random_uuid(), $3, 'person', '{}', at, at from generate_series(1, $2) n
         cross join lateral (select $1::timestamptz + n * interval '7 minutes' as at) moment returning uuid`,
        [hour.start, count, event],
      );
    const remove = (event: string) =>
      harness.database.pool.query('delete from events where event = $1', [event]);
    const lost = await insert('lost', 1);
    const exported = await harness.exportHours();
    await remove('lost');
    await insert('late', 4);
    const { run_id } = await harness.createRun({ batchExportId: exported.batchExportId, of: hour });
    await harness.attempt().checkReplacement({ run_id });
    await harness.attempt().exportInterval({ run_id });
    await harness.attempt().publishManifest({ run_id });
    expect((await exported.manifest(0)).files).toHaveLength(2);
    for (const deep of [false, true]) {
      const report = await exported.verify({ deep });
      expect(report.findings).toMatchObject([{ kind: 'unexpected', rows: [{ id: lost.rows[0]?.uuid }] }]);
      expect(report.totals).toMatchObject({ files: 4, rows: 3 * eventsPerHour + 5 });
    }
    await remove('late');
  });

  it('has no findings after intervals were exported again, even with another prefix', async () => {
    const exported = await harness.exportHours();
    await exported.exportAgain(0);
    await exported.exportAgain(1, { prefix: `${exported.batchExportId}-moved/{hour}` });
    const report = await exported.verify({ deep: true });
    expect(report).toMatchObject({ ok: true, findings: [] });
    expect(report.intervals.map(({ generation }) => generation)).toEqual([2, 2, 1]);
    expect(remarksOf(report)).toEqual([
      {
        ...hours[1],
        reason: null,
        intervals: 0,
        detail: expect.stringMatching(/has generation 1. It is superseded by generation 2/),
      },
    ]);
  });
});

describe('rows', () => {
  it('that are missing are named', async () => {
    const exported = await harness.changeableHours();
    const lost = (await linesOf(exported, 1)).slice(40, 65).map(uuidOf);
    await exported.rewrite(1, (lines) => [...lines.slice(0, 40), ...lines.slice(65)]);
    const report = await exported.verify();
    expect(kindsOf(report)).toEqual(['missing']);
    expect(report.findings[0]).toMatchObject({
      ...hours[1],
      count: 25,
      rows: lost.slice(0, 20).map((id) => ({ id })),
    });
    expect(report).toMatchObject({ ok: false, totals: { missing: 25, duplicate: 0 } });
  });

  it('that are twice in a manifest are named', async () => {
    const exported = await harness.changeableHours();
    const [first = ''] = await linesOf(exported, 0);
    await exported.rewrite(0, (lines) => [first, ...lines]);
    const report = await exported.verify();
    expect(kindsOf(report)).toEqual(['duplicate']);
    expect(report.findings[0]).toMatchObject({ ...hours[0], count: 1, rows: [{ id: uuidOf(first) }] });
  });

  it('that are in two manifests are named', async () => {
    const exported = await harness.changeableHours();
    const foreign = (await linesOf(exported, 0)).at(-1) ?? '';
    await exported.rewrite(1, (lines) => [foreign, ...lines]);
    const report = await exported.verify();
    // The row is before the first key of the file in the manifest.
    expect(kindsOf(report)).toEqual(['duplicate', 'file_fingerprint', 'file_order']);
    expect(report.findings.find(({ kind }) => kind === 'duplicate')).toMatchObject({
      ...hours[1],
      rows: [{ id: uuidOf(foreign) }],
      detail: expect.stringContaining(exported.manifestKey(0)),
    });
  });

  it('in the manifest of another interval are missing in their own', async () => {
    const exported = await harness.changeableHours();
    const moved = (await linesOf(exported, 0)).at(-1) ?? '';
    await exported.rewrite(0, (lines) => lines.slice(0, -1));
    await exported.rewrite(1, (lines) => [moved, ...lines]);
    const report = await exported.verify();
    expect(kindsOf(report)).toEqual(['file_fingerprint', 'file_order', 'missing', 'unexpected']);
    for (const kind of ['missing', 'unexpected'])
      expect(report.findings.find((finding) => finding.kind === kind)?.rows).toEqual([{ id: uuidOf(moved) }]);
  });

  it('that the source does not have are named', async () => {
    const exported = await harness.changeableHours();
    const uuid = '00000000-0000-4000-8000-000000000000';
    await exported.rewrite(2, (lines) =>
      lines.flatMap((line, index) => {
        const invented = JSON.stringify({ ...(JSON.parse(line) as object), uuid });
        return index === 50 ? [invented, line] : [line];
      }),
    );
    const report = await exported.verify();
    expect(kindsOf(report)).toEqual(['unexpected']);
    expect(report.findings[0]).toMatchObject({ count: 1, rows: [{ id: uuid }] });
  });

  it('with mismatched values are named with their columns, without the values', async () => {
    const exported = await harness.changeableHours();
    await exported.rewrite(0, (lines) =>
      lines.map((line, index) =>
        index === 7
          ? line.replace('"event":"event"', '"event":"planted"').replace('"noise"', '"noize"')
          : line,
      ),
    );
    const id = uuidOf((await linesOf(exported, 0))[7]);
    expect(await exported.verify()).toMatchObject({ ok: true });
    const report = await exported.verify({ deep: true });
    expect(kindsOf(report)).toEqual(['mismatched']);
    expect(report.findings[0]).toMatchObject({
      count: 1,
      rows: [
        { id, column: 'event' },
        { id, column: 'properties' },
      ],
    });
    expect(JSON.stringify(report)).not.toMatch(/planted|noize/);
  });

  it('that are not sorted are reported and still compared', async () => {
    const exported = await harness.changeableHours();
    const [first = ''] = await linesOf(exported, 0);
    await exported.rewrite(0, (lines) => [...lines.slice(2), first, first]);
    const report = await exported.verify({ deep: true });
    expect(kindsOf(report)).toEqual(['duplicate', 'file_order', 'missing']);
    expect(report.totals).toMatchObject({ missing: 1, duplicate: 1 });
  });
});

describe('files', () => {
  it('that changed are detected by their checksum', async () => {
    const exported = await harness.changeableHours();
    const { files } = await exported.manifest(0);
    const key = files[0]?.key ?? '';
    const bytes = await harness.getObject(key);
    await harness.putObject(key, Buffer.from(bytes.toString().replace('"event":"event"', '"event":"evenT"')));
    const report = await exported.verify();
    expect(kindsOf(report)).toEqual(['file_changed']);
    expect(report.findings[0]?.object).toBe(`s3://${harness.bucket.bucket}/${key}`);
  });

  it('that are missing make their rows missing', async () => {
    const exported = await harness.changeableHours();
    await harness.deleteObject((await exported.manifest(1)).files[0]?.key ?? '');
    const report = await exported.verify();
    expect(kindsOf(report)).toEqual(['file_missing', 'missing']);
    expect(report.totals.missing).toBe(eventsPerHour);
  });

  it.each([null, 'gzip'])('that are truncated make their rows missing (%s)', async (compression) => {
    const exported = await harness.exportHours({ config: { compression } });
    const key = (await exported.manifest(1)).files[0]?.key ?? '';
    const bytes = await harness.getObject(key);
    await harness.putObject(key, bytes.subarray(0, bytes.length / 2 - 5));
    const report = await exported.verify();
    // A changed object is not read.
    expect(kindsOf(report)).toEqual(['file_changed', 'missing']);
    expect(report.totals.rows + report.totals.missing).toBe(3 * eventsPerHour);
  });

  it('whose row count differs from the manifest, or that are referenced twice, are reported', async () => {
    const exported = await harness.changeableHours();
    const manifest = await exported.manifest(1);
    const [file] = manifest.files;
    const files = file ? [{ ...file, rows: 7 }, file] : [];
    await exported.putManifest({ ...manifest, rows: 8, files });
    const report = await exported.verify();
    expect(new Set(kindsOf(report))).toEqual(
      new Set(['file_rows', 'file_order', 'file_shared', 'duplicate', 'manifest_inconsistent']),
    );
  });
});

describe('manifests', () => {
  it('that are missing leave a gap', async () => {
    const exported = await harness.changeableHours();
    await harness.deleteObject(exported.manifestKey(1));
    const report = await exported.verify();
    expect(kindsOf(report)).toEqual(['gap']);
    expect(report.findings[0]).toMatchObject({ ...hours[1], count: eventsPerHour });
  });

  it('leave gaps within the requested range only', async () => {
    const exported = await harness.changeableHours();
    await harness.deleteObject(exported.manifestKey(0));
    const asked = { from: '2026-01-01T09:30:00Z', to: '2026-01-01T11:30:00Z' };
    const report = await exported.verify(asked);
    expect(report.intervals).toMatchObject([hours[1]]);
    expect(report.findings).toMatchObject([{ kind: 'gap', start: hours[0]?.start, end: hours[0]?.end }]);
    expect(await exported.verify({ from: hours[1]?.start })).toMatchObject({ ok: true });
  });

  it('that overlap are reported with the rows that are in both', async () => {
    const exported = await harness.changeableHours();
    const [key = ''] = (await exported.manifest(0)).files.map((file) => file.key);
    const half = (await linesOf(exported, 0)).slice(50);
    const bytes = Buffer.from(half.map((line) => `${line}\n`).join(''));
    const copy = key.replace('20260101T100000Z', '20260101T103000Z');
    await harness.putObject(copy, bytes);
    const manifest = await coveringInterval(
      exported,
      0,
      '2026-01-01T10:30:00.000Z',
      '2026-01-01T11:00:00.000Z',
    );
    const fingerprint = await harness.fingerprintOf(half.map(keyOfLine), manifest);
    const summary = { rows: 50, bytes: bytes.length, fingerprint };
    const files = manifest.files.map((file) => ({ ...file, ...summary, key: copy, crc32: crc32Of(bytes) }));
    await exported.putManifest({ ...manifest, ...summary, source_rows: 50, files });
    const report = await exported.verify();
    expect(kindsOf(report)).toEqual(['duplicate', 'overlap']);
    expect(report.totals.duplicate).toBe(50);
    expect(report.findings[0]).toMatchObject({ start: '2026-01-01T10:30:00.000Z', end: hours[0]?.end });
  });

  it('that are invalid or misnamed are reported', async () => {
    const exported = await harness.changeableHours();
    const folder = exported.manifestKey(0).split('/').slice(0, -1).join('/');
    await harness.putObject(exported.manifestKey(0), Buffer.from('{"version": 2}'));
    await harness.putObject(exported.manifestKey(1), await harness.getObject(exported.manifestKey(2)));
    await harness.putObject(`${folder}/notes.txt`, Buffer.from('?'));
    const report = await exported.verify({ from: hours[0]?.start });
    expect(kindsOf(report)).toEqual(['gap', 'manifest_misnamed', 'manifest_misnamed', 'manifest_unreadable']);
    expect(report.findings.find(({ kind }) => kind === 'gap')).toMatchObject({
      start: hours[0]?.start,
      end: hours[1]?.end,
    });
  });
});

describe('an interval with files of more generations than connections', () => {
  it.each(casesOf(['Parquet'], ['JSONLines', 'Parquet']))(
    'is verified, and compared when it is exported again: %s',
    async (file_format) => {
      const generations = 20;
      const separate = await createVerifyHarness(20);
      try {
        const config = { file_format, compression: null, prefix: 'generations' };
        const exported = await separate.exportHours({ config });
        const [hour = { start: '', end: '' }] = hours;
        const { batchExportId } = exported;
        const { run, insert, remove } = createReruns(separate, hour, { batchExportId });
        // A row is lost and others come, again and again: the keys of all files are compared with those of the source.
        await remove(0, 0);
        for (let row = 1; row < generations; row += 1) {
          await insert(row, row);
          expect(await run({ config })).toMatchObject({
            latest_error: null,
            check: { outcome: 'late_rows_added' },
          });
        }
        const { files } = await exported.manifest(0);
        expect(files).toHaveLength(generations);
        const { findings } = await exported.verify({ deep: true });
        expect(findings).toMatchObject([{ kind: 'unexpected', count: 1 }]);
      } finally {
        await separate.close();
      }
    },
  );
});
