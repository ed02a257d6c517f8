import type { Settings } from '../src/config/settings.ts';
import { advanceBackfill, type BackfillStep } from '../src/decisions/advance_backfill.ts';
import type { Policies, StartableRun } from '../src/decisions/create_run.ts';
import type { Journal } from '../src/journal/journal.ts';
import { startDeliveries, type StartDeliveriesDependencies } from '../src/notifications/deliver.ts';
import { wrapActivities } from './run_step.ts';

interface BackfillActivityDependencies extends StartDeliveriesDependencies {
  readonly journal: Journal;
  readonly policies: Policies;
  readonly runs: {
    /** Starts the executions of runs; returns how many wait for another run of their interval to close. */
    startAll(runs: readonly StartableRun[]): Promise<number>;
  };
  readonly settings: Pick<Settings, 'EXPORTD_CONTINUE_AS_NEW_COMMANDS'>;
}

/** The result of a backfill's step. */
interface BackfillStepOutcome extends Pick<BackfillStep, 'ended' | 'status' | 'runs_created' | 'total_runs'> {
  /** Runs that wait for another run of their interval to close. */
  readonly blocked_runs: number;
  /** After how many steps the workflow continues as new. */
  readonly continue_after: number;
}

export type BackfillActivities = ReturnType<typeof createBackfillActivities>;

/** The activities of `batchExportBackfill`. */
export function createBackfillActivities(dependencies: BackfillActivityDependencies) {
  const { journal, policies, runs, settings, logger } = dependencies;
  return wrapActivities(
    { logger, retryIndefinitely: true },
    {
      /** Records the runs that ended, creates the next ones and starts their executions. */
      advanceBackfill: async (_, input: { backfill_id: string }): Promise<BackfillStepOutcome> => {
        const step = await advanceBackfill(journal, policies, input.backfill_id);
        const { ended, status, runs_created, total_runs } = step;
        if (step.has_new_deliveries) await startDeliveries(dependencies, step.batch_export_id);
        const blocked_runs = await runs.startAll(step.start_runs);
        const continue_after = settings.EXPORTD_CONTINUE_AS_NEW_COMMANDS;
        return { ended, status, runs_created, total_runs, blocked_runs, continue_after };
      },
    },
  );
}
