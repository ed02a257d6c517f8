import { describe, expect, it } from '@jest/globals';
import { continueRun } from '../../src/decisions/advance_backfill.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { maxFingerprintBuckets } from '../../src/domain/fingerprint.ts';
import { attemptOf, runDecider } from '../../src/domain/run.ts';
import { type ExistingRun, filesOf } from '../../src/domain/run_state.ts';
import type { SortKey } from '../../src/domain/exported_files.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, quickPolicies } from './commander.ts';
import { createSimulatedRuns, fileOf } from './simulated_runs.ts';

const { pool } = useTestDatabase();
const journal = openJournal(pool);
const recorder = createRunRecorder(journal);

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
    buckets: [{ index: number % maxFingerprintBuckets, rows: 3, sum: '12345678901234567890' }],
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

describe('the state of a run', () => {
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
    expect(rows[0]?.size).toBeLessThan(after.state);
    const continued = await writeFiles(run_id, await startExport(run_id), numbersFrom(264, 2));
    const keys = (await recorder.readFiles(run_id, continued)).map(({ key }) => key);
    expect(keys).toEqual(numbersFrom(0, 266).map((number) => `file ${String(number)}`));
  });

  it('is not written again by an event that does not change it', async () => {
    // Uncompressed, so that PostgreSQL stores it apart from its row.
    await pool.query('alter table exportd.stream_states alter column state set storage external');
    const id = await createRun();
    const run = await startExport(id);
    await writeFiles(id, run, numbersFrom(0, maxFingerprintBuckets));
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
