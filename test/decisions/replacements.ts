import type { RunRecorder } from '../../src/decisions/run_recorder.ts';
import type { ReplacementOutcome } from '../../src/domain/replacement_check.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';

/** Records that the source has the same rows as the manifest that a run replaces, if it replaces one. */
export const recordSameRows = (recorder: RunRecorder, runId: string): Promise<void> =>
  recordReplacement(recorder, runId, 'same_rows');

/** Records how the source compares with the manifest that a run replaces, if it replaces one. */
export async function recordReplacement(
  recorder: RunRecorder,
  runId: string,
  outcome: ReplacementOutcome,
): Promise<void> {
  const replaced = await recorder.findReplaced(await recorder.read(runId));
  if (!replaced) return;
  await recorder.recordReplacement(runId, {
    replaced: { run_id: replaced.run_id, generation: replaced.run.generation },
    outcome,
    missing_rows: 0,
    bucket_rows: 3,
    source_rows: 3,
    source: fingerprintOf(3),
    generation: null,
  });
}
