import { cancellationSignal } from '@temporalio/activity';
import { continueRun, type ContinuedRun } from '../src/decisions/continue_run.ts';
import type { Policies } from '../src/decisions/policies.ts';
import { readRunEnd } from '../src/decisions/run_end.ts';
import { endRun, type RunOutcome } from '../src/decisions/run_outcomes.ts';
import type { RunStatus } from '../src/domain/run.ts';
import { checkRunBarrier, type RunBarrierCheck } from '../src/export/check_barrier.ts';
import {
  countRows,
  type CountDependencies,
  type CountInput,
  type CountedRows,
} from '../src/export/count_rows.ts';
import type { PublishEmpty } from '../src/export/publish_empty.ts';
import { withApplicationFailures } from '../src/failures/application_failures.ts';
import { retryIndefinitely } from '../src/failures/retry_indefinitely.ts';
import type { Journal } from '../src/journal/journal.ts';
import { startDeliveries, type StartDeliveriesDependencies } from '../src/notifications/start_deliveries.ts';
import type { BarrierState } from '../src/source/source.ts';
import { reportFailedAttempts } from './failed_attempts.ts';
import { currentActivity, type ActivityContext } from './heartbeats.ts';

/** Dependencies of the run's local activities. */
export interface RunActivityDependencies extends StartDeliveriesDependencies, CountDependencies {
  readonly journal: Journal;
  readonly policies: Policies;
  readonly publishEmpty: PublishEmpty;
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

export type RunActivities = ReturnType<typeof createRunActivities>;

/** The local activities of `batchExportRun`; activities/export.ts has those that move rows. */
export function createRunActivities(dependencies: RunActivityDependencies) {
  return { ...journalActivities(dependencies), ...sourceActivities(dependencies) };
}

/** They are retried until the control database and Temporal accept them. */
function journalActivities(dependencies: RunActivityDependencies) {
  const { journal, policies, schedules, backfills, logger } = dependencies;
  return retryIndefinitely(
    {
      /** Ends a run that did not complete; a run with a terminal status keeps it. */
      recordRunOutcome: async (input: {
        run_id: string;
        status: RunOutcome;
        latest_error: string;
      }): Promise<void> => {
        await endRun(journal, policies, input.run_id, input);
      },

      /** Wakes the workflows that wait for the end of a run, and starts its notifications. */
      signalRunEnd: async (input: {
        run_id: string;
      }): Promise<{ status: RunStatus | 'Absent'; latest_error: string | null }> => {
        const end = await readRunEnd(journal, input.run_id);
        if (!end) return { status: 'Absent', latest_error: null };
        if (end.wake_schedule) await schedules.wake(end.batch_export_id);
        for (const id of end.wake_backfill_ids) await backfills.wake(id);
        if (end.has_new_deliveries) await startDeliveries(dependencies, end.batch_export_id);
        return { status: end.status, latest_error: end.latest_error };
      },
    },
    logger,
  );
}

/** They fail the run when an error outlasts its budget. */
function sourceActivities(dependencies: RunActivityDependencies) {
  const { journal, publishEmpty, logger, context = currentActivity } = dependencies;
  const activities = withApplicationFailures(
    {
      /** Checks once whether an open transaction may still add rows to the run's interval; counts them when none may. */
      checkBarrier: async (input: { run_id: string; state: BarrierState }): Promise<RunBarrierCheck> =>
        checkRunBarrier(dependencies, input, cancellationSignal()),

      /** Counts the rows of the run's interval. A run without rows is ready to be published after this. */
      countRows: async (input: CountInput): Promise<CountedRows> =>
        countRows(dependencies, input, cancellationSignal()),

      /** Publishes a run without rows; `published` is false when an export worker has to do it. */
      publishEmpty: async (input: { run_id: string }): Promise<{ readonly published: boolean }> => ({
        published: await publishEmpty(input.run_id),
      }),
    },
    logger,
  );
  const continuation = withApplicationFailures(
    {
      /** Closes the row of a run that continues as new, and creates the row of its next execution. */
      continueRun: (input: { run_id: string }): Promise<ContinuedRun> => continueRun(journal, input.run_id),
    },
    logger,
  );
  return { ...reportFailedAttempts(dependencies, context, activities), ...continuation };
}
