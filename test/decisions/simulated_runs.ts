import type { RunRecorder } from '../../src/decisions/run_recorder.ts';
import { attemptOf, type CompletedFile, type ExistingRun } from '../../src/domain/run.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { minuteAgo } from '../setup/minutes.ts';
import type { createCommander } from './commander.ts';

/** The whole minute that ended so many minutes before the last. */
export const minuteBefore = (minutes: number): { start_at: string; end_at: string } => ({
  start_at: minuteAgo(minutes + 1).toISOString(),
  end_at: minuteAgo(minutes).toISOString(),
});

/** A file of so many rows that was never written. */
export const fileOf = (key: string, rows = 3): CompletedFile => ({
  key,
  rows,
  bytes: rows * 30,
  crc32: '00000000',
  first: null,
  last: null,
  rejected: 0,
});

/** Takes the steps of runs in the journal alone, as the activities would, without a source or a bucket. */
export function createSimulatedRuns(
  journal: Journal,
  steps: RunRecorder,
  { command }: Pick<ReturnType<typeof createCommander>, 'command'>,
) {
  const newest = async (): Promise<string> => {
    const { rows } = await journal.pool.query<{ id: string }>(
      'select id from exportd.batch_export_runs order by position desc limit 1',
    );
    return rows[0]?.id ?? '';
  };
  /** The upload of a file is under way. */
  const upload = (id: string, run: ExistingRun, key: string): Promise<ExistingRun> =>
    steps.recordUpload(id, attemptOf(run, 0), {
      file: run.ranges[0]?.next_file ?? 0,
      key,
      upload_id: `upload of ${key}`,
      upload_token: `token of ${key}`,
      encoder: 'test/1',
    });
  const file = async (id: string, run: ExistingRun, key: string, rows?: number): Promise<ExistingRun> => {
    await upload(id, run, key);
    return steps.recordFile(id, attemptOf(run, 0), fileOf(key, rows));
  };
  return {
    upload,
    file,
    /** A run of one whole minute; its id. */
    open: async (minutes: number): Promise<string> => {
      await command('backfill', minuteBefore(minutes));
      return newest();
    },
    /** One more run of a run's interval; its id. */
    retry: async (id: string): Promise<string> => {
      await command('retry', { run_id: id });
      return newest();
    },
    /** The run has begun and has a generation. */
    begin: async (id: string): Promise<ExistingRun> => {
      await steps.recordCount(id, { records_total_count: 7, settled: true, split_keys: [] });
      return steps.reserveGeneration(id, attemptOf(await steps.startExport(id, 0), 0));
    },
    /** The run claims publishing. */
    claim: async (id: string, run: ExistingRun): Promise<ExistingRun> => {
      await steps.finishExport(id, run.generation, { source_rows: 3, encoder: 'test/1' });
      return steps.startPublish(id, run.generation);
    },
    /** The run writes a file and publishes it. */
    publish: async (id: string, run: ExistingRun, key: string, rows?: number): Promise<void> => {
      await file(id, run, key, rows);
      await steps.finishExport(id, run.generation, { source_rows: rows ?? 3, encoder: 'test/1' });
      await steps.startPublish(id, run.generation);
      await steps.complete(id, run.generation, 'the manifest');
    },
  };
}
