import type { Settings } from '../src/config/settings.ts';
import type { ReplacementOutcome } from '../src/domain/exported_files.ts';
import { RunEnded } from '../src/domain/run.ts';
import type { ExportCall, ExportDependencies, YieldableSlots } from '../src/export/export_context.ts';
import {
  exportInterval as exportRows,
  exportOneRange,
  exportOutcomeOf,
  finishRanges,
  type ExportOutcome,
} from '../src/export/export_interval.ts';
import { publishManifest, type PublishOutcome, checkRun } from '../src/export/publish.ts';
import type { Outages } from '../src/failures/circuits.ts';
import { wrapActivities, type ActivityContext, type StepAttempt } from './run_step.ts';

/** Names a run. Everything else is read from the journal, so that no config and no row enters a history. */
export interface ExportInput {
  readonly run_id: string;
}

export interface ExportActivityDependencies extends ExportDependencies {
  /** Slots of the worker that runs them. */
  readonly slots: YieldableSlots;
  readonly outages: Outages;
  readonly settings: ExportDependencies['settings'] &
    Pick<Settings, 'EXPORTD_HEARTBEAT_TIMEOUT' | 'EXPORTD_SLOT_YIELD_AFTER'>;
  /** Temporal's context of the running activity by default; tests bring their own. */
  readonly context?: () => ActivityContext;
}

export type ExportActivities = ReturnType<typeof createExportActivities>;

/**
 * The activities of `batchExportRun` that move rows from the source to the destination. Each records its facts through
 * `recorder`, which rejects an attempt that a newer one has replaced.
 */
export function createExportActivities(dependencies: ExportActivityDependencies) {
  const { logger, recorder, outages, settings, context } = dependencies;
  const slots = {
    yieldSlot: () => dependencies.slots.yieldSlot(),
    yieldAfterMs: settings.EXPORTD_SLOT_YIELD_AFTER,
  };
  /**
   * The call of one attempt. Its destination reports failed requests. While the attempt waits for a retry or for the probe of
   * its destination, another one uses its slot.
   */
  const callOf = (attempt: StepAttempt, runId: string): ExportCall => {
    const { signal, progress } = attempt;
    return {
      dependencies: {
        ...dependencies,
        // Other attempts of the export delay this one, which is no failure of it.
        perExportLimit: {
          acquire: (id, waiting) =>
            attempt.withoutSpending(() => dependencies.perExportLimit.acquire(id, waiting)),
        },
        openDestination: (spec, onError) =>
          dependencies.openDestination(
            spec,
            (failure) => {
              attempt.requestFailed(failure);
              onError(failure);
            },
            { signal, runId, yieldSlot: slots.yieldSlot },
          ),
      },
      runId,
      progress,
      signal,
    };
  };
  const exportWith = (
    attempt: StepAttempt,
    runId: string,
    work: (call: ExportCall) => Promise<ExportOutcome>,
  ): Promise<ExportOutcome> => {
    attempt.heartbeat();
    return work(callOf(attempt, runId));
  };
  const publish = (attempt: StepAttempt, runId: string): Promise<PublishOutcome> => {
    const { dependencies: ofAttempt, signal } = callOf(attempt, runId);
    return publishManifest(ofAttempt, runId, signal);
  };
  return wrapActivities(
    {
      logger,
      context,
      recorder,
      outages,
      slots,
      heartbeatTimeoutMs: settings.EXPORTD_HEARTBEAT_TIMEOUT,
    },
    {
      /**
       * Checks that the source still has every row of the manifest that the run would replace. It fails the run otherwise,
       * so that nothing that was exported leaves the bucket.
       */
      checkReplacement: async (attempt, { run_id }: ExportInput): Promise<ReplacementOutcome | null> => {
        attempt.heartbeat();
        return checkRun(callOf(attempt, run_id));
      },

      /**
       * Exports the rows of the run's interval, at most the share of one execution; a retry resumes. With `publishes` it does
       * what `publishManifest` does once all rows are exported.
       */
      exportInterval: async (
        attempt,
        { run_id, publishes = false }: ExportInput & { publishes?: boolean },
      ): Promise<ExportOutcome & { published?: true }> => {
        const outcome = await exportWith(attempt, run_id, (call) => exportRows(call, { publishes })).catch(
          async (error: unknown) => {
            // The reply of the attempt that published it was lost.
            if (!publishes || !(error instanceof RunEnded) || error.status !== 'Completed') throw error;
            return exportOutcomeOf(await recorder.read(run_id), true);
          },
        );
        return outcome.finished && publishes ? { ...outcome, published: true } : outcome;
      },

      /** Exports one range of a split interval, counted from 0; ranges may run at the same time. */
      exportRange: async (
        attempt,
        { run_id, range }: ExportInput & { range: number },
      ): Promise<ExportOutcome> => exportWith(attempt, run_id, (call) => exportOneRange(call, range)),

      /** Compares the exported ranges with the source; `finished` is false when all must be exported again. */
      finishExport: async (attempt, { run_id }: ExportInput): Promise<ExportOutcome> =>
        exportWith(attempt, run_id, finishRanges),

      /** Puts the manifest of an exported run, which makes its rows visible, and completes the run. */
      publishManifest: async (attempt, { run_id }: ExportInput): Promise<PublishOutcome> =>
        publish(attempt, run_id),
    },
  );
}
