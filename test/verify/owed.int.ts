import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { backfillDecider, type BackfillSpec } from '../../src/domain/backfill.ts';
import type { FindingKind, VerificationReport } from '../../src/verify/report.ts';
import { startExpiringProxy } from '../destination/permission_proxy.ts';
import { createVerifyHarness, hours, teamId, type Exported, type VerifyHarness } from './verify_harness.ts';

const eventsPerHour = 10;
let harness: VerifyHarness;
beforeAll(async () => {
  harness = await createVerifyHarness(eventsPerHour);
});
afterAll(() => harness.close());

const kindsOf = ({ findings }: VerificationReport): FindingKind[] => findings.map(({ kind }) => kind).sort();

describe('a manifest that is missing leaves a gap', () => {
  it.each([
    ['the oldest', [0], hours[0]],
    ['one in the middle', [1], hours[1]],
    ['the newest', [2], hours[2]],
    ['the two newest', [1, 2], { start: hours[1]?.start, end: hours[2]?.end }],
    ['all of them', [0, 1, 2], { start: hours[0]?.start, end: hours[2]?.end }],
  ])('%s', async (_, removed, gap) => {
    const exported = await harness.exportHours();
    for (const hour of removed) await harness.deleteObject(exported.manifestKey(hour));
    const report = await exported.verify();
    expect(kindsOf(report)).toEqual(['gap']);
    expect(report.findings[0]).toMatchObject({ ...gap, count: removed.length * eventsPerHour });
    expect(report).toMatchObject({ ok: false, totals: { gaps: 1, manifests: 3 - removed.length } });
  });

  it('of intervals that no worker exported', async () => {
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
      first_start: range.start_at,
      last_end: range.end_at,
      total_runs: 3,
      revisions: [],
      retry_of_run_id: null,
      allow_shrink: false,
    };
    await harness.journal.transaction(async (transaction) => {
      const stream = await transaction.lock(backfillDecider, backfill_id);
      const run = { run_id: randomUUID(), own: true, start: range.start_at, end: '2026-01-01T05:00:00.000Z' };
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
