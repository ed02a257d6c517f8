import type { Settings } from '../src/config/settings.ts';
import type { CircuitBreaker } from '../src/destination/circuits/circuit_breaker.ts';
import type { ExportCall, ExportDependencies } from '../src/export/export_context.ts';
import {
  exportInterval,
  exportOneRange,
  finishRanges,
  type ExportOutcome,
} from '../src/export/export_interval.ts';
import type { ReplacementOutcome } from '../src/domain/replacement.ts';
import { checkRun } from '../src/export/replacement.ts';
import { publishManifest, type PublishOutcome } from '../src/export/publish.ts';
import { yieldSlotWhileStalled, type YieldableSlots } from '../src/export/yield_slot.ts';
import { withApplicationFailures } from '../src/failures/application_failures.ts';
import type { OperatorFaults } from '../src/failures/operator_faults/operator_faults.ts';
import { waitForOperator } from '../src/failures/operator_faults/wait_for_operator.ts';
import { waitForDestination } from '../src/failures/wait_for_destination.ts';
import { heartbeatDetails, withoutSpending, withRetryBudget } from '../src/failures/retry_budget.ts';
import { reportFailedAttempts, reportingDestinations, type ReportedStep } from './failed_attempts.ts';
import { currentActivity, withHeartbeats, type ActivityContext } from './heartbeats.ts';

/** Names a run. Everything else is read from the journal, so that no config and no row enters a history. */
export interface ExportInput {
  readonly run_id: string;
}

/** Dependencies of the export's activities. */
export interface ExportActivityDependencies extends ExportDependencies {
  /** Slots of the worker that runs them. */
  readonly slots: YieldableSlots;
  readonly operatorFaults: OperatorFaults;
  /** Where `openDestination` asks; none in most tests. */
  readonly circuits?: Pick<CircuitBreaker, 'waitOf'>;
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
  const { logger, settings, slots, context = currentActivity } = dependencies;
  const withSlot = <Result>(
    progress: { readonly rows: number },
    work: (signal: AbortSignal, onStall: () => void) => Promise<Result>,
  ) =>
    withHeartbeats(
      context(),
      settings.EXPORTD_HEARTBEAT_TIMEOUT,
      () => heartbeatDetails(progress),
      (signal) =>
        yieldSlotWhileStalled(
          slots,
          settings.EXPORTD_SLOT_YIELD_AFTER,
          () => progress.rows,
          (onStall) => work(signal, onStall),
        ),
    );
  /**
   * The dependencies of one attempt, whose destination reports errors that its requests are retried after. While the
   * attempt waits for a retry or for the probe of its destination, another one uses its slot.
   */
  const dependenciesOf = (
    runId: string,
    step: ReportedStep,
    signal: AbortSignal,
    onStall: () => void,
  ): ExportActivityDependencies => {
    const open = reportingDestinations(dependencies, context(), runId, step);
    return {
      ...dependencies,
      // Other attempts of the export delay this one, which is no failure of it.
      perExportLimit: {
        acquire: (id, waiting) => withoutSpending(() => dependencies.perExportLimit.acquire(id, waiting)),
      },
      openDestination: (spec, onError) =>
        open(
          spec,
          (failure) => {
            if (failure.transient) onStall();
            onError(failure);
          },
          { signal, runId, yieldSlot: () => slots.yieldSlot() },
        ),
    };
  };
  const exportWith = (
    runId: string,
    step: ReportedStep,
    work: (call: ExportCall) => Promise<ExportOutcome>,
  ): Promise<ExportOutcome> => {
    const progress = { rows: 0 };
    // The response reports a cancellation that came while the activity waited for its slot.
    context().heartbeat(heartbeatDetails(progress));
    return withSlot(progress, (signal, onStall) =>
      work({ dependencies: dependenciesOf(runId, step, signal, onStall), runId, progress, signal }),
    );
  };

  const activities = withApplicationFailures(
    {
      /**
       * Checks that the source still has every row of the manifest that the run would replace. It fails the run otherwise,
       * so that nothing that was exported leaves the bucket.
       */
      checkReplacement: async ({ run_id }: ExportInput): Promise<ReplacementOutcome | null> => {
        const progress = { rows: 0 };
        context().heartbeat(heartbeatDetails(progress));
        return withSlot(progress, (signal, onStall) =>
          checkRun({
            dependencies: dependenciesOf(run_id, 'checkReplacement', signal, onStall),
            runId: run_id,
            progress,
            signal,
          }),
        );
      },

      /** Exports the rows of the run's interval, at most the share of one execution; a retry resumes. */
      exportInterval: async ({ run_id }: ExportInput): Promise<ExportOutcome> =>
        exportWith(run_id, 'exportInterval', exportInterval),

      /** Exports one range of a split interval, counted from 0; ranges may run at the same time. */
      exportRange: async ({ run_id, range }: ExportInput & { range: number }): Promise<ExportOutcome> =>
        exportWith(run_id, 'exportRange', (call) => exportOneRange(call, range)),

      /** Compares the exported ranges with the source; `finished` is false when all must be exported again. */
      finishExport: async ({ run_id }: ExportInput): Promise<ExportOutcome> =>
        exportWith(run_id, 'finishExport', finishRanges),

      /** Puts the manifest of an exported run, which makes its rows visible, and completes the run. */
      publishManifest: async ({ run_id }: ExportInput): Promise<PublishOutcome> =>
        withSlot({ rows: 0 }, (signal, onStall) =>
          publishManifest(dependenciesOf(run_id, 'publishManifest', signal, onStall), run_id, signal),
        ),
    },
    logger,
  );
  return withRetryBudget(
    context,
    reportFailedAttempts(
      dependencies,
      context,
      waitForDestination(
        dependencies.circuits,
        waitForOperator(dependencies.operatorFaults, context, activities),
      ),
    ),
  );
}
