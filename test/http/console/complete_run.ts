import { createRunRecorder } from '../../../src/decisions/run_recorder.ts';
import { attemptOf } from '../../../src/domain/run.ts';
import type { SortKey } from '../../../src/domain/sort_key.ts';
import type { Journal } from '../../../src/journal/journal.ts';
import { recordSameRows } from '../../decisions/replacements.ts';
import { fileOf } from '../../decisions/simulated_runs.ts';
import { fingerprintOf } from '../../domain/fingerprints.ts';
import { minuteAgo } from '../../setup/minutes.ts';

/** A file of a run that is completed without a bucket. */
interface SimulatedFile {
  readonly rows: number;
  readonly first?: SortKey;
  readonly last?: SortKey;
}

/** The rows of the last minute. */
const minuteFingerprint = (rows: number) =>
  fingerprintOf(rows, { interval: { start: minuteAgo(1).toISOString(), end: minuteAgo(0).toISOString() } });

/** Completes a run of a minute with these files, as the activities record it. Without `sourceRows` the source has their rows. */
export async function completeRun(
  journal: Journal,
  id: string,
  { files, rows = 3, sourceRows }: { files?: readonly SimulatedFile[]; rows?: number; sourceRows?: number },
): Promise<void> {
  const recorder = createRunRecorder(journal);
  const written = files ?? [{ rows }];
  const total = written.reduce((sum, file) => sum + file.rows, 0);
  const fingerprint = minuteFingerprint(sourceRows ?? total);
  await recorder.recordCount(id, { records_total_count: total, fingerprint, settled: true, split_keys: [] });
  const attempt = attemptOf(
    await recorder.reserveGeneration(id, attemptOf(await recorder.startExport(id, 0), 0)),
    0,
  );
  const { generation } = attempt;
  for (const [index, { rows: count, first = null, last = null }] of written.entries()) {
    const key = `${id}/${generation}/${index}`;
    const upload = {
      file: index,
      key,
      upload_id: key,
      upload_token: '',
      part_bytes: null,
      encoder: 'test/1',
    };
    await recorder.recordUpload(id, attempt, upload);
    const file = { ...fileOf(key, count), fingerprint: minuteFingerprint(count), first, last };
    await recorder.recordFile(id, attempt, file);
  }
  await recorder.finishExport(id, generation, {
    source_rows: sourceRows ?? total,
    fingerprint,
    encoder: 'test/1',
  });
  await recordSameRows(recorder, id);
  await recorder.startPublish(id, generation);
  await recorder.complete(id, generation, `_manifests/${id}.json`);
}
