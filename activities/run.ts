import type { Settings } from '../src/config/settings.ts';
import { type ContinuedRun, continueRun } from '../src/decisions/continue_run.ts';
import type { Policies } from '../src/decisions/policies.ts';
import { readRunEnd } from '../src/decisions/run_end.ts';
import { cancelUnlessPublishing, endRun, type RunOutcome } from '../src/decisions/run_outcomes.ts';
import { readRuns, type StartableRun } from '../src/decisions/startable_runs.ts';
import type { BarrierState } from '../src/domain/barrier.ts';
import type { ReplacementOutcome } from '../src/domain/replacement_check.ts';
import { RunEnded } from '../src/domain/run.ts';
import type { RunStatus } from '../src/domain/run_state.ts';
import {
  checkRunBarrier,
  type CountDependencies,
  type CountedRows,
  type CountInput,
  countRows,
  recordDeferredCount,
  type RunBarrierCheck,
} from '../src/export/count.ts';
import type { ExportCall, ExportDependencies } from '../src/export/export_context.ts';
import type { YieldableSlots } from '../src/export/yieldable_slots.ts';
import {
  exportOneRange,
  type ExportOutcome,
  exportOutcomeOf,
  exportInterval as exportRows,
  finishRanges,
} from '../src/export/export_interval.ts';
import { checkRun } from '../src/export/check_replacement.ts';
import { publishManifest, type PublishOutcome } from '../src/export/publish.ts';
import type { CompleteSmallRun } from '../src/export/complete_small_run.ts';
import type { RunOrder, RunTurns } from '../src/export/run_turns.ts';
import type { SmallRun } from '../src/export/small_run.ts';
import { createBackfillBarriers } from '../src/export/backfill_barriers.ts';
import { renewTimeLimits } from '../src/failures/operator_faults.ts';
import type { Journal } from '../src/journal/journal.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { type ActivityContext, type StepAttempt, wrapActivities } from './run_step.ts';
import type { Outages } from '../src/failures/outages.ts';
import { takeBackfillStep } from './backfill.ts';

interface RunActivityDependencies extends CountDependencies {
  readonly logger: Logger;
  readonly journal: Journal;
  readonly policies: Policies;
  readonly completeSmallRun: CompleteSmallRun;
  readonly turns: Pick<RunTurns, 'wait'>;
  readonly outages: Outages;
  readonly settings: CountDependencies['settings'] &
    Pick<Settings, 'EXPORTD_HEARTBEAT_TIMEOUT' | 'EXPORTD_SETTLE_DELAY'>;
  /** Temporal's context of the running activity by default; tests bring their own. */
  readonly context?: () => ActivityContext;
  readonly runs: {
    /** What the Temporal UI says of a run, in Markdown. */
    describe(run: StartableRun): string;
    /** Starts the executions of runs; returns how many wait for another run of their interval to close. */
    startAll(runs: readonly StartableRun[]): Promise<number>;
  };
  readonly schedules: {
    /** Wakes the workflow of a schedule, if it runs. */
    wake(batchExportId: string): Promise<void>;
  };
  readonly backfills: {
    /** Wakes the workflow of a backfill, if it runs. */
    wake(backfillId: string): Promise<void>;
  };
}

/** How long a query of the source is a local activity, in milliseconds: most take less. */
const localSourceLimitMs = 2_000;

/** After how long a run asks again whose turn did not come, in milliseconds. */
const nextTurnMs = 1_000;

export type RunActivities = ReturnType<typeof createRunActivities>;

/** How a run ended, as its execution shows it. */
interface EndedRun {
  readonly status: RunStatus | 'Absent';
  readonly latest_error: string | null;
  /** The rows of its manifest; null if it published none. */
  readonly rows: number | null;
}

/** What the Temporal UI says of a run that continues as new: Temporal drops the details that it was started with. */
interface ContinuedDetails {
  readonly details?: string | undefined;
}

/** The local activities of `batchExportRun`. */
export function createRunActivities(dependencies: RunActivityDependencies) {
  const {
    journal,
    policies,
    runs,
    schedules,
    backfills,
    completeSmallRun,
    turns,
    logger,
    recorder,
    outages,
    settings,
    context,
  } = dependencies;
  const detailsOf = async (runId: string): Promise<ContinuedDetails> => {
    const [run] = await readRuns(journal.pool, [runId]);
    return { details: run && runs.describe(run) };
  };
  /**
   * Lets those continue that wait for the end of a run. Its backfills take their next step at once: their workflows would only
   * do the same. These are woken where they have something to show or to wait for, and look for themselves every minute.
   */
  const followRun = async (runId: string): Promise<EndedRun> => {
    const end = await readRunEnd(journal, runId);
    if (!end) return { status: 'Absent', latest_error: null, rows: null };
    const { batch_export_id, status, latest_error, rows } = end;
    if (end.wake_schedule) await schedules.wake(batch_export_id);
    for (const id of end.backfill_ids) {
      const step = await takeBackfillStep(dependencies, id, { run_id: runId, batch_export_id, status });
      if (step.status !== 'Running' || step.blocked_runs > 0) await backfills.wake(id);
    }
    return { status, latest_error, rows };
  };
  /** Exports and publishes a small run. Undefined when an export worker has to do it. */
  const completeAtOnce = async (
    runId: string,
    signal: AbortSignal,
    small?: SmallRun,
  ): Promise<EndedRun | undefined> =>
    (await completeSmallRun(runId, signal, small)) ? followRun(runId) : undefined;
  const barriers = createBackfillBarriers(recorder.readBackfillRange, settings.EXPORTD_SETTLE_DELAY);
  // They are retried until the control database and Temporal accept them.
  const journalActivities = wrapActivities(
    { logger, retryIndefinitely: true },
    {
      /**
       * Ends a run that did not complete; a run with a terminal status keeps it. `renewed`: it waited for the operator and
       * continues with new time limits.
       */
      recordRunOutcome: async (
        _,
        input: { run_id: string; execution_id: string; status: RunOutcome; latest_error: string },
      ): Promise<ContinuedDetails & { renewed: boolean }> => {
        const { run_id, execution_id, status } = input;
        const exceedsLimits = status === 'FailedRetryable' || status === 'TimedOut';
        if (exceedsLimits && (await renewTimeLimits(journal.pool, run_id, execution_id)))
          return { renewed: true, ...(await detailsOf(run_id)) };
        await endRun(journal, policies, run_id, input);
        return { renewed: false };
      },

      /** Cancels a run whose execution was cancelled; `cancelled` is false while its manifest is being published. */
      cancelUnlessPublishing: async (
        _,
        input: { run_id: string; reason: string },
      ): Promise<{ cancelled: boolean }> => ({
        cancelled: await cancelUnlessPublishing(journal, policies, input.run_id, input.reason),
      }),

      /** Lets the schedule and the backfills continue that wait for the end of a run. */
      signalRunEnd: async (_, input: { run_id: string }): Promise<EndedRun> => followRun(input.run_id),
    },
  );
  // These fail the run when an error outlasts its budget.
  return {
    ...journalActivities,
    ...wrapActivities(
      // Where they take long, and after an operator's fault, they are no local activities, and send heartbeats.
      {
        logger,
        context,
        recorder,
        outages,
        localLimitMs: localSourceLimitMs,
        heartbeatTimeoutMs: settings.EXPORTD_HEARTBEAT_TIMEOUT,
      },
      {
        /** Checks once whether an open transaction may still add rows to the run's interval; counts them when none may. */
        checkBarrier: async (
          { signal },
          input: { run_id: string; state: BarrierState },
        ): Promise<RunBarrierCheck> => checkRunBarrier({ ...dependencies, barriers }, input, signal),

        /**
         * Waits for the turn of the run among those of the worker, does what `checkBarrier` does, and what `completeSmallRun`
         * does if the run is small and replaces nothing. `waits_for_turn`: other runs had their turn, so it has checked nothing.
         */
        exportWhenSettled: async (
          { signal, withoutLimit },
          { order, ...input }: { run_id: string; state: BarrierState; order: RunOrder },
        ): Promise<RunBarrierCheck & { readonly ended?: EndedRun; readonly waits_for_turn?: true }> => {
          const endTurn = await withoutLimit(() => turns.wait(order, signal));
          if (!endTurn)
            return { state: input.state, wait_ms: nextTurnMs, blocked_by: [], waits_for_turn: true };
          try {
            const counting = { ...dependencies, barriers };
            const { small, ...checked } = await checkRunBarrier(counting, input, signal, { defers: true });
            const { counted } = checked;
            if (!small || !counted) return checked;
            const ended = await withoutLimit(() => completeAtOnce(input.run_id, signal, small));
            if (ended) return { ...checked, ended };
            await recordDeferredCount(dependencies, input.run_id, small);
            return { ...checked, counted: { ...counted, is_small: false } };
          } finally {
            endTurn();
          }
        },

        /** Counts the rows of the run's interval. A run without rows is ready to be published after this. */
        countRows: async ({ signal }, input: CountInput): Promise<CountedRows> =>
          countRows(dependencies, input, signal),
      },
    ),
    ...wrapActivities(
      { logger, context, recorder },
      {
        /**
         * Exports and publishes a small run in its turn, and does what `signalRunEnd` does then; without `ended` an export worker
         * has to complete it.
         */
        completeSmallRun: async (
          { signal },
          { run_id, order }: { run_id: string; order: RunOrder },
        ): Promise<{ readonly ended?: EndedRun }> => {
          const endTurn = await turns.wait(order, signal);
          if (!endTurn) return {};
          try {
            const ended = await completeAtOnce(run_id, signal);
            return ended ? { ended } : {};
          } finally {
            endTurn();
          }
        },

        /** Closes the row of a run that continues as new, and creates the row of its next execution. */
        continueRun: async (_, input: { run_id: string }): Promise<ContinuedDetails & ContinuedRun> => {
          const continued = await continueRun(journal, input.run_id);
          return { ...continued, ...(await detailsOf(continued.run_id)) };
        },
      },
    ),
  };
}

/** Names a run. Everything else is read from the journal, so that no config and no row enters a history. */
interface ExportInput {
  readonly run_id: string;
}

export interface ExportActivityDependencies extends ExportDependencies {
  /** Slots of the worker that runs them. */
  readonly slots: YieldableSlots;
  readonly outages: Outages;
  readonly settings: ExportDependencies['settings'] & Pick<Settings, 'EXPORTD_HEARTBEAT_TIMEOUT'>;
  /** Temporal's context of the running activity by default; tests bring their own. */
  readonly context?: () => ActivityContext;
}

export type ExportActivities = ReturnType<typeof createExportActivities>;

/**
 * The activities of `batchExportRun` that move rows from the source to the destination. Each records its facts through
 * `recorder`, which rejects an attempt that a newer one has replaced.
 */
export function createExportActivities(dependencies: ExportActivityDependencies) {
  const { logger, recorder, outages, settings, slots, context } = dependencies;
  /**
   * The call of one attempt. Its destination reports failed requests. While the attempt waits for a retry or for the probe of
   * its destination, another one uses its slot.
   */
  const callOf = (attempt: StepAttempt, runId: string): ExportCall => {
    const { signal, progress, slot } = attempt;
    return {
      dependencies: {
        ...dependencies,
        // Other attempts of the export delay this one, which is no failure of it.
        perExportLimit: {
          acquire: (id, waiting) =>
            attempt.withoutSpending(() => dependencies.perExportLimit.acquire(id, waiting, slot)),
        },
        openDestination: (spec, onError) =>
          dependencies.openDestination(
            spec,
            (failure) => {
              attempt.requestFailed(failure);
              onError(failure);
            },
            { signal, runId, yieldSlot: () => slot.yieldSlot() },
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
       * so that nothing that was exported leaves the bucket. `unchanged`: it has completed the run, which publishes nothing.
       */
      checkReplacement: async (
        attempt,
        { run_id }: ExportInput,
      ): Promise<ReplacementOutcome | 'unchanged' | null> => {
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
