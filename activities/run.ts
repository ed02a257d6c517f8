import type { Settings } from '../src/config/settings.ts';
import { type ContinuedRun, continueRun } from '../src/decisions/backfills.ts';
import type { Policies } from '../src/decisions/create_run.ts';
import {
  cancelUnlessPublishing,
  endRun,
  readRunEnd,
  type RunOutcome,
} from '../src/decisions/run_outcomes.ts';
import type { RunStatus } from '../src/domain/run_state.ts';
import {
  checkRunBarrier,
  countRows,
  type CountDependencies,
  type CountInput,
  type CountedRows,
  type RunBarrierCheck,
} from '../src/export/count.ts';
import type { PublishEmpty } from '../src/export/publish.ts';
import { renewTimeLimits } from '../src/failures/operator_faults.ts';
import type { Outages } from '../src/failures/circuits.ts';
import type { Journal } from '../src/journal/journal.ts';
import { startDeliveries, type StartDeliveriesDependencies } from '../src/notifications/deliver.ts';
import type { BarrierState } from '../src/domain/barrier.ts';
import { wrapActivities, type ActivityContext } from './run_step.ts';

interface RunActivityDependencies extends StartDeliveriesDependencies, CountDependencies {
  readonly journal: Journal;
  readonly policies: Policies;
  readonly publishEmpty: PublishEmpty;
  readonly outages: Outages;
  readonly settings: CountDependencies['settings'] & Pick<Settings, 'EXPORTD_HEARTBEAT_TIMEOUT'>;
  /** Temporal's context of the running activity by default; tests bring their own. */
  readonly context?: () => ActivityContext;
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

export type RunActivities = ReturnType<typeof createRunActivities>;

/** The local activities of `batchExportRun`; activities/export.ts has those that move rows. */
export function createRunActivities(dependencies: RunActivityDependencies) {
  const {
    journal,
    policies,
    schedules,
    backfills,
    publishEmpty,
    logger,
    recorder,
    outages,
    settings,
    context,
  } = dependencies;
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
      ): Promise<{ renewed: boolean }> => {
        const { run_id, execution_id, status } = input;
        const exceedsLimits = status === 'FailedRetryable' || status === 'TimedOut';
        if (exceedsLimits && (await renewTimeLimits(journal.pool, run_id, execution_id)))
          return { renewed: true };
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

      /** Wakes the workflows that wait for the end of a run, and starts its notifications. */
      signalRunEnd: async (
        _,
        input: { run_id: string },
      ): Promise<{ status: RunStatus | 'Absent'; latest_error: string | null }> => {
        const end = await readRunEnd(journal, input.run_id);
        if (!end) return { status: 'Absent', latest_error: null };
        if (end.wake_schedule) await schedules.wake(end.batch_export_id);
        for (const id of end.wake_backfill_ids) await backfills.wake(id);
        if (end.has_new_deliveries) await startDeliveries(dependencies, end.batch_export_id);
        return { status: end.status, latest_error: end.latest_error };
      },
    },
  );
  // These fail the run when an error outlasts its budget.
  return {
    ...journalActivities,
    ...wrapActivities(
      // Where they take long, and after an operator's fault, they are no local activities, and send heartbeats.
      {
        ...{ logger, context, recorder, outages, localLimitMs: localSourceLimitMs },
        heartbeatTimeoutMs: settings.EXPORTD_HEARTBEAT_TIMEOUT,
      },
      {
        /** Checks once whether an open transaction may still add rows to the run's interval; counts them when none may. */
        checkBarrier: async (
          { signal },
          input: { run_id: string; state: BarrierState },
        ): Promise<RunBarrierCheck> => checkRunBarrier(dependencies, input, signal),

        /** Counts the rows of the run's interval. A run without rows is ready to be published after this. */
        countRows: async ({ signal }, input: CountInput): Promise<CountedRows> =>
          countRows(dependencies, input, signal),
      },
    ),
    ...wrapActivities(
      { logger, context, recorder },
      {
        /** Publishes a run without rows; `published` is false when an export worker has to do it. */
        publishEmpty: async (
          { signal },
          input: { run_id: string },
        ): Promise<{ readonly published: boolean }> => ({
          published: await publishEmpty(input.run_id, signal),
        }),

        /** Closes the row of a run that continues as new, and creates the row of its next execution. */
        continueRun: async (_, input: { run_id: string }): Promise<ContinuedRun> =>
          continueRun(journal, input.run_id),
      },
    ),
  };
}
