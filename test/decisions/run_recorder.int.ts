import { describe, expect, it } from '@jest/globals';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { continueRun } from '../../src/decisions/continue_run.ts';
import { cancelUnlessPublishing, endRun } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import type { SortKey } from '../../src/domain/sort_key.ts';
import { encodeBuckets, maxFingerprintBuckets } from '../../src/domain/fingerprint.ts';
import { attemptOf, GenerationSuperseded, runDecider, RunEnded } from '../../src/domain/run.ts';
import { type ExistingRun, filesOf } from '../../src/domain/run_state.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { effort } from '../setup/effort.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, quickPolicies } from './commander.ts';
import { readRuns } from './read_runs.ts';
import { createSimulatedRuns, fileOf, minuteBefore } from './simulated_runs.ts';

const { pool } = useTestDatabase();
const journal = openJournal(pool);
const recorder = createRunRecorder(journal);

const runsOf = (batch_export_id: string) => readRuns(pool, { batch_export_id });

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
  const started = await recorder.startExport(id, 0);
  const run = await recorder.reserveGeneration(id, attemptOf(started, 0));
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

  /** Claims publishing of a run that its retry resumes, and ends it. */
  const claimAndFail = async (id: string, { generation }: ExistingRun): Promise<void> => {
    const facts = { source_rows: 3, fingerprint: fingerprintOf(3), encoder: 'test/1' };
    await recorder.finishExport(id, generation, facts);
    await recorder.startPublish(id, generation);
    await cancelUnlessPublishing(journal, policies, id, 'Cancelled by a user.');
    await endRun(journal, policies, id, failing);
  };

  it('inherits the claim when the manifest may exist already, and the request to cancel it', async () => {
    const { id, run, step, batchExportId } = await createPartiallyExportedRun();
    await claimAndFail(id, run);
    await step();
    expect(await retryOf(batchExportId)).toMatchObject({
      generation: 1,
      ranges: [{ upload: { upload_id: 'upload', parts: [{ rows: 3 }] } }],
      claimed_by: [id],
      cancel_requested: 'Cancelled by a user.',
    });
    expect(await runsOf(batchExportId)).toMatchObject([{}, { cancel_requested: true }]);
  });

  it('is not created for a run that was to be cancelled, and that it could not resume', async () => {
    const { id, run, command, step, batchExportId } = await createPartiallyExportedRun();
    await claimAndFail(id, run);
    await command('update', { changes: { config_version: 2 } });
    await step();
    expect(await runsOf(batchExportId)).toMatchObject([{ id, status: 'FailedRetryable', retry_at: null }]);
  });
});

describe('the state of a run', () => {
  const keyOf = (number: number): SortKey => ({
    inserted_at: `2026-11-01T10:00:00.${String(number).padStart(6, '0')}Z`,
    id: `row ${String(number)}`,
  });
  const rowsOf = (number: number) => ({
    rows: 3,
    bytes: 90,
    crc32: '00000000',
    rejected: 0,
    first: keyOf(number),
    last: keyOf(number),
    // Each file has rows of another time.
    fingerprint: {
      ...fingerprintOf(0),
      encoded_buckets: encodeBuckets([
        { index: number % maxFingerprintBuckets, rows: 3, sum: '12345678901234567890' },
      ]),
    },
  });

  /** Creates a run of one interval and returns its id. */
  async function createRun(): Promise<string> {
    const commander = createCommander(journal, quickPolicies());
    await commander.create();
    return createSimulatedRuns(journal, recorder, commander).create(1);
  }

  /** Records complete files, each of one part. */
  async function writeFiles(
    id: string,
    started: ExistingRun,
    numbers: readonly number[],
  ): Promise<ExistingRun> {
    const attempt = attemptOf(started, 0);
    let run = started;
    for (const number of numbers) {
      const key = `file ${String(number)}`;
      await recorder.planWholeFile(
        id,
        attempt,
        { file: number, key, upload_token: `token of ${key}`, encoder: 'test/1' },
        { ...rowsOf(number), part_number: 1, encoder_state: null, final: true },
      );
      run = await recorder.recordFile(id, attempt, { ...fileOf(key), ...rowsOf(number) });
    }
    return run;
  }

  const startExport = async (id: string): Promise<ExistingRun> => {
    const run = await recorder.startExport(id, 0);
    return run.generation > 0 ? run : recorder.reserveGeneration(id, attemptOf(run, 0));
  };
  const numbersFrom = (first: number, count: number): number[] =>
    Array.from({ length: count }, (_, index) => first + index);

  /** The sizes of what each step of a run writes, in characters. */
  async function sizesOf(id: string): Promise<{ state: number; row: number }> {
    const { rows } = await pool.query<{ state: number; row: number }>(
      `select length(stored.state::text) as state, length(run::text) as row from exportd.stream_states stored
     join exportd.batch_export_runs run on run.id = stored.stream_id where stored.stream_id = $1`,
      [id],
    );
    if (!rows[0]) throw new Error('The run has no state.');
    return rows[0];
  }

  it('does not grow with its files, nor does what a continued run inherits', async () => {
    const id = await createRun();
    const few = await writeFiles(id, await startExport(id), numbersFrom(0, maxFingerprintBuckets));
    const before = await sizesOf(id);
    const many = await writeFiles(id, few, numbersFrom(maxFingerprintBuckets, 200));
    const after = await sizesOf(id);
    // The sums have more digits.
    expect(after.state).toBeLessThan(before.state * 1.1);
    expect(after.row).toBeLessThan(before.row * 1.1);
    expect(filesOf(many)).toMatchObject({ count: 264, rows: 3 * 264, last: keyOf(263) });

    const { run_id } = await continueRun(journal, id);
    const { rows } = await pool.query<{ size: number }>(
      `select length(data::text) as size from exportd.journal_events where stream_id = $1 and event_type = 'RunCreated'`,
      [run_id],
    );
    // It has what a stored state leaves out.
    expect(rows[0]?.size).toBeLessThan(before.state * 1.5);
    const continued = await writeFiles(run_id, await startExport(run_id), numbersFrom(264, 2));
    // Only the first file is stored without its fingerprint.
    expect(await recorder.readFiles(run_id, continued)).toEqual(
      numbersFrom(0, 266).map((number) => ({
        ...fileOf(`file ${String(number)}`),
        ...rowsOf(number),
        range: 0,
      })),
    );
    const { rows: stored } = await pool.query<{ without: number }>(
      `select count(*)::int as without from exportd.destination_objects
       where run_id = $1 and file -> 'fingerprint' = 'null'`,
      [run_id],
    );
    expect(stored[0]?.without).toBe(1);
    // Totals that lack a file would give the first one other rows.
    await expect(recorder.readFiles(run_id, many)).rejects.toThrow(
      '266 files do not add up to the 264 files',
    );
  });

  /**
   * Kilobytes of WAL per file, of one of the cheapest: the first change of a page after a checkpoint writes the whole page. Only
   * what this session writes is counted, since other tests fill the server with theirs.
   */
  async function walPerFile(id: string, run: ExistingRun, numbers: readonly number[]): Promise<number> {
    let session: number | undefined;
    const position = async (): Promise<number> => {
      await pool.query('select pg_stat_force_next_flush()');
      const { rows } = await pool.query<{ pid: number; bytes: number }>(
        'select pg_backend_pid() as pid, wal_bytes::float8 as bytes from pg_stat_get_backend_wal(pg_backend_pid())',
      );
      // The pool uses one connection, since nothing here is concurrent.
      expect(rows[0]?.pid).toBe((session ??= rows[0]?.pid));
      return rows[0]?.bytes ?? Number.NaN;
    };
    const costs: number[] = [];
    for (const number of numbers) {
      const before = await position();
      await writeFiles(id, run, [number]);
      costs.push((await position()) - before);
    }
    return (costs.toSorted((one, other) => one - other)[costs.length >> 3] ?? 0) / 1_000;
  }

  it('costs as much WAL for each of thousands of files as for the first ones', async () => {
    const id = await createRun();
    const many = effort > 1 ? 2_000 : 640;
    // The fingerprint of the first files has fewer buckets.
    const run = await writeFiles(id, await startExport(id), numbersFrom(0, maxFingerprintBuckets));
    const first = await walPerFile(id, run, numbersFrom(maxFingerprintBuckets, 40));
    const next = maxFingerprintBuckets + 40;
    await writeFiles(id, run, numbersFrom(next, many - 40));
    const last = await walPerFile(id, run, numbersFrom(next + many - 40, 40));
    process.stdout.write(`WAL per file: ${first.toFixed(1)} kB, after ${many} files ${last.toFixed(1)} kB\n`);
    expect(last).toBeLessThan(first * 1.3);
  });

  it('is not written again by an event that does not change it', async () => {
    // Uncompressed, so that PostgreSQL stores it apart from its row.
    await pool.query('alter table exportd.stream_states alter column state set storage external');
    const id = await createRun();
    const run = await startExport(id);
    const written = await writeFiles(id, run, numbersFrom(0, maxFingerprintBuckets));
    const { fingerprint } = filesOf(written);
    if (!fingerprint) throw new Error('The run has no files.');
    // Of two fingerprints, since smaller states stay in their row.
    await recorder.planRejectedFile(id, written.generation, { ...fileOf('rejected'), fingerprint });
    const stored = async () =>
      (
        await pool.query<{ version: number; chunk: string | null }>(
          'select version, pg_column_toast_chunk_id(state) as chunk from exportd.stream_states where stream_id = $1',
          [id],
        )
      ).rows[0];
    const before = await stored();
    expect(before?.chunk).not.toBeNull();
    await journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, id);
      const data = {
        key: 'file 0',
        upload_id: null,
        upload_token: null,
        deleted: false,
        reason: 'Test: a reason.',
      };
      await stream.append('deleted', [{ type: 'RunObjectDeleted', data }]);
    });
    expect(await stored()).toEqual({ version: (before?.version ?? 0) + 1, chunk: before?.chunk });
  });
});
