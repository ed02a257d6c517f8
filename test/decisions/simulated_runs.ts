import { randomUUID } from 'node:crypto';
import type { Policies } from '../../src/decisions/policies.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import type { RunRecorder } from '../../src/decisions/run_recorder.ts';
import type { Manifest } from '../../src/destination/manifest.ts';
import { attemptOf } from '../../src/domain/run.ts';
import type { CompletedFile } from '../../src/domain/exported_files.ts';
import type { ExistingRun } from '../../src/domain/run_state.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { minuteAgo } from '../setup/minutes.ts';
import type { createCommander } from './commander.ts';
import { recordSameRows } from './replacements.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';

/** The whole minute that ended a number of minutes before the last one. */
export const minuteBefore = (minutes: number): { start_at: string; end_at: string } => ({
  start_at: minuteAgo(minutes + 1).toISOString(),
  end_at: minuteAgo(minutes).toISOString(),
});

/** A completed file that was never written. */
export const fileOf = (key: string, rows = 3): CompletedFile => ({
  key,
  rows,
  bytes: rows * 30,
  crc32: '00000000',
  first: null,
  last: null,
  fingerprint: fingerprintOf(rows),
  rejected: 0,
  expires_at: null,
});

/** A manifest that the journal does not know. */
export const unknownManifest = ({ spec }: ExistingRun, generation: number): Manifest => {
  const { batch_export_id, model, data_interval_start, data_interval_end } = spec;
  const { key, rows, bytes, crc32, fingerprint, first, last } = fileOf(`unknown/${generation}`);
  const file = { key, rows, bytes, crc32 };
  return {
    version: 1,
    batch_export_id,
    model,
    data_interval_start,
    data_interval_end,
    run_id: randomUUID(),
    generation,
    config_version: 1,
    settled: true,
    columns: [],
    rows,
    bytes,
    source_rows: rows,
    fingerprint,
    rejected: 0,
    rejected_file: null,
    encoder: 'test/1',
    files: [{ ...file, fingerprint, first, last }],
    kept: [{ ...file, key: `kept/${generation}`, generation: 1 }],
    earlier: [],
    created_at: '2026-11-01T10:00:00.000Z',
  };
};

/** Records the steps of runs in the journal like the activities do, without a source or a bucket. */
export function createSimulatedRuns(
  journal: Journal,
  recorder: RunRecorder,
  { command }: Pick<ReturnType<typeof createCommander>, 'command'>,
) {
  const newest = async (): Promise<string> => {
    const { rows } = await journal.pool.query<{ id: string }>(
      'select id from exportd.batch_export_runs order by position desc limit 1',
    );
    return rows[0]?.id ?? '';
  };
  /** Creates the upload of a file. */
  const upload = (id: string, run: ExistingRun, key: string): Promise<ExistingRun> =>
    recorder.recordUpload(id, attemptOf(run, 0), {
      file: run.ranges[0]?.next_file ?? 0,
      key,
      upload_id: `upload of ${key}`,
      upload_token: `token of ${key}`,
      part_bytes: null,
      encoder: 'test/1',
    });
  const file = async (id: string, run: ExistingRun, key: string, rows?: number): Promise<ExistingRun> => {
    await upload(id, run, key);
    return recorder.recordFile(id, attemptOf(run, 0), fileOf(key, rows));
  };
  /** Claims publishing; the run has the rows of the one that it replaces. */
  const startPublish = async (id: string, run: ExistingRun): Promise<ExistingRun> => {
    await recordSameRows(recorder, id);
    return recorder.startPublish(id, run.generation);
  };
  const count = (id: string): Promise<ExistingRun> =>
    recorder.recordCount(id, {
      records_total_count: 7,
      fingerprint: fingerprintOf(7),
      settled: true,
      split_keys: [],
    });
  return {
    upload,
    file,
    /** Records the rows of the run, which waits for a slot then. */
    count,
    /** Creates a run of one whole minute and returns its id. */
    create: async (minutes: number): Promise<string> => {
      await command('backfill', minuteBefore(minutes));
      return newest();
    },
    /** Creates another run of a run's interval and returns its id. */
    retry: async (id: string): Promise<string> => {
      await command('retry', { run_id: id });
      return newest();
    },
    /** Starts the run and reserves a generation. */
    start: async (id: string): Promise<ExistingRun> => {
      await count(id);
      return recorder.reserveGeneration(id, attemptOf(await recorder.startExport(id, 0), 0));
    },
    /** Claims publishing. */
    claim: async (id: string, run: ExistingRun): Promise<ExistingRun> => {
      await recorder.finishExport(id, run.generation, {
        source_rows: 3,
        fingerprint: fingerprintOf(3),
        encoder: 'test/1',
      });
      return startPublish(id, run);
    },
    /** Records that the source lacks rows of the manifest that the run replaces, and ends the run. */
    hold: async (id: string, policies: Policies): Promise<void> => {
      await recorder.recordReplacement(id, {
        replaced: { run_id: id, generation: 1 },
        outcome: 'rows_missing',
        missing_rows: 2,
        bucket_rows: 10,
        source_rows: 12,
        source: null,
        generation: null,
      });
      await endRun(journal, policies, id, {
        status: 'Failed',
        latest_error: 'RowsMissingInSource: 2 rows are missing.',
      });
    },
    /** Records a file and completes the run. */
    publish: async (id: string, run: ExistingRun, key: string, rows?: number): Promise<void> => {
      await file(id, run, key, rows);
      await recorder.finishExport(id, run.generation, {
        source_rows: rows ?? 3,
        fingerprint: fingerprintOf(rows ?? 3),
        encoder: 'test/1',
      });
      await startPublish(id, run);
      await recorder.complete(id, run.generation, 'the manifest');
    },
  };
}
