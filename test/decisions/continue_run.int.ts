import { describe, expect, it } from '@jest/globals';
import { advanceBackfill, continueRun } from '../../src/decisions/advance_backfill.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { attemptOf, GenerationSuperseded, RunEnded } from '../../src/domain/run.ts';
import type { ExistingRun } from '../../src/domain/run_state.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, quickPolicies } from './commander.ts';
import { fileOf, minuteBefore } from './simulated_runs.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';

const { pool } = useTestDatabase();
const journal = openJournal(pool);
const recorder = createRunRecorder(journal);

interface Row {
  readonly id: string;
  readonly status: string;
  readonly generation: number;
  readonly retry_number: number;
  readonly records_completed: number;
  readonly records_total_count: number | null;
  readonly backfill_id: string | null;
}
const runsOf = async (batchExportId: string): Promise<Row[]> =>
  (
    await pool.query<Row>(
      'select * from exportd.batch_export_runs where batch_export_id = $1 order by position',
      [batchExportId],
    )
  ).rows;

const policies = quickPolicies({ EXPORTD_RUN_RETRY_INITIAL: '0s' });
const partOf = (part_number: number, rows: number) => {
  const key = { inserted_at: '2026-11-01T10:00:00.000000Z', id: 'row' };
  const state = { crc32: 1, length: 2 };
  const part = {
    part_number,
    rows,
    fingerprint: fingerprintOf(rows),
    rejected: 0,
    bytes: 90,
    crc32: '00000000',
    first: key,
    last: key,
  };
  return { ...part, encoder_state: state };
};

const uploadOf = (upload_id: string) => ({
  file: 0,
  key: 'key',
  upload_id,
  upload_token: 'token',
  part_bytes: null,
  encoder: 'test/1',
});

/** Creates an export with a backfill of one interval, whose run has sent one part of three rows. */
async function createPartiallyExportedRun() {
  const commander = createCommander(journal, policies);
  await commander.create();
  const { command } = await commander.command('backfill', minuteBefore(1));
  const [row] = await runsOf(commander.batchExportId);
  const id = row?.id ?? '';
  await recorder.recordCount(id, {
    records_total_count: 7,
    fingerprint: fingerprintOf(7),
    settled: true,
    split_keys: [],
  });
  const createStartedRun = await recorder.startExport(id, 0);
  const run = await recorder.reserveGeneration(id, attemptOf(createStartedRun, 0));
  const attempt = attemptOf(run, 0);
  await recorder.recordUpload(id, attempt, uploadOf('upload'));
  await recorder.planPart(id, attempt, 'key', partOf(1, 3));
  return { ...commander, id, run, attempt, backfillId: String(command.outcome?.backfill_id) };
}

describe('a run that is continued', () => {
  it('ends and is continued in one step, which is idempotent', async () => {
    const { id, run, attempt, batchExportId, backfillId } = await createPartiallyExportedRun();
    const next = await continueRun(journal, id);
    expect(await continueRun(journal, id)).toEqual(next);
    expect(next.rows).toBe(7);
    expect(await runsOf(batchExportId)).toMatchObject([
      { id, status: 'ContinuedAsNew', records_completed: 3 },
      {
        id: next.run_id,
        status: 'Starting',
        generation: 1,
        records_completed: 3,
        records_total_count: 7,
        backfill_id: backfillId,
      },
    ]);
    expect(await recorder.readActive(next.run_id)).toMatchObject({
      spec: { ...run.spec, continues_run_id: id },
      ranges: [{ upload: { upload_id: 'upload', highest_part_number: 1 } }],
    });
    await expect(recorder.planPart(id, attempt, 'key', partOf(2, 1))).rejects.toThrow(RunEnded);
  });

  it('is replaced by the next run in the backfill that waits for it', async () => {
    const { id, backfillId } = await createPartiallyExportedRun();
    const { run_id } = await continueRun(journal, id);
    expect(await advanceBackfill(journal, policies, backfillId)).toMatchObject({
      ended: false,
      start_runs: [{ run_id }],
    });
    await endRun(journal, policies, run_id, { status: 'Failed', latest_error: 'Error: for good' });
    expect(await advanceBackfill(journal, policies, backfillId)).toMatchObject({ ended: true });
  });

  it('cannot be continued once it is cancelled', async () => {
    const { id, command, batchExportId } = await createPartiallyExportedRun();
    await command('cancelRun', { run_id: id });
    await expect(continueRun(journal, id)).rejects.toThrow(RunEnded);
    expect(await runsOf(batchExportId)).toHaveLength(1);
  });
});

describe('an attempt', () => {
  it('cannot record any step once another attempt has started', async () => {
    const { id, attempt } = await createPartiallyExportedRun();
    const file = fileOf('key');
    const other = attemptOf(await recorder.startExport(id, 0), 0);
    const rejected: (() => Promise<unknown>)[] = [
      () => recorder.reserveGeneration(id, attempt),
      () => recorder.recordUpload(id, attempt, uploadOf('late')),
      () => recorder.resumeUpload(id, attempt, 'key', [1]),
      () => recorder.planPart(id, attempt, 'key', partOf(2, 1)),
      () => recorder.requireAttempt(id, attempt),
      () => recorder.recordFile(id, attempt, file),
      () => recorder.finishRange(id, attempt),
    ];
    for (const step of rejected) await expect(step()).rejects.toThrow(GenerationSuperseded);
    await recorder.resumeUpload(id, other, 'key', []);
    await expect(recorder.planPart(id, other, 'key', partOf(1, 1))).rejects.toThrow(GenerationSuperseded);
    await recorder.planPart(id, other, 'key', partOf(1_000, 4));
    expect(await recorder.readActive(id)).toMatchObject({
      ranges: [{ upload: { parts: [{ part_number: 1_000 }], highest_part_number: 1_000 } }],
    });
  });
});

describe('an automatic retry', () => {
  const failing = { status: 'FailedRetryable', latest_error: 'Unavailable: S3 does not respond.' } as const;
  const retryOf = async (batchExportId: string): Promise<ExistingRun> => {
    const retry = (await runsOf(batchExportId)).find(({ retry_number }) => retry_number === 1);
    return recorder.readActive(retry?.id ?? '');
  };

  it('resumes the progress of the failed run, and counts again', async () => {
    const { id, step, batchExportId } = await createPartiallyExportedRun();
    await endRun(journal, policies, id, failing);
    await step();
    expect(await retryOf(batchExportId)).toMatchObject({
      status: 'Starting',
      generation: 1,
      encoder: 'test/1',
      ranges: [{ upload: { upload_id: 'upload', parts: [{ rows: 3 }] } }],
      records_total_count: null,
    });
  });

  it('starts over under another config', async () => {
    const { id, command, step, batchExportId } = await createPartiallyExportedRun();
    await endRun(journal, policies, id, failing);
    await command('update', { changes: { config_version: 2 } });
    await step();
    expect(await retryOf(batchExportId)).toMatchObject({ generation: 0, ranges: [{ upload: null }] });
  });

  it('starts over when the manifest may exist already', async () => {
    const { id, run, step, batchExportId } = await createPartiallyExportedRun();
    await recorder.finishExport(id, run.generation, {
      source_rows: 3,
      fingerprint: fingerprintOf(3),
      encoder: 'test/1',
    });
    await recorder.startPublish(id, run.generation);
    await endRun(journal, policies, id, failing);
    await step();
    expect(await retryOf(batchExportId)).toMatchObject({ generation: 0, ranges: [{ files: { count: 0 } }] });
  });
});
