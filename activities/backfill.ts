import type { Settings } from '../src/config/settings.ts';
import {
  advanceBackfill,
  type BackfillStep,
  type EndedRunOfBackfill,
} from '../src/decisions/advance_backfill.ts';
import type { Policies } from '../src/decisions/policies.ts';
import type { StartableRun } from '../src/decisions/startable_runs.ts';
import type { Journal } from '../src/journal/journal.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { wrapActivities } from './run_step.ts';

interface BackfillActivityDependencies {
  readonly logger: Logger;
  readonly journal: Journal;
  readonly policies: Policies;
  readonly runs: {
    /** Starts the executions of runs; returns how many wait for another run of their interval to close. */
    startAll(runs: readonly StartableRun[]): Promise<number>;
  };
  readonly backfills: {
    /** What the Temporal UI says of a backfill, in Markdown. */
    describe(backfillId: string): Promise<string | undefined>;
  };
  readonly settings: Pick<Settings, 'EXPORTD_CONTINUE_AS_NEW_COMMANDS'>;
}

/** What became of a backfill's step. */
interface TakenBackfillStep extends Omit<BackfillStep, 'start_runs'> {
  /** Runs that wait for another run of their interval to close. */
  readonly blocked_runs: number;
}

/**
 * Records the runs of a backfill that ended, creates the next ones and starts their executions. Its workflow takes the step,
 * and so does each of its runs that ends.
 */
export async function takeBackfillStep(
  { journal, policies, runs }: Pick<BackfillActivityDependencies, 'journal' | 'policies' | 'runs'>,
  backfillId: string,
  ended?: EndedRunOfBackfill,
): Promise<TakenBackfillStep> {
  const { start_runs, ...step } = await advanceBackfill(journal, policies, backfillId, ended);
  return { ...step, blocked_runs: await runs.startAll(start_runs) };
}

/** The result of a backfill's step. */
export interface BackfillStepOutcome extends TakenBackfillStep {
  /** What the backfill is, if the call has asked for it. */
  readonly details?: string | undefined;
  /** After how many steps the workflow continues as new. */
  readonly continue_after: number;
}

export type BackfillActivities = ReturnType<typeof createBackfillActivities>;

/** The activities of `batchExportBackfill`. */
export function createBackfillActivities(dependencies: BackfillActivityDependencies) {
  const { backfills, settings, logger } = dependencies;
  return wrapActivities(
    { logger, retryIndefinitely: true },
    {
      /** Records the runs that ended, creates the next ones and starts their executions. */
      advanceBackfill: async (
        _,
        input: { backfill_id: string; describes: boolean },
      ): Promise<BackfillStepOutcome> => {
        const step = await takeBackfillStep(dependencies, input.backfill_id);
        const continue_after = settings.EXPORTD_CONTINUE_AS_NEW_COMMANDS;
        const details = input.describes ? await backfills.describe(input.backfill_id) : undefined;
        return { ...step, continue_after, details };
      },
    },
  );
}
