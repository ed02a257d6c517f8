import type { ReplacementOutcome } from '../../domain/replacement.ts';
import type { ExportDependencies } from '../export_dependencies.ts';
import { withDestination } from '../run_destination.ts';
import { checkReplacement, type ReplacementCall } from './check_replacement.ts';

/**
 * Checks a run before it exports; see `checkReplacement`. It reads as much as an export, so it takes one of the export's
 * permits.
 * @returns the outcome; null if the run replaces no manifest
 */
export async function checkRun(
  call: ReplacementCall & { readonly dependencies: ExportDependencies },
): Promise<ReplacementOutcome | null> {
  const { dependencies, runId, signal } = call;
  const { recorder, perExportLimit } = dependencies;
  const { spec } = await recorder.readActive(runId);
  const release = await perExportLimit.acquire(spec.batch_export_id, signal);
  try {
    const run = await recorder.readActive(runId);
    // Rows that were compared are useless while they cannot be sent.
    const checked = await withDestination(dependencies, runId, run, () => checkReplacement(call, run));
    return checked.replacement?.outcome ?? null;
  } finally {
    release();
  }
}
