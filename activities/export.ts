import { currentActivity, withHeartbeats } from './activity_context.ts';
import { lendingSlot } from './lent_slot.ts';
import type { ExportDependencies } from './export_dependencies.ts';
import {
  exportInterval,
  exportOneRange,
  finishRanges,
  type ExportCall,
  type ExportOutcome,
} from './export_interval.ts';
import { withFailures } from './failures.ts';
import { publishManifest, type PublishOutcome } from './publish_manifest.ts';

/** Which run; everything else is read from the journal, so that no config and no row enters a history. */
export interface RunInput {
  readonly run_id: string;
}

/**
 * The data plane: rows go from the source to the destination, and every fact is recorded through `runSteps`, which
 * decides whether this attempt may still go on.
 */
export function createExportActivities(dependencies: ExportDependencies) {
  const { logger, settings, slots, context = currentActivity } = dependencies;
  const alive = <Result>(
    progress: { readonly rows: number },
    work: (signal: AbortSignal) => Promise<Result>,
  ) =>
    withHeartbeats(
      context(),
      settings.EXPORTD_HEARTBEAT_TIMEOUT_MS,
      () => progress,
      (signal) =>
        lendingSlot(
          slots,
          settings.EXPORTD_SLOT_LENT_AFTER_MS,
          () => progress.rows,
          () => work(signal),
        ),
    );
  const exporting = (
    runId: string,
    work: (call: ExportCall) => Promise<ExportOutcome>,
  ): Promise<ExportOutcome> => {
    const progress = { rows: 0 };
    // A cancellation that came while the activity waited for its slot arrives with the answer.
    context().heartbeat(progress);
    return alive(progress, (signal) => work({ dependencies, runId, progress, signal }));
  };

  return withFailures(
    {
      /** Exports the rows of the run's interval, or as many as one execution is to; a repeat goes on where it stopped. */
      exportInterval: async ({ run_id }: RunInput): Promise<ExportOutcome> =>
        exporting(run_id, exportInterval),

      /** The same of one range of an interval that is cut, from 0 on; the others may be exported at the same time. */
      exportRange: async ({ run_id, range }: RunInput & { range: number }): Promise<ExportOutcome> =>
        exporting(run_id, (call) => exportOneRange(call, range)),

      /** Compares what the ranges exported with the source; `finished` is false when all have to be exported again. */
      finishExport: async ({ run_id }: RunInput): Promise<ExportOutcome> => exporting(run_id, finishRanges),

      /** Puts the manifest of an exported run, which makes its rows visible, and completes the run. */
      publishManifest: async ({ run_id }: RunInput): Promise<PublishOutcome> =>
        alive({ rows: 0 }, (signal) => publishManifest(dependencies, run_id, signal)),
    },
    logger,
  );
}
